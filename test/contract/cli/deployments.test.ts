// `cancel-deployment`, `continue-deployment` and the flags that say how instances are replaced. What the controller does is in contract/controller/run-deployments.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { resource, type KubeObject } from '../../../src/lib/api/object.ts';
import { printRecord } from '../../../src/lib/api/revisions.ts';
import { deploymentStateOf } from '../../../src/lib/api/rollout.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const place = 'in org example-org / space example-space as alice...';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const push = ['push', 'shop', '-p', 'app'];
const canary = [...push, '--strategy', 'canary'];
const rollout = () => scene.app().spec.rollout;
const droplet = (): string | undefined => scene.app().spec.currentDropletRef?.name;

/** Pushes the app, and records its revision as the controller does. */
async function pushed(): Promise<string> {
  await scene.ok(...push);
  const guid = nameOf(scene.app());
  const first = droplet() ?? '';
  const record = { version: 1, guid: 'guid-1', description: 'Initial revision.', droplet: first, created: '2026-08-07T10:16:20Z' };
  await scene.cluster.add(configMapType, { metadata: { name: `${guid}-revisions`, namespace: ns }, data: { 1: printRecord(record) } });
  scene.setStatus(kinds.app, guid, { revision: { change: 'x', version: 1, deployed: 1, droplets: [first] } });
  scene.source('b');
  return first;
}

describe('push --strategy canary', () => {
  it('ends at the first step, and continue-deployment goes on step by step', async () => {
    await pushed();
    const paused = await run(...canary, '--instance-steps', '1,20');
    expect(paused).toMatchObject({ code: 0 });
    expect(paused.stdout).toContain('\nStarting deployment for app shop...\n\nWaiting for app to deploy...\n');
    expect(paused.stdout).toMatch(
      /\nActive deployment with status PAUSED\nstrategy: +canary\nmax-in-flight: +1\ncanary-steps: +1\/2\n\nPlease run `kf continue-deployment shop` to promote the canary deployment, or `kf cancel-deployment shop` to rollback to the original version.\n/,
    );
    expect(rollout()).toMatchObject({ strategy: 'canary', instanceSteps: [1, 20] });
    const second = await run('continue-deployment', 'shop');
    expect(second).toMatchObject({ code: 0 });
    expect(second.stdout).toMatch(
      new RegExp(
        `^Continuing deployment for app shop ${place.replaceAll('.', '\\.')}\n\nWaiting for app to deploy\\.\\.\\.\n\nname: +shop\n`,
      ),
    );
    expect(second.stdout).toMatch(/canary-steps: +2\/2\n/);
    const last = await run('continue-deployment', 'shop', '--no-wait', '--json');
    expect(JSON.parse(last.stdout)).toMatchObject({ result: { deployment: { status: 'DEPLOYED', strategy: 'canary' } } });
    expect(await run('continue-deployment', 'shop')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No active deployment found for app.'),
    });
  });

  it('of a new app starts all instances at once', async () => {
    const first = await run(...canary, '--instance-steps', '10');
    expect(first.stdout).toContain('\nWaiting for app shop to start...\n');
    expect([rollout(), scene.app().status?.deployment?.phase]).toEqual([undefined, 'Serving']);
  });

  it('is not ended by a scale to other sizes, and a restart that ends it says so', async () => {
    await pushed();
    await scene.ok(...canary);
    await scene.cluster.add(kinds.process, {
      metadata: { name: 'web', namespace: ns, labels: { [labels.appGuid]: nameOf(scene.app()) } },
      spec: {
        ...{ appRef: { name: nameOf(scene.app()) }, processType: 'web', desiredInstances: 1, memoryMB: 256, diskQuotaMB: 512 },
        healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } },
      },
    });
    const before = [scene.app().metadata.resourceVersion, scene.cluster.memory.peek(kinds.process, ns, 'web')?.metadata.resourceVersion];
    expect(await run('scale', 'shop', '-m', '80M', '-f')).toMatchObject({
      code: 1,
      stderr:
        'Cannot scale this process while a deployment is in flight.\n\nTIP:\n   kf continue-deployment shop\n   kf cancel-deployment shop\n',
    });
    const after = [scene.app().metadata.resourceVersion, scene.cluster.memory.peek(kinds.process, ns, 'web')?.metadata.resourceVersion];
    expect(after).toEqual(before);
    const restarted = await run('restart', 'shop');
    expect(restarted.stderr).toContain("The canary deployment of app 'shop' ends with this: all instances get its version.");
  });

  it('is forgotten by the next change', async () => {
    await pushed();
    await scene.ok(...canary);
    await scene.ok('restart', 'shop');
    expect((await run('app', 'shop', '--json')).stdout).toContain('"status": "DEPLOYED"');
    await scene.ok('restart', 'shop', '--strategy', 'rolling', '--max-in-flight', '3');
    expect(rollout()).toEqual({ id: scene.app().metadata.annotations?.[annotations.deployId], strategy: 'rolling', maxInFlight: 3 });
  });
});

