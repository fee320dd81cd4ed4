// Quotas of orgs and of spaces. What they limit in a cluster is in contract/controller/quotas and api/quotas.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { resourceQuotaType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import type { CFQuota } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const api = '/apis/korifi.cloudfoundry.org/v1alpha1/namespaces';
let cluster: ServedCluster;
let cli: Cli;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig() });
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

const target = async (): Promise<void> => void (await cli.run(['target', '-o', 'example-org', '-s', 'example-space']));
const quotas = (ns: string): CFQuota['spec'][] =>
  cluster.memory
    .all(kinds.quota)
    .filter(({ metadata }) => metadata.namespace === ns)
    .map(({ spec }) => spec);
const add = (namespace: string, displayName: string, limits: object = {}) =>
  cluster.add(kinds.quota, { metadata: { name: `${displayName}-guid`, namespace }, spec: { displayName, ...limits } });
const quotaOf = (type: typeof kinds.org | typeof kinds.space, ns: string, name: string): string | undefined =>
  cluster.memory.peek(type, ns, name)?.metadata.annotations?.[annotations.quota];
const ofOrg = () => quotaOf(kinds.org, 'cf', 'org-guid');
const ofSpace = () => quotaOf(kinds.space, 'org-guid', 'space-guid');

/** The commands of both kinds, with the namespace of their quotas and the end of cf's first line. */
const both = [
  { kind: 'org', ns: 'cf', of: '', noun: 'Organization quota', exists: 'Organization Quota' },
  { kind: 'space', ns: 'org-guid', of: ' for org example-org', noun: 'Space quota', exists: 'Space Quota' },
];

