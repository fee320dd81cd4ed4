import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventType, leaseType, namespaceType, roleBindingType, secretType, serviceAccountType } from '../../../src/lib/api/core.ts';
import type { RoleBinding } from '../../../src/lib/api/core.ts';
import { finalizers, kinds } from '../../../src/lib/api/group.ts';
import { roleBindingName, sha224, timeLabel } from '../../../src/lib/api/names.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { startScene } from './build-scene.ts';
import type { BuildScene } from './build-scene.ts';
import { isElection, settled } from './settled.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const org = (name: string, displayName = name) => ({
  apiVersion: api,
  kind: 'CFOrg',
  metadata: { name, namespace: 'cf' },
  spec: { displayName },
});
const space = (name: string, ns: string, displayName = name) => ({
  apiVersion: api,
  kind: 'CFSpace',
  metadata: { name, namespace: ns },
  spec: { displayName },
});
const role = (ns: string, name: string, propagate: string): RoleBinding => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name, namespace: ns, annotations: { 'cloudfoundry.org/propagate-cf-role': propagate, 'meta.helm.sh/release-name': 'x' } },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'korifi-controllers-admin' },
  subjects: [{ kind: 'User', name: 'alice' }],
});

/** The API server's message if a policy refuses a request. */
const denied = (why: string): Error =>
  apiError(
    403,
    'Forbidden',
    `rolebindings.rbac.authorization.k8s.io "odd" is forbidden: ValidatingAdmissionPolicy 'kf-controller-role-bindings' with binding 'kf-controller-role-bindings' denied request: ${why}`,
  );

