// Attacker: the manager of one org, who knows the GUIDs of all orgs and spaces. A name that they choose must not give access to another namespace.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Place } from '../../support/developer.ts';
import { kubectl, kubectlJson } from '../../support/kf.ts';
import { applyAsAdmin, conditionOf, spaceObject, TestWorld, untilReady, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const world = new TestWorld();
const rbac = 'rbac.authorization.k8s.io';
let victim: Place;
let attacker: Member;
let own: string;
let former: string;

beforeAll(async () => {
  victim = await world.space();
  own = await world.org();
  attacker = await world.member('organizationManager', { org: own });
  await applyAsAdmin({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'bank', namespace: victim.space }, data: { money: 'much' } });
  former = (await world.space(victim.org)).space;
  await kubectl('delete', 'cfspace', '-n', victim.org, former, '--timeout=120s');
});
afterAll(() => world.remove());

interface Namespace {
  metadata: { uid: string; labels: Record<string, string>; annotations: Record<string, string>; deletionTimestamp?: string };
}

/** The objects that the attack would change: the namespace with its labels, and its RoleBindings. */
async function stateOf(ns: string): Promise<unknown> {
  const { metadata } = await kubectlJson<Namespace>('get', 'namespace', ns);
  const { items } = await kubectlJson<{ items: { metadata: { name: string; uid: string } }[] }>('get', 'rolebindings', '-n', ns);
  const bindings = items.map((item) => [item.metadata.name, item.metadata.uid]).sort();
  return { uid: metadata.uid, labels: metadata.labels, annotations: metadata.annotations, gone: metadata.deletionTimestamp, bindings };
}

describe('a space whose name an org manager chose', () => {
  test.each([
    ["a foreign org's GUID", () => victim.org],
    ["a foreign space's GUID", () => victim.space],
    ["the attacker's own org's GUID", () => own],
  ])('with %s gets no rights there, and its deletion removes nothing', async (_what, guidOf) => {
    const guid = guidOf();
    const before = await stateOf(guid);
    expect(await attacker.kubectl(['create', '-f', '-'], spaceObject(own, guid, `taken-${guid.slice(0, 4)}`))).toMatchObject({ code: 0 });
    await until('the space to be refused', async () => (await conditionOf('cfspace', own, guid))?.reason === 'GuidTaken');
    expect((await conditionOf('cfspace', own, guid))?.message).toBe(
      `The GUID '${guid}' belongs to another org or space, so nothing is made for this space. Delete it and create it again with its own GUID.`,
    );
    expect(await stateOf(guid)).toEqual(before);
    if (guid !== own) expect((await attacker.kubectl(['get', 'rolebindings', '-n', guid])).stderr).toContain('forbidden');
    expect(await attacker.kubectl(['delete', 'cfspace', '-n', own, guid, '--timeout=120s'])).toMatchObject({ code: 0 });
    expect(await stateOf(guid)).toEqual(before);
    expect(await kubectl('get', 'configmap', '-n', victim.space, 'bank', '-o', 'jsonpath={.data.money}')).toBe('much');
  });

  test('named with the GUID of a deleted space gets no namespace and no registry credential', async () => {
    expect(await attacker.kubectl(['create', '-f', '-'], spaceObject(own, former, 'former'))).toMatchObject({ code: 0 });
    await until('the space to be refused', async () => (await conditionOf('cfspace', own, former))?.reason === 'GuidTaken');
    expect(await kubectl('get', 'namespace', former, '--ignore-not-found')).toBe('');
    expect(await attacker.kubectl(['delete', 'cfspace', '-n', own, former, '--timeout=120s'])).toMatchObject({ code: 0 });
  });

  test.each(['cf', 'kf-system', 'kf-node', 'kube-system', 'default', 'istio-system'])('named %s is refused at once', async (name) => {
    const said = await attacker.kubectl(['create', '-f', '-'], spaceObject(own, name));
    expect(said.stderr).toContain('A space must be named by a GUID such as');
    expect(said.code).not.toBe(0);
  });

  test('can be deleted again by an admin who gave it such a name, and nothing else is deleted', async () => {
    for (const name of ['cf', 'kf-system', 'kube-system']) {
      const { uid } = (await kubectlJson<Namespace>('get', 'namespace', name)).metadata;
      await applyAsAdmin(spaceObject(own, name));
      await until(`${name} to be refused`, async () => (await conditionOf('cfspace', own, name))?.reason === 'NamespaceNotOurs');
      await kubectl('delete', 'cfspace', '-n', own, name, '--timeout=120s');
      expect((await kubectlJson<Namespace>('get', 'namespace', name)).metadata).toMatchObject({ uid });
    }
  });

  test('named with a new GUID works as before', async () => {
    const guid = randomUUID();
    expect(await attacker.kubectl(['create', '-f', '-'], spaceObject(own, guid))).toMatchObject({ code: 0 });
    await untilReady('cfspace', own, guid);
    expect(await attacker.kubectl(['get', 'rolebindings', '-n', guid])).toMatchObject({ code: 0 });
  });
});

