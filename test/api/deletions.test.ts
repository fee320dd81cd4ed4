// Objects that keep an app running can be deleted only with the app: tested as a user who has the right to delete everything in the space.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, kubectlJson, makeNamespace } from './kubectl.ts';

const run = Date.now().toString(36);
const space = `deletions-${run}`;
const foreign = `deletions-foreign-${run}`;
const group = 'korifi.cloudfoundry.org';
const controller = 'system:serviceaccount:kf-system:kf-controller';
const sentence = 'belongs to an app of kf and goes with it, never by itself';

interface Named {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string; ownerReferences?: object[] };
}

const template = {
  metadata: { labels: { app: 'x' } },
  spec: { containers: [{ name: 'application', image: 'registry.invalid/x:1' }] },
};
const specs: Record<string, [apiVersion: string, kind: string, rest: object]> = {
  appworkload: [
    `${group}/v1alpha1`,
    'AppWorkload',
    { spec: { GUID: 'p', appGUID: 'a', processType: 'web', version: '0', image: 'x', instances: 0, runnerName: 'none' } },
  ],
  cfprocess: [
    `${group}/v1alpha1`,
    'CFProcess',
    {
      spec: {
        appRef: { name: 'a' },
        processType: 'web',
        memoryMB: 1,
        diskQuotaMB: 1,
        healthCheck: { type: 'process', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } },
      },
    },
  ],
  statefulset: ['apps/v1', 'StatefulSet', { spec: { replicas: 0, serviceName: 'x', selector: { matchLabels: { app: 'x' } }, template } }],
  service: ['v1', 'Service', { spec: { clusterIP: 'None', ports: [{ port: 80 }] } }],
  secret: ['v1', 'Secret', { immutable: true }],
  poddisruptionbudget: ['policy/v1', 'PodDisruptionBudget', { spec: { minAvailable: 1, selector: { matchLabels: { app: 'x' } } } }],
};
const kindNames = Object.keys(specs);
const builtIn = kindNames.filter((name) => name !== 'cfprocess' && name !== 'appworkload');

function objectOf(kind: string, namespace: string, owner: object[]): Named {
  const [apiVersion = '', type = '', rest = {}] = specs[kind] ?? [];
  return { apiVersion, kind: type, metadata: { name: 'kept', namespace, ownerReferences: owner }, ...rest };
}

async function makeApp(namespace: string): Promise<object> {
  const app = {
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFApp',
    metadata: { name: 'owner', namespace },
    spec: { displayName: 'a', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  };
  await kubectl(['create', '-f', '-'], { input: app });
  const { metadata, apiVersion, kind } = await kubectlJson<Named>(['get', 'cfapp', '-n', namespace, 'owner']);
  return { apiVersion, kind, name: 'owner', uid: metadata.uid };
}

const remove = (kind: string, namespace: string, as: string, ...more: string[]) =>
  ask(['delete', kind, '-n', namespace, ...(more.length === 0 ? ['kept'] : more), '--wait=false', '--dry-run=server'], { as });

const binding = (role: string, users: string[], namespace?: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: { name: `${role}-${run}`, ...(namespace === undefined ? {} : { namespace }) },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: users.map((name) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name })),
});

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  const mark = { 'kf.cloudfoundry.org/managed-by': 'kf' };
  await makeNamespace(space, { ...mark, [`${group}/org-guid`]: 'org', [`${group}/space-guid`]: space });
  await makeNamespace(foreign);
  // Every right in both namespaces, far more than a developer's role: everything that is refused is refused by the policy.
  for (const namespace of [space, foreign])
    await kubectl(['create', '-f', '-'], { input: binding('cluster-admin', ['alice', controller], namespace) });
  await kubectl(['create', '-f', '-'], { input: binding('cluster-admin', ['root']) });
  const owner = await makeApp(space);
  await kubectl(['create', '-f', '-'], { input: kindNames.map((kind) => objectOf(kind, space, [owner])) });
  await kubectl(['create', '-f', '-'], { input: builtIn.map((kind) => objectOf(kind, foreign, [])) });
  await kubectl(['create', 'secret', 'generic', 'own', '-n', space]);
  await until('the policy to be obeyed', async () => (await remove('secret', space, 'alice')).code !== 0);
});
afterAll(async () => {
  await kubectl(['delete', 'clusterrolebinding', `cluster-admin-${run}`]);
});

describe('deleting a single object of a running app', () => {
  test.each(kindNames)('a %s is refused with a sentence, alone and in a deletion of all', async (kind) => {
    for (const args of [[], ['--all']]) {
      const { code, stderr } = await remove(kind, space, 'alice', ...args);
      expect([code, stderr]).toEqual([1, expect.stringContaining(`'kept' ${sentence}`)]);
      expect(stderr).toContain("'kf restart', 'kf stop', 'kf delete'");
    }
  });

  test.each(kindNames)('the controller and users who may remove the policy can delete a %s', async (kind) => {
    for (const user of [controller, 'root']) expect(await remove(kind, space, user)).toMatchObject({ code: 0 });
  });

  test('objects that belong to no app or that are in other namespaces can be deleted', async () => {
    expect(await remove('secret', space, 'alice', 'own')).toMatchObject({ code: 0 });
    for (const kind of builtIn) expect(await remove(kind, foreign, 'alice')).toMatchObject({ code: 0 });
  });

  test('an app cannot be deleted without what it runs, by an option or by a finalizer', async () => {
    const whole = 'is deleted with all that it runs';
    const app = ['cfapp', '-n', space, 'owner'];
    const { code, stderr } = await ask(['delete', ...app, '--cascade=orphan', '--wait=false'], { as: 'alice' });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`CFApp 'owner' ${whole}`)]);
    const patch = JSON.stringify({ metadata: { finalizers: ['orphan'] } });
    expect((await ask(['patch', ...app, '--type=merge', '-p', patch], { as: 'alice' })).stderr).toContain(whole);
    const raw = { kind: 'DeleteOptions', apiVersion: 'v1', orphanDependents: true };
    const path = `/apis/${group}/v1alpha1/namespaces/${space}/cfapps/owner`;
    expect((await ask(['delete', '--raw', path, '-f', '-'], { as: 'alice', input: raw })).stderr).toContain(whole);
    for (const cascade of ['background', 'foreground'])
      expect(await ask(['delete', ...app, `--cascade=${cascade}`, '--dry-run=server', '--wait=false'], { as: 'alice' })).toMatchObject({
        code: 0,
      });
    expect(await ask(['delete', ...app, '--cascade=orphan', '--dry-run=server', '--wait=false'], { as: 'root' })).toMatchObject({
      code: 0,
    });
  });

  test('it is deleted with its app, and with its space', async () => {
    await kubectl(['delete', 'cfapp', '-n', space, 'owner', '--cascade=background'], { as: 'alice' });
    // It discovers new kinds only every 30 s.
    const isGone = async (): Promise<boolean> => {
      const left = await Promise.all(kindNames.map((kind) => ask(['get', kind, '-n', space, 'kept'])));
      return left.every(({ code }) => code !== 0);
    };
    await until('the garbage collector to take all of it', isGone);
    const owner = await makeApp(space);
    await kubectl(['create', '-f', '-'], { input: kindNames.map((kind) => objectOf(kind, space, [owner])) });
    await kubectl(['delete', 'namespace', space, '--timeout=120s']);
  });
});