describe('orgs and spaces', () => {
  let scene: BuildScene;
  beforeEach(async () => void (scene = await startScene()));
  afterEach(() => scene.stop());
  const ready = (type: typeof kinds.org | typeof kinds.space, ns: string, name: string) => scene.condition(type, ns, name, 'Ready');
  const makeBoth = async (): Promise<void> => {
    await scene.cluster.create(kinds.org, org('o-1', 'My Org'));
    await scene.cluster.create(kinds.space, space('s-1', 'o-1', 'dev'));
    await scene.until(() => expect(ready(kinds.space, 'o-1', 's-1')?.status).toBe('True'));
  };

  test('get namespaces with the labels of the contract, PodSecurity and the controller’s own rights', async () => {
    await makeBoth();
    expect(scene.cluster.peek(namespaceType, undefined, 's-1')?.metadata).toMatchObject({
      labels: {
        'kf.cloudfoundry.org/managed-by': 'kf',
        'pod-security.kubernetes.io/enforce': 'restricted',
        'pod-security.kubernetes.io/audit': 'restricted',
        'korifi.cloudfoundry.org/space-guid': 's-1',
        'korifi.cloudfoundry.org/org-guid': 'o-1',
        'korifi.cloudfoundry.org/space-name': sha224('dev'),
      },
      annotations: { 'korifi.cloudfoundry.org/space-name': 'dev', 'korifi.cloudfoundry.org/org-name': 'My Org' },
    });
    expect(scene.cluster.peek(namespaceType, undefined, 'o-1')?.metadata.labels).toMatchObject({
      'korifi.cloudfoundry.org/org-name': sha224('My Org'),
      'korifi.cloudfoundry.org/org-guid': 'o-1',
    });
    for (const ns of ['o-1', 's-1'])
      expect(scene.cluster.peek(roleBindingType, ns, 'kf-controller-space')).toMatchObject({
        roleRef: { kind: 'ClusterRole', name: 'kf-controller-space' },
        subjects: [{ kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' }],
      });
  });

  test('a space gets accounts without a token and two registry credentials', async () => {
    await makeBoth();
    for (const name of ['korifi-app', 'korifi-task'])
      expect(scene.cluster.peek(serviceAccountType, 's-1', name)?.automountServiceAccountToken).toBe(false);
    const read = (secret: string, key: string) =>
      Buffer.from(scene.cluster.peek(secretType, 's-1', secret)?.data?.[key] ?? '', 'base64').toString();
    expect(read('kf-registry-push', 'username')).toMatch(/^push\.s-1\.\d{10}$/);
    const config = JSON.parse(read('image-registry-credentials', '.dockerconfigjson')) as { auths: Record<string, { username: string }> };
    expect(config.auths['localhost:32500']?.username).toMatch(/^pull\.s-1\.\d{10}$/);
    expect(read('kf-registry-push', 'password')).toMatch(/^[\w-]{43}$/);
  });

  test('have status, index labels and finalizer', async () => {
    await makeBoth();
    const live = scene.cluster.peek(kinds.space, 'o-1', 's-1');
    expect(live).toMatchObject({
      metadata: {
        finalizers: [finalizers.space],
        labels: { 'korifi.cloudfoundry.org/ready': 'True', 'korifi.cloudfoundry.org/org-guid': 'o-1' },
      },
      status: { guid: 's-1', observedGeneration: 1 },
    });
  });

  test('get the true time of creation in place of that of another clock', async () => {
    const given = org('o-1');
    const labels = { 'korifi.cloudfoundry.org/created_at': '2020-01-01T00-00-00' };
    const { metadata } = await scene.cluster.create(kinds.org, { ...given, metadata: { ...given.metadata, labels } });
    const wanted = timeLabel(metadata.creationTimestamp ?? '');
    const live = () => scene.cluster.peek(kinds.org, 'cf', 'o-1')?.metadata.labels?.['korifi.cloudfoundry.org/created_at'];
    await scene.until(() => expect(live()).toBe(wanted));
  });

  test('write nothing more when everything is right', async () => {
    await makeBoth();
    await settled(scene.cluster);
    const writes = scene.cluster.writes.filter((write) => !isElection(write) && write.kind !== 'Event').length;
    await scene.cluster.mergePatch(kinds.org, 'cf', 'o-1', { metadata: { annotations: { x: 'y' } } });
    await settled(scene.cluster);
    expect(scene.cluster.writes.filter((write) => !isElection(write) && write.kind !== 'Event').length - writes).toBe(1);
  });

  test('get a deleted namespace, binding, account or label back', async () => {
    await makeBoth();
    const gone = [
      [roleBindingType, 's-1', 'kf-controller-space'],
      [serviceAccountType, 's-1', 'korifi-app'],
      [namespaceType, undefined, 'o-1'],
    ] as const;
    for (const [type, ns, name] of gone) {
      await scene.cluster.delete(type, ns, name);
      await scene.until(() => expect(scene.cluster.peek(type as typeof namespaceType, ns, name)).toBeDefined());
    }
    await scene.cluster.mergePatch(namespaceType, undefined, 's-1', {
      metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
    });
    await scene.until(() =>
      expect(scene.cluster.peek(namespaceType, undefined, 's-1')?.metadata.labels?.['pod-security.kubernetes.io/enforce']).toBe(
        'restricted',
      ),
    );
  });

  test('get a deleted or changed registry Secret back within five seconds', async () => {
    await makeBoth();
    await scene.cluster.delete(secretType, 's-1', 'kf-registry-push');
    await scene.cluster.mergePatch(secretType, 's-1', 'image-registry-credentials', { data: { '.dockerconfigjson': 'e30=' } });
    await scene.until(() => {
      expect(scene.cluster.peek(secretType, 's-1', 'kf-registry-push')).toBeDefined();
      expect(scene.cluster.peek(secretType, 's-1', 'image-registry-credentials')?.data?.['.dockerconfigjson']).not.toBe('e30=');
    });
  });

  test('copy roles down that are marked for it, with their changes and deletion, and no others', async () => {
    await scene.cluster.create(roleBindingType, role('cf', 'admins', 'true'));
    await scene.cluster.create(roleBindingType, role('cf', 'users', 'false'));
    await makeBoth();
    await scene.until(() =>
      expect(scene.cluster.peek(roleBindingType, 's-1', 'admins')?.metadata.labels).toEqual({ 'cloudfoundry.org/propagated-from': 'o-1' }),
    );
    expect(scene.cluster.peek(roleBindingType, 'o-1', 'admins')?.metadata.annotations).toEqual({
      'cloudfoundry.org/propagate-cf-role': 'true',
    });
    expect(scene.cluster.peek(roleBindingType, 'o-1', 'users')).toBeUndefined();
    await scene.cluster.mergePatch(roleBindingType, 'cf', 'admins', { subjects: [{ kind: 'User', name: 'bob' }] });
    await scene.until(() => expect(scene.cluster.peek(roleBindingType, 's-1', 'admins')?.subjects?.[0]?.name).toBe('bob'));
    await scene.cluster.delete(roleBindingType, 'cf', 'admins');
    await scene.until(() => {
      expect(scene.cluster.peek(roleBindingType, 'o-1', 'admins')).toBeUndefined();
      expect(scene.cluster.peek(roleBindingType, 's-1', 'admins')).toBeUndefined();
    });
  });

  test('copy other roles even if one of them may not be granted', async () => {
    await scene.cluster.create(roleBindingType, role('cf', 'admins', 'true'));
    await scene.cluster.create(roleBindingType, role('cf', 'odd', 'true'));
    scene.cluster.intercept = (verb, type, name) => {
      if (verb === 'create' && type.kind === 'RoleBinding' && name === 'odd')
        throw denied('The kf controller may only bind the roles of people');
    };
    await makeBoth();
    await scene.until(() => expect(scene.cluster.peek(roleBindingType, 's-1', 'admins')).toBeDefined());
    expect(scene.cluster.peek(roleBindingType, 'o-1', 'odd')).toBeUndefined();
    await scene.until(() => expect(scene.cluster.all(eventType).map((event) => event.reason)).toContain('RoleNotPropagated'));
  });

  test('a refused copy is requested only once until its original changes', async () => {
    await scene.cluster.create(roleBindingType, role('cf', 'odd', 'true'));
    let asked = 0;
    scene.cluster.intercept = (verb, type, name) => {
      if (verb !== 'create' || type.kind !== 'RoleBinding' || name !== 'odd') return;
      asked += 1;
      throw denied('The kf controller may not give roles of people to itself');
    };
    await scene.cluster.create(kinds.org, org('o-1'));
    await scene.until(() => expect(ready(kinds.org, 'cf', 'o-1')?.status).toBe('True'));
    expect(asked).toBe(1);
    for (const name of ['a', 'b', 'c']) {
      await scene.cluster.create(roleBindingType, role('cf', name, 'true'));
      await scene.until(() => expect(scene.cluster.peek(roleBindingType, 'o-1', name)).toBeDefined());
    }
    expect(asked).toBe(1);
    await scene.cluster.mergePatch(roleBindingType, 'cf', 'odd', { subjects: [{ kind: 'User', name: 'bob' }] });
    await scene.until(() => expect(asked).toBe(2));
  });

  test("copy a role as soon as the controller's rights are in force there, which does not count as a refusal", async () => {
    await scene.cluster.create(roleBindingType, role('cf', 'admins', 'true'));
    let asked = 0;
    scene.cluster.intercept = (verb, type, name) => {
      if (verb !== 'create' || type.kind !== 'RoleBinding' || name !== 'admins') return;
      asked += 1;
      if (asked > 2) return;
      throw apiError(403, 'Forbidden', 'User "kf" cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io"');
    };
    await scene.cluster.create(kinds.org, org('o-1'));
    await scene.until(() => expect(scene.cluster.peek(roleBindingType, 'o-1', 'admins')).toBeDefined());
    await scene.until(() => expect(ready(kinds.org, 'cf', 'o-1')?.status).toBe('True'));
    expect(scene.cluster.all(eventType).map((event) => event.reason)).not.toContain('RoleNotPropagated');
  });

  test('copy a role that a full quota refused as soon as the quota admits it, with one request for all meanwhile', async () => {
    await makeBoth();
    const names = ['late-1', 'late-2'];
    for (const name of names) await scene.cluster.create(roleBindingType, role('o-1', name, 'false'));
    let isFull = true;
    const asked: string[] = [];
    scene.cluster.intercept = (verb, type, name) => {
      if (verb !== 'create' || type.kind !== 'RoleBinding' || !name.startsWith('late-') || !isFull) return;
      asked.push(name);
      const text = 'exceeded quota: kf-limits, requested: count/r=1, used: count/r=200, limited: count/r=200';
      throw apiError(403, 'Forbidden', `rolebindings "${name}" is forbidden: ${text}`);
    };
    const { metadata } = role('o-1', '', 'true');
    for (const name of names) {
      await scene.cluster.mergePatch(roleBindingType, 'o-1', name, { metadata: { annotations: metadata.annotations } });
    }
    await scene.until(() => expect(scene.cluster.all(eventType).map((event) => event.reason)).toContain('RoleNotPropagated'));
    expect(ready(kinds.space, 'o-1', 's-1')?.status).toBe('True');
    expect([...new Set(asked)]).toHaveLength(1);
    isFull = false;
    await scene.until(() => {
      for (const name of names) expect(scene.cluster.peek(roleBindingType, 's-1', name)).toBeDefined();
    });
  });

  test('leave a namespace that kf did not make, and say what to do', async () => {
    await scene.cluster.create(namespaceType, { metadata: { name: 'prod', labels: { team: 'x' } } });
    await scene.cluster.create(kinds.org, org('prod'));
    await scene.until(() => expect(ready(kinds.org, 'cf', 'prod')).toMatchObject({ status: 'False', reason: 'NamespaceNotOurs' }));
    expect(scene.cluster.peek(namespaceType, undefined, 'prod')?.metadata.labels).toEqual({ team: 'x' });
    await scene.cluster.delete(kinds.org, 'cf', 'prod');
    await scene.until(() => expect(scene.cluster.peek(kinds.org, 'cf', 'prod')).toBeUndefined());
    expect(scene.cluster.peek(namespaceType, undefined, 'prod')).toBeDefined();
  });

  test('are deleted in order, spaces first, then the namespace, and what blocks is named', async () => {
    await makeBoth();
    await scene.cluster.mergePatch(namespaceType, undefined, 's-1', { metadata: { finalizers: ['kubernetes'] } });
    await scene.cluster.delete(kinds.org, 'cf', 'o-1');
    await scene.until(() =>
      expect(ready(kinds.org, 'cf', 'o-1')).toMatchObject({
        reason: 'Deleting',
        message: expect.stringContaining("These spaces are not gone yet: 'dev'") as string,
      }),
    );
    const conditions = [
      {
        type: 'NamespaceFinalizersRemaining',
        status: 'True',
        reason: 'SomeFinalizersRemain',
        message: 'Some content in the namespace has finalizers remaining: x in 1 resource instances',
      },
    ];
    await scene.cluster.mergePatch(namespaceType, undefined, 's-1', { status: { conditions } }, { subresource: 'status' });
    await scene.until(() =>
      expect(ready(kinds.space, 'o-1', 's-1')?.message).toBe(
        'The namespace s-1 is being deleted: Some content in the namespace has finalizers remaining: x in 1 resource instances',
      ),
    );
    await scene.cluster.mergePatch(namespaceType, undefined, 's-1', { metadata: { finalizers: [] } });
    await scene.until(() => expect(scene.cluster.peek(kinds.org, 'cf', 'o-1')).toBeUndefined());
    expect([scene.cluster.peek(namespaceType, undefined, 'o-1'), scene.cluster.peek(namespaceType, undefined, 's-1')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('a space whose org is missing waits for it', async () => {
    await scene.cluster.create(kinds.space, space('s-9', 'o-9'));
    await scene.until(() => expect(ready(kinds.space, 'o-9', 's-9')).toMatchObject({ status: 'False', reason: 'OrgNotFound' }));
    await scene.cluster.create(kinds.org, org('o-9'));
    await scene.until(() => expect(ready(kinds.space, 'o-9', 's-9')?.status).toBe('True'));
  });

  test('of two orgs with one name in any case one is effective, and its deletion frees the name', async () => {
    await scene.cluster.create(kinds.org, org('o-1', 'Prod'));
    await scene.until(() => expect(ready(kinds.org, 'cf', 'o-1')?.status).toBe('True'));
    await scene.cluster.create(kinds.org, org('o-2', 'PROD'));
    await scene.until(() =>
      expect(ready(kinds.org, 'cf', 'o-2')).toMatchObject({
        reason: 'DuplicateName',
        message: "Organization 'PROD' already exists. (CFOrg cf/o-1 has it)",
      }),
    );
    expect(scene.cluster.peek(namespaceType, undefined, 'o-2')).toBeUndefined();
    await scene.cluster.delete(kinds.org, 'cf', 'o-1');
    await scene.until(() => expect(ready(kinds.org, 'cf', 'o-2')?.status).toBe('True'));
    expect(scene.cluster.all(leaseType).filter((lease) => lease.metadata.name?.startsWith('n-'))).toHaveLength(1);
  });
});

describe('a member of an org', () => {
  let scene: BuildScene;
  beforeEach(async () => {
    scene = await startScene();
    await scene.cluster.create(kinds.org, org('o-1'));
    await scene.until(() => expect(scene.condition(kinds.org, 'cf', 'o-1', 'Ready')?.status).toBe('True'));
  });
  afterEach(() => scene.stop());
  const give = (name: string, clusterRole: string, subject: NonNullable<RoleBinding['subjects']>[number], ns = 'o-1') =>
    scene.cluster.create(roleBindingType, {
      ...role(ns, name, 'false'),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `korifi-controllers-${clusterRole}` },
      subjects: [subject],
    });
  const users = () =>
    scene.cluster
      .all(roleBindingType)
      .filter(({ metadata }) => metadata.namespace === 'cf')
      .map(({ roleRef, subjects }) => [roleRef.name, subjects?.[0]?.name]);
  const bob = { kind: 'User' as const, name: 'bob' };

  test('becomes a user of the installation, until no org has it any more', async () => {
    await scene.cluster.create(kinds.org, org('o-2'));
    await give('bob', 'organization-user', bob);
    await scene.until(() => expect(users()).toEqual([['korifi-controllers-root-namespace-user', 'bob']]));
    await give('bob', 'organization-manager', bob, 'o-2');
    await scene.cluster.delete(roleBindingType, 'o-1', 'bob');
    await settled(scene.cluster);
    expect(users()).toHaveLength(1);
    await scene.cluster.delete(roleBindingType, 'o-2', 'bob');
    await scene.until(() => expect(users()).toEqual([]));
  });

  test('stays one if an admin made it one', async () => {
    const name = roleBindingName('cf_user', { user: 'bob' });
    await give(name, 'root-namespace-user', bob, 'cf');
    await give('bob', 'organization-user', bob);
    await settled(scene.cluster);
    await scene.cluster.delete(roleBindingType, 'o-1', 'bob');
    await settled(scene.cluster);
    expect(users()).toHaveLength(1);
  });

  test('becomes none by a role of a space, a role outside of orgs, as a group or as an account of apps', async () => {
    await give('a', 'space-developer', bob);
    await give('b', 'organization-user', bob, 'elsewhere');
    await give('c', 'organization-user', { kind: 'Group', name: 'system:authenticated' });
    await give('d', 'organization-user', { kind: 'ServiceAccount', name: 'korifi-app', namespace: 's-1' });
    await give('e', 'organization-user', { kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' });
    await settled(scene.cluster);
    expect(users()).toEqual([]);
  });
});