describe('--strategy, --max-in-flight and --instance-steps', () => {
  it.each(['restart', 'restage'])('of %s are in the change', async (verb) => {
    await pushed();
    await scene.ok(verb, 'shop', '--strategy', 'canary', '--max-in-flight', '2', '--instance-steps', '10,100');
    const id = scene.app().metadata.annotations?.[annotations.deployId];
    expect(rollout()).toEqual({ id, strategy: 'canary', maxInFlight: 2, instanceSteps: [10, 100] });
    await scene.ok(verb, 'shop', '--strategy', 'recreate');
    expect(rollout()).toEqual({ id: scene.app().metadata.annotations?.[annotations.deployId], strategy: 'recreate' });
  });

  it('are refused before anything is read where they have no effect', async () => {
    const wrong: [string[], string][] = [
      [['--max-in-flight', '2'], "'--max-in-flight' and '--strategy' must be used together."],
      [['--strategy', 'rolling', '--instance-steps', '2'], "'--instance-steps' and '--strategy=canary' must be used together."],
      [['--strategy', 'canary', '--instance-steps', '20,10'], '--instance-steps must be percentages'],
      [['--strategy', 'canary', '--max-in-flight', '0'], '--max-in-flight'],
      [['--strategy', 'recreate', '--max-in-flight', '2'], 'replaces all instances at once'],
      [['--strategy', 'blue'], '--strategy must be "rolling" or "canary" or "recreate"'],
    ];
    for (const [flags, text] of wrong) expect((await run('restart', 'shop', ...flags)).stderr).toContain(text);
    const [flags, text] = wrong[0] ?? [[], ''];
    for (const verb of [push, ['restage', 'shop'], ['copy-source', 'shop', 'shop'], ['rollback', 'shop', '--version', '1', '-f']])
      expect(await run(...verb, ...flags)).toMatchObject({ code: 1, stderr: expect.stringContaining(text) });
  });
});

describe('Ctrl-C while a change is under way', () => {
  const interrupted = { kill: { after: 'Waiting for app', signal: 'SIGINT' as const } };

  it.each([[push], [['restart', 'shop']], [['restage', 'shop']]])('of %j says that it goes on, and how to cancel it', async (argv) => {
    await pushed();
    scene.isStarting = true;
    const stopped = await scene.cli.run(argv, interrupted);
    expect(stopped).toMatchObject({ code: 130, signal: null });
    expect(stopped.stderr).toContain(
      "Interrupted.\n\nTIP:\n   The change of app 'shop' goes on in the cluster:\n   kf app shop\n   kf cancel-deployment shop\n",
    );
  });

  it('in a push of several apps says which changes go on', async () => {
    await pushed();
    await scene.ok('push', 'blog', '-p', 'app');
    const manifest = ['shop', 'blog'].map((name) => `- {name: ${name}, path: app}`).join('\n');
    writeFileSync(path.join(scene.cli.home, 'manifest.yml'), `applications:\n${manifest}\n`);
    scene.startingApp = 'shop';
    const stopped = await scene.cli.run(['push', '-f', 'manifest.yml'], interrupted);
    expect(stopped.code).toBe(130);
    expect(stopped.stderr).toContain(
      "Interrupted.\n\nTIP:\n   The change of app 'shop' goes on in the cluster:\n   kf app shop\n   kf cancel-deployment shop\n",
    );
  });

  it('of a first start names no deployment to cancel', async () => {
    scene.isStarting = true;
    const stopped = await scene.cli.run(push, interrupted);
    expect(stopped.stderr).toContain('goes on in the cluster:\n   kf app shop\n');
    expect(stopped.stderr).not.toContain('cancel-deployment');
  });
});

