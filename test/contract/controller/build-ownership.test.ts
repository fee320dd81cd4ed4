// A namespace belongs to the object that it was created for; another object of the same name gets nothing.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { leaseType, namespaceType, roleBindingType, secretType } from '../../../src/lib/api/core.ts';
import { finalizers, kinds } from '../../../src/lib/api/group.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { startScene, type BuildScene } from './build-scene.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const ownerUid = 'kf.cloudfoundry.org/owner-uid';
const org = (name: string) => ({
  apiVersion: api,
  kind: 'CFOrg',
  metadata: { name, namespace: 'cf', finalizers: [finalizers.org] },
  spec: { displayName: `org ${name}` },
});
const space = (name: string, ns: string) => ({
  apiVersion: api,
  kind: 'CFSpace',
  metadata: { name, namespace: ns, finalizers: [finalizers.space] },
  spec: { displayName: `space ${name} in ${ns}` },
});
const taken = (word: string, guid: string) =>
  `The GUID '${guid}' belongs to another org or space, so nothing is made for this ${word}. Delete it and create it again with its own GUID.`;

/** All objects of a namespace and the namespace itself, without fields that change by themselves. */
function contentOf(cluster: MemoryCluster, ns: string): unknown {
  const inside = [...cluster.all(roleBindingType), ...cluster.all(secretType)].filter(({ metadata }) => metadata.namespace === ns);
  return structuredClone([cluster.peek(namespaceType, undefined, ns), ...inside]);
}

async function makeVictim(scene: BuildScene): Promise<void> {
  for (const name of ['victim', 'attacker']) await scene.cluster.create(kinds.org, org(name));
  await scene.cluster.create(kinds.space, space('bank', 'victim'));
  await scene.until(() => expect(scene.condition(kinds.space, 'victim', 'bank', 'Ready')?.status).toBe('True'));
  await scene.until(() => expect(scene.condition(kinds.org, 'cf', 'attacker', 'Ready')?.status).toBe('True'));
}