describe.each(both)('quotas of a $kind', ({ kind, ns, of, noun, exists }) => {
  beforeEach(target);

  it('are created with their limits', async () => {
    const flags = ['-m', '2G', '-i', '512M', '-a', '4', '-r', '20', '-s', '-1'];
    expect(await cli.run([`create-${kind}-quota`, 'small', ...flags])).toMatchObject({
      code: 0,
      stdout: `Creating ${kind} quota small${of} as alice...\nOK\n\n`,
      stderr: '',
    });
    expect(quotas(ns)).toEqual([{ displayName: 'small', totalMemoryMB: 2048, instanceMemoryMB: 512, appInstances: 4, routes: 20 }]);
  });

  it('have no memory, routes and services without flags, as in cf', async () => {
    await cli.run([`create-${kind}-quota`, 'none']);
    expect(quotas(ns)).toEqual([{ displayName: 'none', totalMemoryMB: 0, routes: 0, serviceInstances: 0 }]);
  });

  it('that exist are not created again, and stay as they are', async () => {
    await add(ns, 'small', { routes: 1 });
    const run = await cli.run([`create-${kind}-quota`, 'small', '-r', '5']);
    expect(run).toMatchObject({ code: 0, stderr: `${exists} 'small' already exists.\n` });
    expect(quotas(ns)).toEqual([{ displayName: 'small', routes: 1 }]);
  });

  it('are listed by name', async () => {
    await add(ns, 'small', { totalMemoryMB: 512, instanceMemoryMB: 0, appInstances: 3, routes: 2, serviceInstances: 0 });
    await add(ns, 'large');
    expect(await cli.run([`${kind}-quotas`])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: [
        `Getting ${kind} quotas${of} as alice...`,
        '',
        'name    total memory   instance memory   routes      service instances   paid service plans   app instances   route ports   log volume per second',
        'large   unlimited      unlimited         unlimited   unlimited           disallowed           unlimited       0             unlimited',
        'small   512M           0                 2           0                   disallowed           3               0             unlimited',
        '',
      ].join('\n'),
    });
    const { result } = JSON.parse((await cli.run([`${kind}-quotas`, '--json'])).stdout) as { result: unknown[] };
    expect(result[0]).toEqual({
      ...{ name: 'large', guid: 'large-guid' },
      limits: { totalMemoryMB: null, instanceMemoryMB: null, appInstances: null, routes: null, serviceInstances: null },
    });
  });

  it('are none at first', async () => {
    expect((await cli.run([`${kind}-quotas`])).stdout).toContain(`No ${kind === 'org' ? 'organization' : 'space'} quotas found.\n`);
  });

  it('are shown one by one', async () => {
    await add(ns, 'small', { totalMemoryMB: 1536, instanceMemoryMB: 512, routes: 2 });
    expect(await cli.run([`${kind}-quota`, 'small'])).toMatchObject({
      code: 0,
      stdout: [
        `Getting ${kind} quota small${of} as alice...`,
        '',
        'total memory:            1.5G',
        'instance memory:         512M',
        'routes:                  2',
        'service instances:       unlimited',
        'paid service plans:      disallowed',
        'app instances:           unlimited',
        'route ports:             0',
        'log volume per second:   unlimited',
        '',
      ].join('\n'),
    });
  });

  it('that do not exist are an error that names the nearest', async () => {
    await add(ns, 'small');
    for (const args of [
      [`${kind}-quota`, 'smal'],
      [`update-${kind}-quota`, 'smal', '-r', '1'],
    ]) {
      const run = await cli.run(args);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`${noun} with name 'smal' not found.`)]);
      expect(run.stderr).toContain("Did you mean 'small'?");
    }
  });

  it('are changed where a flag says so, -1 lifts a limit', async () => {
    await add(ns, 'small', { totalMemoryMB: 512, instanceMemoryMB: 128, routes: 2, serviceInstances: 1, appInstances: 3 });
    const flags = ['-n', 'medium', '-m', '1G', '-i', '-1', '-a', '6', '-r', '4', '-s', '2'];
    expect(await cli.run([`update-${kind}-quota`, 'small', ...flags])).toMatchObject({
      code: 0,
      stdout: `Updating ${kind} quota small${of} as alice...\nOK\n\n`,
      stderr: '',
    });
    expect(quotas(ns)).toEqual([{ displayName: 'medium', totalMemoryMB: 1024, routes: 4, serviceInstances: 2, appInstances: 6 }]);
  });

  it('do not get the name of another', async () => {
    await add(ns, 'small');
    await add(ns, 'large');
    const run = await cli.run([`update-${kind}-quota`, 'small', '-n', 'large']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`${noun} 'large' already exists.`)]);
  });

  it('say which flags have no effect, and refuse a limit of logs', async () => {
    await add(ns, 'small');
    const run = await cli.run([`update-${kind}-quota`, 'small', '--allow-paid-service-plans', '--reserved-route-ports', '-1', '-l', '-1']);
    expect(run).toMatchObject({ code: 0 });
    expect(run.stderr).toContain('--allow-paid-service-plans has no effect: kf has user-provided services only, which have no plans.');
    expect(run.stderr).toContain('--reserved-route-ports has no effect: kf has no TCP routes.');
    const other = await cli.run([`update-${kind}-quota`, 'small', '--disallow-paid-service-plans']);
    expect([other.code, other.stderr]).toEqual([0, expect.stringContaining('--disallow-paid-service-plans has no effect')]);
    const logs = await cli.run([`create-${kind}-quota`, 'other', '-l', '1K']);
    expect([logs.code, logs.stderr]).toEqual([1, expect.stringContaining('kf cannot limit the volume of logs')]);
    expect(quotas(ns)).toHaveLength(1);
    const conflict = await cli.run([`update-${kind}-quota`, 'small', '--allow-paid-service-plans', '--disallow-paid-service-plans']);
    expect([conflict.code, conflict.stderr]).toEqual([1, expect.stringContaining('cannot be used together')]);
  });

  it.each([
    [['-m', '12'], 'Byte quantity must be an integer with a unit of measurement like M, MB, G, or GB'],
    [['-r', '-2'], "invalid argument for flag '-r' (expected int >= -1)"],
    [['-a', 'x'], "invalid argument for flag '-a' (expected int >= -1)"],
  ])('refuse %j', async (flags, text) => {
    const run = await cli.run([`create-${kind}-quota`, 'small', ...flags]);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`Incorrect Usage: ${text}`)]);
    expect(quotas(ns)).toEqual([]);
  });

  it('are deleted after a question, and -f asks none', async () => {
    await add(ns, 'small');
    const question = `Really delete the ${kind} quota small${kind === 'org' ? '' : ' in org example-org'}?`;
    const no = await cli.run([`delete-${kind}-quota`, 'small'], { stdin: 'n\n' });
    expect([no.code, no.stdout]).toEqual([0, expect.stringContaining(`${noun} 'small' has not been deleted.`)]);
    expect(no.stdout + no.stderr).toContain(question);
    expect(await cli.run([`delete-${kind}-quota`, 'small', '-f'])).toMatchObject({
      code: 0,
      stdout: `Deleting ${kind} quota small${of} as alice...\nOK\n\n`,
    });
    expect(quotas(ns)).toEqual([]);
    expect(await cli.run([`delete-${kind}-quota`, 'small', '--force'])).toMatchObject({
      code: 0,
      stderr: `${noun} with name 'small' not found.\n`,
    });
  });

  it('need a right that the error names', async () => {
    const text = `cfquotas.korifi.cloudfoundry.org is forbidden: User "alice" cannot create resource "cfquotas" in API group "korifi.cloudfoundry.org" in the namespace "${ns}"`;
    cluster.server.on(`POST ${api}/${ns}/cfquotas`, (call) => call.fail(403, 'Forbidden', text));
    const run = await cli.run([`create-${kind}-quota`, 'small']);
    expect(run.code).toBe(1);
    const [where, who] =
      kind === 'org'
        ? ['', 'An administrator of the cluster must grant it.']
        : [" in org 'example-org'", 'A manager of the org or space, or an administrator of the cluster, must grant it.'];
    expect(run.stderr).toContain(`the user "alice" may not create quotas${where}.\n\nTIP:\n   ${who}\n`);
    expect(run.stderr).toContain(`kubectl auth can-i create cfquotas.korifi.cloudfoundry.org --namespace ${ns}`);
  });
});

