// `autoscale` makes a HorizontalPodAutoscaler of a process, shows what it does, and a push leaves the number of instances to it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { autoscalerType, type HorizontalPodAutoscaler } from '../../../src/lib/api/autoscaler.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const where = 'in org example-org / space example-space as alice...';
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1', '-i', '1');
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const autoscalers = (): HorizontalPodAutoscaler[] => scene.cluster.memory.all(autoscalerType);
const web = () => scene.cluster.memory.all(kinds.process).find(({ spec }) => spec.processType === 'web');
const shown = async (): Promise<unknown> => (JSON.parse((await run('autoscale', 'shop', '--json')).stdout) as { result: unknown }).result;

describe('autoscale', () => {
  it('makes an autoscaler of the process, which is deleted with it, and changes only what it names', async () => {
    const made = await run('autoscale', 'shop', '--min', '2', '--max', '5', '--cpu', '60');
    expect(made).toMatchObject({
      code: 0,
      stdout: [
        `Setting autoscaler of app shop process web ${where}`,
        'OK',
        '',
        `Showing autoscalers of app shop ${where}`,
        '',
        'process   instances   min   max   metric   target   now',
        'web       1           2     5     cpu      60%      n/a',
        '',
      ].join('\n'),
    });
    const { name, uid } = web()?.metadata ?? {};
    expect(autoscalers()).toMatchObject([
      {
        metadata: { name, namespace: ns, ownerReferences: [{ kind: 'CFProcess', name, uid }] },
        spec: {
          scaleTargetRef: { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFProcess', name },
          minReplicas: 2,
          maxReplicas: 5,
          metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '600m' } } }],
        },
      },
    ]);
    await scene.ok('autoscale', 'shop', '--memory', '70', '--max', '9');
    expect(await shown()).toEqual([
      {
        process: 'web',
        instances: 1,
        min: 2,
        max: 9,
        metrics: [
          { metric: 'cpu', target: 60, unit: '%' },
          { metric: 'memoryutil', target: 70, unit: '%' },
        ],
      },
    ]);
  });

  it('shows what is measured, and why nothing is scaled', async () => {
    await scene.ok('autoscale', 'shop', '--min', '1', '--max', '5', '--cpu', '60', '--memory', '80');
    const current = [
      { type: 'Resource', resource: { name: 'cpu', current: { averageValue: '45123456n', averageUtilization: 300 } } },
      { type: 'Resource', resource: { name: 'memory', current: { averageValue: '67108864', averageUtilization: 25 } } },
    ];
    const conditions = [{ type: 'ScalingActive', status: 'False', reason: 'FailedGetResourceMetric', message: 'no metrics returned' }];
    scene.cluster.memory.all(autoscalerType).forEach(({ metadata }) => {
      scene.setStatus(autoscalerType, metadata.name, { currentMetrics: current, conditions });
    });
    expect((await run('autoscale', 'shop')).stdout.split('\n').slice(2)).toEqual([
      'process   instances   min   max   metric       target   now',
      'web       1           1     5     cpu          60%      5%',
      '                                  memoryutil   80%      25%',
      '',
      "Process 'web' cannot be scaled now: no metrics returned",
      '',
    ]);
  });

  it('follows a policy file, and says what it follows in another way', async () => {
    const file = join(scene.cli.home, 'policy.json');
    const rules = [
      { metric_type: 'memoryused', operator: '>', threshold: 100, adjustment: '+1' },
      { metric_type: 'memoryused', operator: '<', threshold: 30, adjustment: '-1' },
    ];
    writeFileSync(file, JSON.stringify({ instance_min_count: 1, instance_max_count: 3, scaling_rules: rules }));
    const ran = await run('autoscale', 'shop', '--policy', file);
    expect(ran.stderr).toContain('Instances are taken away when fewer would stay below memoryused 100, not at 30.');
    expect(ran.stdout).toContain('memoryused   100M');
    expect((await run('autoscale', 'shop', '--policy', 'absent.json')).stderr).toContain(
      "The specified path 'absent.json' does not exist.",
    );
  });

  it('keeps the metrics of an autoscaler that the change does not name, as they are', async () => {
    await scene.ok('autoscale', 'shop', '--min', '1', '--max', '5', '--cpu', '60');
    const ofContainer = {
      type: 'ContainerResource',
      containerResource: { name: 'cpu', container: 'application', target: { type: 'Utilization', averageUtilization: 70 } },
    };
    const exact = { type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '125m' } } };
    const { name } = autoscalers()[0]?.metadata ?? {};
    const metrics = async (...args: string[]): Promise<unknown> => {
      await scene.cluster.memory.mergePatch(autoscalerType, ns, name ?? '', { spec: { metrics: [ofContainer, exact] } });
      await scene.ok('autoscale', 'shop', ...args);
      return autoscalers()[0]?.spec.metrics;
    };
    expect(await metrics('--max', '6')).toEqual([ofContainer, exact]);
    expect(await metrics('--memory', '70')).toEqual([ofContainer, exact, expect.objectContaining({ type: 'Resource' })]);
    expect(await metrics('--cpu', '20')).toMatchObject([ofContainer, { resource: { target: { averageValue: '200m' } } }]);
    await scene.cluster.memory.mergePatch(autoscalerType, ns, name ?? '', { spec: { metrics: [ofContainer] } });
    await scene.ok('autoscale', 'shop', '--max', '7');
    expect(autoscalers()[0]?.spec).toMatchObject({ maxReplicas: 7, metrics: [ofContainer] });
  });

  it('of a process that the app does not have is not found, with and without a change', async () => {
    for (const flags of [[], ['--min', '1'], ['--off']]) {
      const asked = await run('autoscale', 'shop', '--process', 'nope', ...flags);
      expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining('Process nope not found') as string });
    }
    expect((await scene.ok('autoscale', 'shop', '--process', 'web')).stdout).toContain('No autoscaler found.');
  });

  it('is removed by --off, and the instances stay', async () => {
    await scene.ok('autoscale', 'shop', '--min', '1', '--max', '5', '--cpu', '60');
    expect((await run('autoscale', 'shop', '--off')).stdout).toContain('No autoscaler found.');
    expect(autoscalers()).toEqual([]);
    const again = await run('autoscale', 'shop', '--off');
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("Process 'web' has no autoscaler.")]);
  });

  it.each([
    [
      ['--min', '1'],
      'A new autoscaler needs --min, --max and at least one of --cpu and --memory.\n\nTIP:\n   kf autoscale shop --min 1 --max 4 --cpu 80\n',
    ],
    [['--memory', '80'], '\n   kf autoscale shop --min 1 --max 4 --memory 80\n'],
    [['--min', '6', '--cpu', '50', '--memory', '70'], '\n   kf autoscale shop --min 6 --max 6 --cpu 50 --memory 70\n'],
    [
      ['--min', '3', '--max', '2', '--cpu', '5'],
      '--min is 3, and --max is 2: --max must be at least --min.\n\nTIP:\n   kf help autoscale\n',
    ],
    [['--off', '--cpu', '5'], '--off, --policy and the flags of a new target exclude each other'],
    [['--cpu', 'much'], '--cpu'],
    [['--process', 'worker', '--min', '1', '--max', '2', '--cpu', '5'], 'Process worker not found'],
  ])('refuses %j before it writes', async (flags, text) => {
    const ran = await run('autoscale', 'shop', ...flags);
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining(text)]);
    expect(autoscalers()).toEqual([]);
  });
});

