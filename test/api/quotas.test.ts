// Quotas of cf at the API server: who may write them and where, and what it refuses for them to a developer.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kinds } from '../../src/lib/api/group.ts';
import { buildLimits, instanceLimits } from '../../src/templates/limits.ts';
import { until } from '../support/until.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, kubectlJson, makeNamespace } from './kubectl.ts';

const run = Date.now().toString(36);
const org = `quota-org-${run}`;
const space = `quota-space-${run}`;
const group = 'korifi.cloudfoundry.org';
const apiVersion = `${group}/v1alpha1`;
const mark = { 'kf.cloudfoundry.org/managed-by': 'kf', [`${group}/org-guid`]: org };
const manager = `manager-${run}`;
const developer = `developer-${run}`;

const bind = (ns: string, user: string, role: string) =>
  kubectl(['create', 'rolebinding', `${user}-${role}`, '-n', ns, `--clusterrole=korifi-controllers-${role}`, `--user=${user}`]);

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(org, mark);
  await makeNamespace(space, { ...mark, [`${group}/space-guid`]: space });
  await kubectl([
    ...['annotate', 'namespace', space, 'kf.cloudfoundry.org/instance-memory-mb=128'],
    "kf.cloudfoundry.org/instance-memory-quota=space quota 'small'",
  ]);
  // As the controller copies them, and as an OrgManager and a SpaceDeveloper have them.
  for (const ns of [org, space]) await bind(ns, manager, 'organization-manager');
  await bind('cf', manager, 'root-namespace-user');
  await bind('cf', developer, 'root-namespace-user');
  await bind(org, developer, 'organization-user');
  await bind(space, developer, 'space-developer');
});

afterAll(async () => {
  for (const user of [manager, developer]) await kubectl(['delete', 'rolebinding', '-n', 'cf', `${user}-root-namespace-user`]);
});

async function sent(as: string, input: object, args = ['create', '--dry-run=server', '-f', '-']): Promise<string> {
  const { code, stderr } = await ask(args, { input, as });
  return code === 0 ? 'accepted' : stderr;
}

const quota = (namespace: string, spec: object = {}) => ({
  ...{ apiVersion, kind: 'CFQuota' },
  metadata: { name: 'small', namespace },
  spec: { displayName: 'small', totalMemoryMB: 512, ...spec },
});

describe('a quota', () => {
  test('is made by a manager of an org for its spaces, and read by a developer', async () => {
    expect(await sent(manager, quota(org))).toBe('accepted');
    await kubectl(['create', '-f', '-'], { input: quota(org), as: manager });
    expect(JSON.parse(await kubectl(['get', 'cfquotas', '-n', org, '-o', 'json'], { as: developer }))).toMatchObject({
      items: [{ spec: { displayName: 'small', totalMemoryMB: 512 } }],
    });
    expect(await sent(developer, quota(org))).toContain('cannot create resource "cfquotas"');
    await kubectl(['delete', 'cfquota', 'small', '-n', org], { as: manager });
  });

  test('of orgs is not made by a manager of an org, who can read it', async () => {
    expect(await sent(manager, quota('cf'))).toContain('cannot create resource "cfquotas"');
    await kubectl(['get', 'cfquotas', '-n', 'cf'], { as: manager });
  });

  test('is not made in a space, where nothing limits their number', async () => {
    expect(await sent(manager, quota(space))).toContain(
      `A quota can only be created in namespace cf, for orgs, or in the namespace of an org`,
    );
  });

  test('has no negative limits', async () => {
    expect(await sent(manager, quota(org, { routes: -1 }))).toContain('should be greater than or equal to 0');
  });
});

describe('the quota of an org', () => {
  const guid = '55555555-5555-4555-8555-555555555555';
  const name = ['kf.cloudfoundry.org/quota=large', '--dry-run=server'];

  test('is given by an admin, not by a manager of the org', async () => {
    const own = { ...mark, [`${group}/org-guid`]: guid };
    await makeNamespace(guid, own);
    await bind(guid, manager, 'organization-manager');
    await kubectl(['create', '-f', '-'], {
      input: { apiVersion, kind: 'CFOrg', metadata: { name: guid, namespace: 'cf' }, spec: { displayName: run } },
    });
    const labelled = ['label', 'cforg', guid, '-n', 'cf', 'tier=gold', '--dry-run=server'];
    await until('the rights of the manager', async () => (await ask(labelled, { as: manager })).code === 0);
    const refused = await ask(['annotate', 'cforg', guid, '-n', 'cf', ...name], { as: manager });
    expect(refused.stderr).toContain('may change its labels and annotations, except those of the platform');
    await kubectl(['delete', 'cforg', guid, '-n', 'cf']);
  });
});