describe('set-org-quota', () => {
  it('gives the org the quota', async () => {
    await add('cf', 'small');
    expect(await cli.run(['set-org-quota', 'example-org', 'small'])).toMatchObject({
      code: 0,
      stdout: 'Setting quota small to org example-org as alice...\nOK\n\n',
      stderr: '',
    });
    expect(ofOrg()).toBe('small-guid');
    expect(await cli.run(['set-quota', 'example-org', 'other'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Organization quota with name 'other' not found.") as string,
    });
  });

  it.each(['default', 'kf-limits'])('%s takes the quota from the org, and a quota of that name goes before', async (name) => {
    await add('cf', 'small');
    await cli.run(['set-org-quota', 'example-org', 'small']);
    expect(await cli.run(['set-org-quota', 'example-org', name])).toMatchObject({
      code: 0,
      stdout: `Setting quota ${name} to org example-org as alice...\nOK\n\n`,
    });
    expect(ofOrg()).toBeUndefined();
    await add('cf', name);
    await cli.run(['set-org-quota', 'example-org', name]);
    expect(ofOrg()).toBe(`${name}-guid`);
  });

  it('keeps a quota that orgs have from being deleted', async () => {
    await add('cf', 'small');
    await cli.run(['set-org-quota', 'example-org', 'small']);
    const run = await cli.run(['delete-org-quota', 'small', '-f']);
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining(
        'This quota is applied to one or more organizations. Apply different quotas to those organizations before deleting.',
      ),
    ]);
    expect(run.stderr).toContain('kf set-org-quota example-org default');
    expect(quotas('cf')).toHaveLength(1);
  });
});