describe('with an autoscaler', () => {
  it('a push leaves the instances to it and says so, and sets them again without one', async () => {
    await scene.ok('autoscale', 'shop', '--min', '1', '--max', '5', '--cpu', '60');
    await scene.cluster.memory.mergePatch(kinds.process, ns, web()?.metadata.name ?? '', { spec: { desiredInstances: 4 } });
    const kept = await run('push', 'shop', '-o', 'registry.example.com/shop:2', '-i', '2');
    expect([kept.code, web()?.spec.desiredInstances]).toEqual([0, 4]);
    expect(kept.stderr).toContain("The autoscaler of process 'web' sets its instances; the number of this push is not used.");
    await scene.ok('autoscale', 'shop', '--off');
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:3', '-i', '2');
    expect(web()?.spec.desiredInstances).toBe(2);
  });
});

it('push and scale work where the roles of the cluster are older than autoscalers', async () => {
  const message = 'horizontalpodautoscalers.autoscaling is forbidden: User "alice" cannot list resource "horizontalpodautoscalers"';
  scene.cluster.server.on('GET .*/horizontalpodautoscalers', (call) => call.fail(403, 'Forbidden', message));
  await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:2', '-i', '2');
  expect(web()?.spec.desiredInstances).toBe(2);
  await scene.ok('stop', 'shop');
  await scene.ok('scale', 'shop', '-i', '3');
  expect(web()?.spec.desiredInstances).toBe(3);
});

describe('scale', () => {
  it('to a number outside of what the autoscaler keeps says so before it waits', async () => {
    await scene.ok('autoscale', 'shop', '--min', '2', '--max', '3', '--cpu', '60');
    const told = "The autoscaler of process 'web' keeps 2 to 3 instances and will change this number; 'kf autoscale shop' shows it.";
    for (const [instances, is] of [
      [5, true],
      [1, true],
      [3, false],
      [0, false],
    ] as const) {
      await scene.ok('stop', 'shop');
      const { code, stderr } = await run('scale', 'shop', '-i', String(instances));
      expect([instances, code, stderr.includes(told)]).toEqual([instances, 0, is]);
    }
  });

  it.each([
    { present: 5, told: '5 instances' },
    { present: 1, told: '1 instance' },
  ])('ends at once when an autoscaler or somebody sets another number meanwhile: $present', async ({ present, told }) => {
    const running = run('scale', 'shop', '-i', '3');
    await expect.poll(() => web()?.spec.desiredInstances).toBe(3);
    await scene.cluster.memory.mergePatch(kinds.process, ns, web()?.metadata.name ?? '', { spec: { desiredInstances: present } });
    const { code, stderr } = await running;
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`Process 'web' of app 'shop' was set to ${told} meanwhile; this command had set 3.`),
    ]);
    expect(stderr).toContain('\nTIP:\n   kf app shop\n   kf autoscale shop\n');
    expect(web()?.spec.desiredInstances).toBe(present);
  });
});