describe('cancel-deployment', () => {
  it('returns to the droplet before, and the push that waits ends', async () => {
    const first = await pushed();
    scene.isStarting = true;
    const waiting = run(...push);
    await expect.poll(() => scene.app().status?.deployment?.phase).toBe('Starting');
    const id = scene.app().metadata.annotations?.[annotations.deployId];
    expect(droplet()).not.toBe(first);
    const canceled = await run('cancel-deployment', 'shop');
    expect(canceled).toMatchObject({ code: 0 });
    expect(canceled.stdout).toBe(`Canceling deployment for app shop ${place}\nOK\n\nTIP: Run 'kf app shop' to view app status.\n`);
    expect([droplet(), rollout(), scene.app().metadata.annotations?.[annotations.deployId]]).toEqual([first, { id, canceled: true }, id]);
    expect(await waiting).toMatchObject({ code: 1, stderr: expect.stringContaining('Deployment has been canceled') });
    expect((await run('app', 'shop')).stdout).not.toContain('Active deployment');
  });

  it('ends a paused canary', async () => {
    const first = await pushed();
    await scene.ok(...canary);
    const told = await run('cancel-deployment', 'shop', '--json');
    expect(JSON.parse(told.stdout)).toMatchObject({ result: { name: 'shop', canceled: true } });
    expect([droplet(), rollout()]).toMatchObject([first, { strategy: 'canary', canceled: true }]);
    expect(await run('continue-deployment', 'shop')).toMatchObject({ code: 1 });
  });

  it('finds none when nothing is under way, before the first version has served, and of a stopped app', async () => {
    const none = {
      code: 1,
      stdout: expect.stringContaining('\nFAILED\n'),
      stderr: expect.stringContaining('No active deployment found for app.'),
    };
    scene.isStarting = true;
    const first = run(...push);
    await expect.poll(() => scene.cluster.memory.all(kinds.app)[0]?.status?.deployment?.phase).toBe('Starting');
    expect(await run('cancel-deployment', 'shop')).toMatchObject(none);
    scene.isStarting = false;
    scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { ...scene.app().status?.deployment, phase: 'Serving' } });
    expect((await first).code).toBe(0);
    expect(await run('cancel-deployment', 'shop')).toMatchObject(none);
    expect(await run('continue-deployment', 'shop')).toMatchObject(none);
    await scene.ok('stop', 'shop');
    expect(await run('cancel-deployment', 'shop')).toMatchObject(none);
    expect(await run('cancel-deployment', 'nothing')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("App 'nothing' not found"),
    });
  });

  it.each([
    ['is on its way', 'CANCELING', () => undefined],
    ['has ended', 'CANCELED', undefined],
  ])('succeeds too when another one, which %s, came first', async (_, state, controller) => {
    await pushed();
    await scene.ok(...canary);
    const { memory } = scene.cluster;
    const reconcile = memory.intercept;
    memory.intercept = async (verb, { plural }) => {
      if (verb !== 'patch' || plural !== kinds.app.plural) return;
      memory.intercept = controller ?? reconcile;
      await scene.ok('cancel-deployment', 'shop');
      await expect.poll(() => deploymentStateOf(scene.app())).toBe(state);
    };
    expect(await run('cancel-deployment', 'shop')).toMatchObject({ code: 0, stderr: '' });
    expect(rollout()).toMatchObject({ canceled: true });
  });

  it.each(['cancel-deployment', 'continue-deployment'])('%s says that a later change came first', async (command) => {
    await pushed();
    await scene.ok(...canary);
    const { memory } = scene.cluster;
    const reconcile = memory.intercept;
    let isLate = false;
    memory.intercept = async (verb, type, name) => {
      if (verb === 'patch' && type.plural === kinds.app.plural && !isLate) {
        isLate = true;
        await memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { metadata: { annotations: { [annotations.deployId]: 'later' } } });
      }
      await reconcile?.(verb, type, name);
    };
    expect(await run(command, 'shop')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/A later change of app 'shop' \(by alice\) has overtaken this one\.[^]*kf app shop/),
    });
    expect(rollout()).toMatchObject({ strategy: 'canary' });
  });

  it('continue-deployment waits for no pause', async () => {
    await pushed();
    scene.isStarting = true;
    const waiting = run(...push);
    await expect.poll(() => scene.app().status?.deployment?.phase).toBe('Starting');
    const refused = await run('continue-deployment', 'shop');
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Cannot continue a deployment with status: ACTIVE and reason: DEPLOYING'),
    });
    await scene.ok('cancel-deployment', 'shop');
    await waiting;
  });
});