describe('set-space-quota', () => {
  beforeEach(target);

  it('gives the space the quota, and unset-space-quota takes it', async () => {
    await add('org-guid', 'small');
    await add('org-guid', 'large');
    expect(await cli.run(['set-space-quota', 'example-space', 'small'])).toMatchObject({
      code: 0,
      stdout: 'Setting space quota small to space example-space as alice...\nOK\n\n',
      stderr: '',
    });
    expect(ofSpace()).toBe('small-guid');
    const other = await cli.run(['unset-space-quota', 'example-space', 'large']);
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining("Unable to remove quota from space with guid 'space-guid'. Ensure the space quota is applied to this space."),
    ]);
    expect(await cli.run(['unset-space-quota', 'example-space', 'small'])).toMatchObject({
      code: 0,
      stdout: 'Unassigning space quota small from space example-space as alice...\nOK\n\n',
    });
    expect(ofSpace()).toBeUndefined();
  });

  it('of an unknown quota or space is an error', async () => {
    await add('org-guid', 'small');
    for (const [args, text] of [
      [['set-space-quota', 'example-space', 'none'], "Space quota with name 'none' not found."],
      [['set-space-quota', 'no-space', 'small'], "Space 'no-space' not found."],
      [['unset-space-quota', 'example-space', 'none'], "Space quota with name 'none' not found."],
    ] as const) {
      const run = await cli.run([...args]);
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(text)]);
    }
  });

  it('waits until the quota is in force', async () => {
    await add('org-guid', 'small', { routes: 2 });
    const hard = { pods: '64' };
    const limits = (quotas: object) => ({
      [annotations.defaultLimits]: JSON.stringify(hard),
      [annotations.quotas]: JSON.stringify(quotas),
    });
    await cluster.add(resourceQuotaType, {
      metadata: { name: 'kf-limits', namespace: 'space-guid', annotations: limits({}) },
      spec: { hard },
      status: { hard },
    });
    const running = cli.run(['set-space-quota', 'example-space', 'small']);
    // It asks again, because the quota is not in force.
    await expect.poll(() => cluster.server.callsOf('GET /api/v1/namespaces/space-guid/resourcequotas/kf-limits').length).toBeGreaterThan(1);
    const applied = { space: { guid: 'small-guid', generation: 9, name: 'small', limits: { routes: 2 } } };
    await cluster.memory.mergePatch(resourceQuotaType, 'space-guid', 'kf-limits', { metadata: { annotations: limits(applied) } });
    const { code, stderr } = await running;
    expect([code, stderr]).toEqual([0, expect.stringContaining("Waiting: the quota takes effect in space 'example-space'\n")]);
  });

  it('says where an operator has edited the limits', async () => {
    await add('org-guid', 'small', { routes: 2 });
    const notes = { [annotations.defaultLimits]: JSON.stringify({ pods: '64' }) };
    const metadata = { name: 'kf-limits', namespace: 'space-guid', annotations: notes };
    await cluster.add(resourceQuotaType, { metadata, spec: { hard: { pods: '500' } } });
    const run = await cli.run(['set-space-quota', 'example-space', 'small']);
    expect(run).toMatchObject({
      code: 0,
      stderr: "The quota is not in force in space 'example-space': an operator edited its limits, which stay as they are.\n",
    });
  });

  it('is lifted when the quota is deleted', async () => {
    await add('org-guid', 'small');
    await cli.run(['set-space-quota', 'example-space', 'small']);
    expect((await cli.run(['delete-space-quota', 'small', '-f'])).code).toBe(0);
    expect(ofSpace()).toBeUndefined();
  });

  it('needs an org', async () => {
    await cli.run(['api', '--unset']);
    const run = await cli.run(['set-space-quota', 'example-space', 'small']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("No org targeted, use 'kf target -o ORG' to target an org.")]);
  });
});