describe('a GUID of another object', () => {
  let scene: BuildScene;
  beforeEach(async () => {
    scene = await startScene();
    await makeVictim(scene);
  });
  afterEach(() => scene.stop());

  test.each([
    ['a space of another org', 'bank'],
    ['another org', 'victim'],
    ['its own org', 'attacker'],
  ])('gives nothing to a space named after %s, and nothing is deleted with that space', async (_what, guid) => {
    const binding = { name: 'managers', namespace: 'attacker', annotations: { 'cloudfoundry.org/propagate-cf-role': 'true' } };
    await scene.cluster.create(roleBindingType, {
      metadata: binding,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'korifi-controllers-organization-manager' },
      subjects: [{ kind: 'User', name: 'mallory' }],
    });
    const before = contentOf(scene.cluster, guid);
    await scene.cluster.create(kinds.space, space(guid, 'attacker'));
    await scene.until(() =>
      expect(scene.condition(kinds.space, 'attacker', guid, 'Ready')).toMatchObject({
        status: 'False',
        reason: 'GuidTaken',
        message: taken('space', guid),
      }),
    );
    await scene.cluster.delete(kinds.space, 'attacker', guid);
    await scene.until(() => expect(scene.cluster.peek(kinds.space, 'attacker', guid)).toBeUndefined());
    expect(contentOf(scene.cluster, guid)).toEqual(before);
  });

  test.each(['cf', 'kf-system'])('a space named %s gets nothing and can be deleted', async (guid) => {
    const before = contentOf(scene.cluster, guid);
    await scene.cluster.create(kinds.space, space(guid, 'attacker'));
    await scene.until(() =>
      expect(scene.condition(kinds.space, 'attacker', guid, 'Ready')).toMatchObject({ status: 'False', reason: 'NamespaceNotOurs' }),
    );
    await scene.cluster.delete(kinds.space, 'attacker', guid);
    await scene.until(() => expect(scene.cluster.peek(kinds.space, 'attacker', guid)).toBeUndefined());
    expect(contentOf(scene.cluster, guid)).toEqual(before);
  });

  test('gives nothing to an org named after a space, and the space stays when the org is deleted', async () => {
    await scene.cluster.create(kinds.org, org('bank'));
    await scene.until(() =>
      expect(scene.condition(kinds.org, 'cf', 'bank', 'Ready')).toMatchObject({ reason: 'GuidTaken', message: taken('org', 'bank') }),
    );
    await scene.cluster.delete(kinds.org, 'cf', 'bank');
    await scene.until(() => expect(scene.cluster.peek(kinds.org, 'cf', 'bank')).toBeUndefined());
    expect(scene.cluster.peek(namespaceType, undefined, 'bank')?.metadata.deletionTimestamp).toBeUndefined();
    expect(scene.cluster.peek(kinds.space, 'victim', 'bank')).toBeDefined();
  });

  test('is not used again after its object is deleted, not even for an object in the same namespace', async () => {
    await scene.cluster.delete(kinds.space, 'victim', 'bank');
    await scene.until(() => expect(scene.cluster.peek(kinds.space, 'victim', 'bank')).toBeUndefined());
    await scene.cluster.delete(secretType, 'bank', 'kf-registry-push');
    for (const ns of ['attacker', 'victim']) {
      await scene.cluster.create(kinds.space, space('bank', ns));
      await scene.until(() => expect(scene.condition(kinds.space, ns, 'bank', 'Ready')).toMatchObject({ reason: 'GuidTaken' }));
    }
    expect(scene.cluster.peek(namespaceType, undefined, 'bank')).toBeUndefined();
    expect(scene.cluster.peek(secretType, 'bank', 'kf-registry-push')).toBeUndefined();
  });

  test('is protected by the uid in the namespace and by a Lease, and its owner gets its namespace back', async () => {
    const uid = scene.cluster.peek(kinds.space, 'victim', 'bank')?.metadata.uid ?? '?';
    expect(scene.cluster.peek(namespaceType, undefined, 'bank')?.metadata.annotations?.[ownerUid]).toBe(uid);
    expect(scene.cluster.peek(leaseType, 'kf-system', 'guid.bank')?.spec?.holderIdentity).toBe(uid);
    await scene.cluster.delete(namespaceType, undefined, 'bank');
    await scene.until(() => expect(scene.cluster.peek(namespaceType, undefined, 'bank')?.metadata.annotations?.[ownerUid]).toBe(uid));
    await scene.until(() => expect(scene.condition(kinds.space, 'victim', 'bank', 'Ready')?.status).toBe('True'));
  });

  test('does not keep the namespace of a space without finalizer from being deleted with its org', async () => {
    await scene.cluster.mergePatch(kinds.space, 'victim', 'bank', { metadata: { finalizers: null, deletionTimestamp: 'now' } });
    await scene.cluster.delete(kinds.space, 'victim', 'bank');
    expect(scene.cluster.peek(namespaceType, undefined, 'bank')).toBeDefined();
    await scene.cluster.delete(kinds.org, 'cf', 'victim');
    await scene.until(() => expect(scene.cluster.peek(kinds.org, 'cf', 'victim')).toBeUndefined());
    expect(scene.cluster.peek(namespaceType, undefined, 'bank')).toBeUndefined();
    expect(scene.cluster.peek(namespaceType, undefined, 'attacker')?.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('a namespace that kf 0.1.0 made, without a uid', () => {
  const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
  let cluster: MemoryCluster;
  let scene: BuildScene | undefined;
  beforeEach(() => void (cluster = new MemoryCluster()));
  afterEach(() => scene?.stop());

  async function old(type: typeof kinds.org | typeof kinds.space, object: ReturnType<typeof org>, second: number): Promise<void> {
    const { namespace, name } = (await cluster.create(type, object)).metadata;
    await cluster.mergePatch(type, namespace, name ?? '', { metadata: { creationTimestamp: at(second) } });
  }
  async function oldNamespace(name: string, marks: Record<string, string>, second: number): Promise<void> {
    await cluster.create(namespaceType, { metadata: { name, labels: { 'kf.cloudfoundry.org/managed-by': 'kf', ...marks } } });
    await cluster.mergePatch(namespaceType, undefined, name, { metadata: { creationTimestamp: at(second) } });
  }
  const marksOf = (orgGuid: string, spaceGuid?: string) => ({
    'korifi.cloudfoundry.org/org-guid': orgGuid,
    ...(spaceGuid === undefined ? {} : { 'korifi.cloudfoundry.org/space-guid': spaceGuid }),
  });

  test('is adopted by its own org and space', async () => {
    await old(kinds.org, org('o-1'), 1);
    await oldNamespace('o-1', marksOf('o-1'), 1);
    await old(kinds.space, space('s-1', 'o-1') as never, 2);
    await oldNamespace('s-1', marksOf('o-1', 's-1'), 3);
    scene = await startScene(cluster);
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-1', 's-1', 'Ready')?.status).toBe('True'));
    expect(cluster.peek(namespaceType, undefined, 's-1')?.metadata.annotations?.[ownerUid]).toBe(
      cluster.peek(kinds.space, 'o-1', 's-1')?.metadata.uid,
    );
  });

  test('returns to its own space if another had taken it over, in either order of reconciling', async () => {
    for (const name of ['o-1', 'o-2']) {
      await old(kinds.org, org(name), 1);
      await oldNamespace(name, marksOf(name), 1);
    }
    await old(kinds.space, space('s-1', 'o-2') as never, 9);
    await old(kinds.space, space('s-1', 'o-1') as never, 2);
    await oldNamespace('s-1', marksOf('o-2', 's-1'), 3);
    scene = await startScene(cluster);
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-1', 's-1', 'Ready')?.status).toBe('True'));
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-2', 's-1', 'Ready')?.reason).toBe('GuidTaken'));
    expect(cluster.peek(namespaceType, undefined, 's-1')?.metadata.labels).toMatchObject(marksOf('o-1', 's-1'));
  });

  test('is not adopted by a younger space, nor deleted with it', async () => {
    await old(kinds.org, org('o-1'), 1);
    await oldNamespace('o-1', marksOf('o-1'), 1);
    await oldNamespace('orphan', marksOf('gone', 'orphan'), 3);
    await old(kinds.space, space('orphan', 'o-1') as never, 4);
    scene = await startScene(cluster);
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-1', 'orphan', 'Ready')?.reason).toBe('GuidTaken'));
    await cluster.delete(kinds.space, 'o-1', 'orphan');
    await scene.until(() => expect(cluster.peek(kinds.space, 'o-1', 'orphan')).toBeUndefined());
    expect(cluster.peek(namespaceType, undefined, 'orphan')?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('that is gone is given to the older of two spaces, and to an org before a space', async () => {
    await old(kinds.org, org('o-1'), 1);
    await old(kinds.org, org('wanted'), 5);
    await old(kinds.space, space('wanted', 'o-1') as never, 5);
    scene = await startScene(cluster);
    await scene.until(() => expect(scene?.condition(kinds.org, 'cf', 'wanted', 'Ready')?.status).toBe('True'));
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-1', 'wanted', 'Ready')?.reason).toBe('GuidTaken'));
  });

  test('is deleted with its owner, also if that is deleted before it adopted the namespace', async () => {
    await old(kinds.org, org('o-1'), 1);
    await oldNamespace('o-1', marksOf('o-1'), 1);
    await cluster.delete(kinds.org, 'cf', 'o-1');
    scene = await startScene(cluster);
    await scene.until(() => expect(cluster.peek(kinds.org, 'cf', 'o-1')).toBeUndefined());
    expect(cluster.peek(namespaceType, undefined, 'o-1')).toBeUndefined();
  });

  test('is adopted without a change after an uninstall that kept the data', async () => {
    scene = await startScene(cluster);
    await cluster.create(kinds.org, org('o-1'));
    await cluster.create(kinds.space, space('s-1', 'o-1'));
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-1', 's-1', 'Ready')?.status).toBe('True'));
    await scene.stop();
    await cluster.mergePatch(kinds.org, 'cf', 'o-1', { metadata: { finalizers: null } });
    await cluster.mergePatch(kinds.space, 'o-1', 's-1', { metadata: { finalizers: null } });
    const before = ['o-1', 's-1'].map((name) => cluster.peek(namespaceType, undefined, name));
    scene = await startScene(cluster);
    await scene.until(() => expect(cluster.peek(kinds.space, 'o-1', 's-1')?.metadata.finalizers).toEqual([finalizers.space]));
    await scene.until(() => expect(scene?.condition(kinds.space, 'o-1', 's-1', 'Ready')?.status).toBe('True'));
    expect(['o-1', 's-1'].map((name) => cluster.peek(namespaceType, undefined, name))).toEqual(before);
  });
});