it('curl makes, shows, continues and cancels deployments', async () => {
  const first = await pushed();
  const post = async (path: string, body = '{}') =>
    JSON.parse((await scene.ok('curl', '-X', 'POST', path, '-d', body, '--fail')).stdout) as { guid: string };
  const options = { canary: { steps: [{ instance_weight: 10 }, { instance_weight: 50 }] } };
  const relationships = { app: { data: { guid: nameOf(scene.app()) } } };
  const made = await post('/v3/deployments', JSON.stringify({ relationships, strategy: 'canary', options }));
  expect(made).toMatchObject({
    strategy: 'canary',
    status: { value: 'ACTIVE', reason: 'DEPLOYING' },
    options: { max_in_flight: 1, ...options },
  });
  const shown = async () => JSON.parse((await scene.ok('curl', `/v3/deployments/${made.guid}`)).stdout) as object;
  await expect.poll(shown).toMatchObject({ status: { reason: 'PAUSED', canary: { steps: { current: 1, total: 2 } } } });
  await post(`/v3/deployments/${made.guid}/actions/continue`);
  await expect.poll(shown).toMatchObject({ status: { reason: 'PAUSED', canary: { steps: { current: 2 } } } });
  expect(await post(`/v3/deployments/${made.guid}/actions/cancel`)).toMatchObject({ status: { reason: 'CANCELING' } });
  await expect.poll(shown).toMatchObject({ status: { value: 'FINALIZED', reason: 'CANCELED' } });
  expect(droplet()).toBe(first);
  for (const wrong of [
    { strategy: 'blue' },
    { strategy: 'rolling', options },
    { options: { max_in_flight: 0 } },
    { revision: { guid: 'x' } },
  ]) {
    const refused = await run('curl', '-X', 'POST', '/v3/deployments', '-d', JSON.stringify({ relationships, ...wrong }));
    expect(refused.stdout).toContain('CF-UnprocessableEntity');
  }
});

