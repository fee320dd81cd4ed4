// Attacker: a developer who gives objects the names of another space's objects, or owners there, and tries what roles of the own space do not allow.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { podOfSpace } from '../../support/gateway.ts';
import { get } from '../../support/http.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { conditionOf, TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const host = 'names-bank.apps.localhost';
const world = new TestWorld();
let victim: Member;
let attacker: Member;
let theirs: string;
let own: string;

interface Named {
  apiVersion: string;
  kind: string;
  metadata: { name: string; uid: string; labels?: object; deletionTimestamp?: string };
  spec: object;
  status?: { observedGeneration?: number; containerStatuses?: { restartCount: number }[] };
}

const listOf = async (kind: string, space: string): Promise<Named[]> =>
  (await kubectlJson<{ items: Named[] }>('get', kind, '-n', space)).items;

beforeAll(async () => {
  const places = [await world.space(), await world.space()] as const;
  [theirs, own] = [places[0].space, places[1].space];
  victim = await world.member('spaceDeveloper', places[0]);
  attacker = await world.member('spaceDeveloper', places[1]);
  await victim.kf.ok('push', 'names-bank', '-o', sample, '-m', '64M');
});
afterAll(async () => {
  for (const { metadata } of await listOf('cfserviceinstances', own))
    await kubectl('patch', 'cfserviceinstance', '-n', own, metadata.name, '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
  await world.remove();
});

/** What the victim's space has that an attack could replace, restart or delete. */
async function stateOfVictim(): Promise<unknown> {
  const kinds = ['cfapps', 'cfprocesses', 'cfroutes', 'httproutes', 'services', 'pods'];
  const all = (await Promise.all(kinds.map((kind) => listOf(kind, theirs)))).flat();
  return all.map(({ metadata, spec, status }) => [metadata.uid, JSON.stringify(spec), status?.containerStatuses?.[0]?.restartCount]);
}

test('objects with the names of those of another space change nothing there, neither while they exist nor when they are deleted', async () => {
  const before = await stateOfVictim();
  const kinds = ['cfapps', 'cfprocesses', 'cfroutes', 'cfpackages', 'cfbuilds'];
  const found = (await Promise.all(kinds.map((kind) => listOf(kind, theirs)))).flat();
  const twins = found.map(({ apiVersion, kind, metadata: { name, labels }, spec }) => {
    return { apiVersion, kind, metadata: { name, namespace: own, labels }, spec };
  });
  const made = await attacker.kubectl(['create', '-f', '-'], twins);
  expect(made.code, made.stderr).toBe(0);
  const nameOf = (kind: string): string => twins.find((twin) => twin.kind === kind)?.metadata.name ?? '';
  await until('the route to be refused', async () => {
    return (await conditionOf('cfroute', own, nameOf('CFRoute'), 'Claimed'))?.reason === 'DuplicateName';
  });
  await until('the app to be looked at', async () => (await listOf('cfapps', own))[0]?.status?.observedGeneration !== undefined);
  expect(await stateOfVictim()).toEqual(before);
  const gone = await attacker.kubectl(['delete', '-n', own, `cfapp/${nameOf('CFApp')}`, `cfroute/${nameOf('CFRoute')}`]);
  expect(gone.code, gone.stderr).toBe(0);
  await until('what they own to be deleted', async () => (await listOf('cfapps', own)).length === 0);
  expect(await stateOfVictim()).toEqual(before);
  expect((await get(host)).status).toBe(200);
});

function instanceOwnedBy(kind: string, apiVersion: string, name: string, uid: string): object {
  return {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFServiceInstance',
    metadata: {
      name: `owned-by-${kind.toLowerCase()}`,
      namespace: own,
      finalizers: ['example.com/never'],
      ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec: { displayName: `owned-by-${kind}`, type: 'user-provided', secretName: 'owned', planGuid: '' },
  };
}

test('an object whose owner is in another space neither deletes the owner nor keeps it from being deleted', async () => {
  const [app] = await listOf('cfapps', theirs);
  const namespace = await kubectlJson<Named>('get', 'namespace', theirs);
  const made = await attacker.kubectl(
    ['create', '-f', '-'],
    [
      instanceOwnedBy('CFApp', app?.apiVersion ?? '', app?.metadata.name ?? '', app?.metadata.uid ?? ''),
      instanceOwnedBy('Namespace', 'v1', theirs, namespace.metadata.uid),
    ],
  );
  expect(made.code, made.stderr).toBe(0);
  // The cluster looks for the owner in the object's own namespace, finds none, and deletes the object only.
  await until('the cluster to delete the object without an owner', async () => {
    return (await kubectlJson<Named>('get', 'cfserviceinstance', '-n', own, 'owned-by-cfapp')).metadata.deletionTimestamp !== undefined;
  });
  expect((await listOf('cfapps', theirs))[0]?.metadata.uid).toBe(app?.metadata.uid);
  expect((await get(host)).status).toBe(200);
  await victim.kf.ok('delete', 'names-bank', '-r', '-f');
  expect(await listOf('cfapps', theirs)).toEqual([]);
  await victim.kf.ok('push', 'names-bank', '-o', sample, '-m', '64M');
});

test.each([
  ...['cfapps', 'cfprocesses', 'cfroutes', 'cfbuilds', 'cfpackages', 'cftasks', 'cfserviceinstances', 'cfservicebindings', 'pods'].map(
    (kind) => ['patch', kind, 'status'] as const,
  ),
  ['patch', 'pods', 'ephemeralcontainers'],
  ['create', 'pods', 'proxy'],
  ['create', 'services', 'proxy'],
  ['create', 'serviceaccounts', 'token'],
  ...['pods', 'services', 'endpoints', 'endpointslices.discovery.k8s.io', 'httproutes.gateway.networking.k8s.io'].flatMap((kind) => [
    ['create', kind, ''] as const,
    ['patch', kind, ''] as const,
  ]),
] as const)('a developer may not %s %s/%s in the own space', async (verb, kind, subresource) => {
  // With a slash, kubectl would take the subresource for a name.
  const asked = ['auth', 'can-i', verb, kind, '-n', own, ...(subresource === '' ? [] : [`--subresource=${subresource}`])];
  const { stdout, stderr } = await attacker.kubectl(asked);
  expect(stdout.trim(), stderr).toBe('no');
});

test('the question itself finds rights that a developer has', async () => {
  const { stdout } = await attacker.kubectl(['auth', 'can-i', 'create', 'pods', '-n', own, '--subresource=exec']);
  expect(stdout.trim()).toBe('yes');
});

test('a developer opens neither a shell in an app of another space nor a connection to it', async () => {
  const pod = await podOfSpace(theirs);
  for (const args of [
    ['exec', pod, '--', 'id'],
    ['port-forward', pod, ':8080'],
    ['logs', pod],
  ]) {
    const said = await attacker.kubectl([...args, '-n', theirs]);
    expect([said.code === 0, said.stdout]).toEqual([false, '']);
    expect(said.stderr).toContain('Forbidden');
  }
});