describe('the memory of one instance', () => {
  const process = (memoryMB: number, name = 'p') => ({
    ...{ apiVersion, kind: 'CFProcess' },
    metadata: { name, namespace: space },
    spec: {
      appRef: { name: 'a' },
      ...{ processType: 'web', memoryMB, diskQuotaMB: 1, desiredInstances: 0 },
      healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 1 } },
    },
  });
  const task = (memoryMB: number) => ({
    ...{ apiVersion, kind: 'CFTask' },
    metadata: { name: 't', namespace: space },
    spec: { appRef: { name: 'a' }, command: 'true', memoryMB },
  });
  const refused = (asked: number): string => `The space quota 'small' allows instances of at most 128M of memory; asked: ${String(asked)}M`;

  test('is limited for a process, and for a task', async () => {
    expect(await sent(developer, process(128))).toBe('accepted');
    // The default, which the controller lowers to the limit.
    expect(await sent(developer, process(0))).toBe('accepted');
    expect(await sent(developer, process(129))).toContain(refused(129));
    expect(await sent(developer, task(128))).toBe('accepted');
    expect(await sent(developer, task(256))).toContain(refused(256));
  });

  test('includes its sidecars', async () => {
    const withSidecars = (memoryMB: number, ...sizes: (number | undefined)[]) => {
      const built = process(memoryMB);
      const sidecars = sizes.map((size, index) => ({
        name: String(index),
        command: 'true',
        ...(size === undefined ? {} : { memoryMB: size }),
      }));
      return { ...built, spec: { ...built.spec, sidecars } };
    };
    expect(await sent(developer, withSidecars(128, 100, 27))).toBe('accepted');
    expect(await sent(developer, withSidecars(128, undefined, undefined, undefined, 79))).toBe('accepted');
    const tooMuch = 'The sidecars of a process share its memory: ';
    expect(await sent(developer, withSidecars(128, 100, 28))).toContain(`${tooMuch}they ask for 128M, and it has 128M`);
    expect(await sent(developer, withSidecars(128, undefined, undefined, undefined, 80))).toContain(`${tooMuch}they ask for 128M`);
    expect(await sent(developer, withSidecars(64, 4096, 4096))).toContain(`${tooMuch}they ask for 8192M, and it has 64M`);
    // The default, which the controller writes; then the sidecars are compared again.
    expect(await sent(developer, withSidecars(0, 100))).toBe('accepted');
    expect(await sent(developer, withSidecars(0, 129))).toContain(`${tooMuch}they ask for 129M, and it may have 128M`);
  });

  test('cannot grow in a task that waits for a droplet', async () => {
    await kubectl(['create', '-f', '-'], { input: task(64), as: developer });
    const patched = (spec: object) =>
      ask(['patch', 'cftask', 't', '-n', space, '--type=merge', '-p', JSON.stringify({ spec })], { as: developer });
    expect((await patched({ memoryMB: 4096 })).stderr).toContain(refused(4096));
    expect((await patched({ memoryMB: 128 })).code).toBe(0);
    await kubectl(['delete', 'cftask', 't', '-n', space]);
  });

  test('is not negative, nor are the times of its health check', async () => {
    const negative = 'should be greater than or equal to 0';
    expect(await sent(developer, process(-1))).toContain(`spec.memoryMB: Invalid value: -1`);
    const built = process(64);
    const data = { invocationTimeoutSeconds: -1, timeoutSeconds: -2, intervalSeconds: -3 };
    const refusal = await sent(developer, { ...built, spec: { ...built.spec, healthCheck: { type: 'port', data } } });
    for (const field of Object.keys(data)) expect(refusal).toContain(`spec.healthCheck.data.${field}`);
    expect(refusal).toContain(negative);
  });

  test('stays as it was, and cannot grow', async () => {
    const notes = ['annotate', 'namespace', space, '--overwrite'];
    await kubectl([...notes, 'kf.cloudfoundry.org/instance-memory-mb=1024']);
    await until('the higher limit to count', async () => (await sent(developer, process(512, 'old'))) === 'accepted');
    await kubectl(['create', '-f', '-'], { input: process(512, 'old'), as: developer });
    await kubectl([...notes, 'kf.cloudfoundry.org/instance-memory-mb=128']);
    await until('the lower limit to count', async () => (await sent(developer, process(512))) !== 'accepted');
    const patched = (spec: object) =>
      ask(['patch', 'cfprocess', 'old', '-n', space, '--type=merge', '-p', JSON.stringify({ spec })], { as: developer });
    expect((await patched({ command: 'other' })).code).toBe(0);
    expect((await patched({ memoryMB: 513 })).stderr).toContain(refused(513));
    expect((await patched({ memoryMB: 64 })).code).toBe(0);
  });
});

describe('the number of app instances', () => {
  const container = { name: 'c', image: 'none.invalid/none' };
  const pod = (name: string, spec: object = {}) => ({
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name, namespace: org },
    spec: { containers: [container], ...spec },
  });

  test('counts neither builds nor tasks, whose pods have a time', async () => {
    await kubectl(['create', '-f', '-'], { input: buildLimits(org, { pods: '1' }, instanceLimits) });
    await until('the quota to count', async () => {
      const { status } = await kubectlJson<{ status: { used?: object } }>(['get', 'resourcequota', 'kf-instances', '-n', org]);
      return status.used !== undefined && 'pods' in status.used;
    });
    await kubectl(['create', '-f', '-'], { input: pod('first') });
    await kubectl(['create', '-f', '-'], { input: pod('task', { activeDeadlineSeconds: 2_147_483_647 }) });
    const { stderr } = await ask(['create', '-f', '-'], { input: pod('second') });
    expect(stderr).toContain('exceeded quota: kf-instances, requested: pods=1, used: pods=1, limited: pods=1');
  });
});

test('the controller cannot write quotas', async () => {
  const account = 'system:serviceaccount:kf-system:kf-controller';
  await kubectl([
    'create',
    'clusterrolebinding',
    `quotas-${run}`,
    '--clusterrole=kf-controller',
    '--serviceaccount=kf-system:kf-controller',
  ]);
  const may = async (verb: string): Promise<string> =>
    (await ask(['auth', 'can-i', verb, `${kinds.quota.plural}.${group}`, '-n', org], { as: account })).stdout.trim();
  expect(await Promise.all(['get', 'list', 'watch'].map(may))).toEqual(['yes', 'yes', 'yes']);
  expect(await Promise.all(['create', 'update', 'patch', 'delete'].map(may))).toEqual(['no', 'no', 'no', 'no']);
  await kubectl(['delete', 'clusterrolebinding', `quotas-${run}`]);
});