describe('an update without room for the step', () => {
  const quotas = resource<KubeObject>('', 'v1', 'ResourceQuota', 'resourcequotas');

  /** A running app in a space that has room for no other instance. */
  async function inFullSpace(): Promise<void> {
    await scene.ok(...push);
    const guid = nameOf(scene.app());
    await scene.cluster.add(kinds.process, {
      metadata: { name: 'web', namespace: ns, labels: { [labels.appGuid]: guid } },
      spec: {
        appRef: { name: guid },
        processType: 'web',
        desiredInstances: 1,
        memoryMB: 256,
        diskQuotaMB: 512,
        healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 60 } },
      },
    });
    scene.setStatus(kinds.process, 'web', { instanceCounts: { running: 1, starting: 0, crashed: 0, down: 0 } });
    const org = { guid: 'q', generation: 1, name: 'tight', limits: { totalMemoryMB: 300 } };
    await scene.cluster.add(quotas, {
      metadata: { name: 'kf-limits', namespace: ns, annotations: { 'kf.cloudfoundry.org/quotas': JSON.stringify({ org }) } },
      status: { hard: { 'requests.memory': '300Mi' }, used: { 'requests.memory': '256Mi' } },
    } as KubeObject);
  }

  const text = (
    again: string,
  ): string => `App 'shop' cannot be updated without a gap in space 'example-space': during the update it takes 256M more memory, and the org quota 'tight' allows 300M of memory, of which 44M is left.

TIP:
   Stop its instances before the new ones start: ${again} --strategy recreate
   Or make room: kf scale shop -i NUMBER, or a larger quota: kf org-quota tight
`;

  it('is refused for more instances too, which changes nothing', async () => {
    await inFullSpace();
    const desired = () => scene.cluster.memory.peek(kinds.process, ns, 'web')?.spec.desiredInstances;
    expect(await run('scale', 'shop', '-i', '3')).toMatchObject({
      code: 1,
      stderr: `App 'shop' cannot have 3 instances of 'web' in space 'example-space': 2 more instances take 512M of memory, and the org quota 'tight' allows 300M of memory, of which 44M is left.

TIP:
   kf org-quota tight
   kf apps
`,
    });
    expect(desired()).toBe(1);
    await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { spec: { desiredState: 'STOPPED' } });
    expect((await run('scale', 'shop', '-i', '3')).code).toBe(0);
    expect(desired()).toBe(3);
  });

  it('is refused before the build, with both ways out', async () => {
    await inFullSpace();
    scene.source('b');
    expect(await run(...push)).toMatchObject({ code: 1, stderr: `Reading files\n${text('kf push shop -p app')}` });
    expect(await run('restage', 'shop')).toMatchObject({ code: 1, stderr: text('kf restage shop') });
    expect([scene.builds().length, scene.packages().length]).toEqual([1, 1]);
    expect(await run('push', 'shop', '-p', 'app', '--json')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('"code": "quota"') as string,
    });
  });

  it('is refused with any strategy, before something stops, when the quota has less in all than one instance takes', async () => {
    await inFullSpace();
    const why = "one instance of 'web' takes 1G of memory, and the org quota 'tight' allows 300M of memory.";
    const refused = `App 'shop' cannot be updated in space 'example-space': ${why}

TIP:
   Ask for less memory or disk (-m, -k).
   Or a larger quota: kf org-quota tight
`;
    const before = [droplet(), scene.app().metadata.annotations?.[annotations.deployId]];
    for (const strategy of [[], ['--strategy', 'recreate']])
      expect(await run(...push, '-m', '1G', ...strategy)).toMatchObject({ code: 1, stderr: expect.stringContaining(refused) as string });
    expect(await run('scale', 'shop', '-m', '1G', '-f')).toMatchObject({
      code: 1,
      stderr: `App 'shop' cannot have an instance of 'web' of this size in space 'example-space': ${why}\n\nTIP:\n   kf org-quota tight\n   kf apps\n`,
    });
    expect([droplet(), scene.app().metadata.annotations?.[annotations.deployId]]).toEqual(before);
    expect(scene.cluster.memory.peek(kinds.process, ns, 'web')?.spec.memoryMB).toBe(256);
  });

  it('is refused before something stops when all instances take more than the quota has', async () => {
    await inFullSpace();
    const why = "2 instances of 'web' take 400M of memory, and the org quota 'tight' allows 300M of memory.";
    const before = [droplet(), scene.app().metadata.annotations?.[annotations.deployId]];
    expect(await run(...push, '-m', '200M', '-i', '2', '--strategy', 'recreate')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${why}\n\nTIP:\n   Ask for fewer instances (-i), or for less memory or disk (-m, -k).\n`) as string,
    });
    const scaled = await run('scale', 'shop', '-m', '200M', '-i', '2', '-f');
    expect(scaled).toMatchObject({ code: 1, stderr: expect.stringContaining(`2 instances of 'web' of this size in space`) as string });
    expect(scaled.stderr).toContain(why);
    expect([droplet(), scene.app().metadata.annotations?.[annotations.deployId]]).toEqual(before);
    expect(scene.cluster.memory.peek(kinds.process, ns, 'web')?.spec).toMatchObject({ memoryMB: 256, desiredInstances: 1 });
  });

  it('is no reason to refuse smaller instances, whatever the present ones do', async () => {
    await inFullSpace();
    scene.setStatus(kinds.process, 'web', { instanceCounts: { running: 0, starting: 0, crashed: 0, down: 1 } });
    scene.source('b');
    expect(await run(...push, '-m', '300M')).toMatchObject({ code: 0 });
    expect(await run(...push, '-m', '64M', '--strategy', 'recreate')).toMatchObject({ code: 0 });
  });

  it('is refused for a source that was built before too, which changes nothing', async () => {
    await scene.ok(...push);
    scene.source('b');
    await inFullSpace();
    const before = [droplet(), scene.app().metadata.annotations?.[annotations.deployId]];
    scene.source('a');
    expect(await run(...push, '-m', '1G')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("one instance of 'web' takes 1G of memory") as string,
    });
    expect([droplet(), scene.app().metadata.annotations?.[annotations.deployId]]).toEqual(before);
    expect(scene.cluster.memory.peek(kinds.process, ns, 'web')?.spec.memoryMB).toBe(256);
  });

  it('is none when the old instances stop first, or when nothing is replaced', async () => {
    await inFullSpace();
    expect(await run(...push)).toMatchObject({ code: 0 });
    scene.source('b');
    expect(await run(...push, '--strategy', 'recreate')).toMatchObject({ code: 0 });
    expect(scene.builds()).toHaveLength(2);
  });
});