describe('the quota', () => {
  /** Acts as the controller: every org or space that is awaited becomes ready. */
  function answerCreated(type: ResourceType): void {
    const ready = { type: 'Ready', status: 'True' as const, reason: 'Ready', message: '' };
    const condition = { ...ready, lastTransitionTime: '2026-08-07T10:16:20Z', observedGeneration: 1 };
    cluster.memory.intercept = (verb, seen) => {
      if (verb !== 'watch' || seen.plural !== type.plural) return;
      setTimeout(() => {
        for (const { metadata } of cluster.memory.all<KubeObject>(type)) {
          const patch = { metadata: { generation: 1 }, status: { guid: metadata.name, conditions: [condition] } };
          void cluster.memory.mergePatch(type, metadata.namespace, metadata.name ?? '', patch, { subresource: 'status' });
        }
      }, 20);
    };
  }

  it('of a new org or space is set when it is made, and must exist before', async () => {
    await target();
    await add('cf', 'team');
    await add('org-guid', 'small');
    for (const [kind, quota, type] of [
      ['org', 'team', kinds.org],
      ['space', 'small', kinds.space],
    ] as const) {
      const none = await cli.run([`create-${kind}`, 'new', '--quota', 'none']);
      expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("quota with name 'none' not found.")]);
      answerCreated(type);
      const run = await cli.run([`create-${kind}`, 'new', '-q', quota]);
      expect(run.code).toBe(0);
      expect(run.stdout).toContain(`OK\n\nSetting ${kind} quota ${quota} to ${kind} new as alice...\nOK\n\nAssigning role`);
      const made = cluster.memory.all(type as typeof kinds.space).filter(({ spec }) => spec.displayName === 'new');
      expect(made.map(({ metadata }) => metadata.annotations?.[annotations.quota])).toEqual([`${quota}-guid`]);
    }
  });

  it('is shown with its org and its space', async () => {
    await target();
    await add('cf', 'team');
    await add('org-guid', 'small');
    await cluster.add(resourceQuotaType, { metadata: { name: 'kf-limits', namespace: 'org-guid' } });
    await cli.run(['set-org-quota', 'example-org', 'team']);
    await cli.run(['set-space-quota', 'example-space', 'small']);
    expect((await cli.run(['org', 'example-org'])).stdout).toContain('quota:                team\n');
    expect((await cli.run(['space', 'example-space'])).stdout).toContain('quota:                     small\n');
    const { result } = JSON.parse((await cli.run(['space', 'example-space', '--json'])).stdout) as { result: unknown };
    expect(result).toMatchObject({ quota: 'small' });
  });
});

describe('a refusal', () => {
  const routes = 'count/cfroutes.korifi.cloudfoundry.org';
  const small = { guid: 'small-guid', generation: 1, name: 'small', limits: { routes: 2 } };
  const team = { guid: 'team-guid', generation: 1, name: 'team', limits: { routes: 10 } };

  async function refuse(hard: string, quotas: object): Promise<string[]> {
    await target();
    const notes = { [annotations.quotas]: JSON.stringify(quotas) };
    await cluster.add(resourceQuotaType, { metadata: { name: 'kf-limits', namespace: 'space-guid', annotations: notes } });
    const text = `cfroutes.korifi.cloudfoundry.org "x" is forbidden: exceeded quota: kf-limits, requested: ${routes}=1, used: ${routes}=${hard}, limited: ${routes}=${hard}`;
    cluster.server.on(`POST ${api}/space-guid/cfroutes`, (call) => call.fail(403, 'Forbidden', text));
    const run = await cli.run(['create-route', 'apps.localhost', '-n', 'shop', '--json']);
    expect(run.code).toBe(1);
    const { error } = JSON.parse(run.stdout) as { error: { code: string; message: string; hints: string[] } };
    expect(error.code).toBe('quota');
    return [error.message, ...error.hints];
  }

  it('names the quota of the space', async () => {
    expect(await refuse('2', { space: small, org: team })).toEqual([
      "The space quota 'small' allows 2 routes; used: 2, asked: 1.",
      'kf space-quota small',
    ]);
  });

  it('names the quota of the org, and says what this space has of it', async () => {
    expect(await refuse('5', { org: team })).toEqual([
      "The org quota 'team' allows 10 routes, 5 of them in this space at the moment; used: 5, asked: 1.",
      'Other spaces of the org have the rest, and give back within seconds what they do not use: try again.',
      'kf org-quota team',
    ]);
  });

  it('for the limit of the installation is the one of Kubernetes', async () => {
    const [message] = await refuse('200', { space: { ...small, limits: { routes: 500 } } });
    expect(message).toContain("this would exceed the quota 'kf-limits' of the space");
  });
});