describe('the namespace of an org', () => {
  test('accepts no apps, although its manager can grant the developer role there', async () => {
    const binding = {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'attempt', namespace: own },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'korifi-controllers-space-developer' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: attacker.user }],
    };
    expect(await attacker.kubectl(['create', '-f', '-'], binding)).toMatchObject({ code: 0 });
    const app = {
      apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
      kind: 'CFApp',
      metadata: { name: randomUUID(), namespace: own },
      spec: { displayName: 'outside', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
    };
    await until('the role to count', async () => {
      const said = await attacker.kubectl(['create', '-f', '-'], app);
      return said.stderr.includes(`CFApp objects can only be created in the namespace of a space, and ${own} is none`);
    });
  });

  test("cannot take the controller's rights in its spaces by a role with the name of the controller's own", async () => {
    const { space } = await world.space(own);
    const shadow = {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'kf-controller-space', namespace: own, annotations: { 'cloudfoundry.org/propagate-cf-role': 'true' } },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'korifi-controllers-space-auditor' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: attacker.user }],
    };
    const removed = await attacker.kubectl(['delete', 'rolebinding', '-n', own, 'kf-controller-space']);
    const replaced = await attacker.kubectl(['create', '-f', '-'], shadow);
    for (const said of [removed, replaced])
      expect(said.stderr).toContain("Role binding kf-controller-space gives kf's controller its rights in this namespace");
    const roleOf = (ns: string) => kubectl('get', 'rolebinding', '-n', ns, 'kf-controller-space', '-o', 'jsonpath={.roleRef.name}');
    await until('the controller to have its rights in the org', async () => (await roleOf(own)) === 'kf-controller-space');
    expect(await roleOf(space)).toBe('kf-controller-space');
  });
});

describe('a space whose finalizer its manager removed', () => {
  test('leaves a namespace that is deleted with the org', async () => {
    const org = await world.org();
    const manager = await world.member('organizationManager', { org });
    const { space } = await world.space(org);
    const patch = ['patch', 'cfspace', '-n', org, space, '--type=merge', '-p', '{"metadata":{"finalizers":null}}'];
    await manager.kubectl(['delete', 'cfspace', '-n', org, space, '--wait=false']);
    await manager.kubectl(patch);
    await kubectl('delete', 'cforg', '-n', 'cf', org, '--timeout=120s');
    await until('the namespace to go', async () => (await kubectl('get', 'namespace', space, '--ignore-not-found')) === '');
  });
});

describe('a namespace that kf 0.1.0 made', () => {
  test('gets the uid of its own space, even if several spaces have that name', async () => {
    const { org, space } = await world.space();
    const { uid } = (await kubectlJson<Namespace>('get', 'cfspace', '-n', org, space)).metadata;
    expect(await attacker.kubectl(['create', '-f', '-'], spaceObject(own, space, 'younger'))).toMatchObject({ code: 0 });
    await kubectl('delete', 'lease', '-n', 'kf-system', `guid.${space}`);
    await kubectl('annotate', 'namespace', space, 'kf.cloudfoundry.org/owner-uid-');
    await until('the namespace to be adopted', async () => {
      const { metadata } = await kubectlJson<Namespace>('get', 'namespace', space);
      return metadata.annotations['kf.cloudfoundry.org/owner-uid'] === uid;
    });
    expect((await conditionOf('cfspace', own, space))?.reason).toBe('GuidTaken');
  });
});
