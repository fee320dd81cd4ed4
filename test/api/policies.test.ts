import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace } from './kubectl.ts';

const run = Date.now().toString(36);
const org = `org-${run}`;
const space = `space-${run}`;
const foreign = `foreign-${run}`;
const controller = 'system:serviceaccount:kf-system:kf-controller';
const group = 'korifi.cloudfoundry.org';
const mark = { 'kf.cloudfoundry.org/managed-by': 'kf' };
const rbac = 'rbac.authorization.k8s.io';

const binding = (name: string, verb: string, subjects: object[], namespace?: string) => ({
  apiVersion: `${rbac}/v1`,
  kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: verb },
  subjects,
});
const account = { kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' };

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(org, { ...mark, [`${group}/org-guid`]: org });
  await makeNamespace(space, { ...mark, [`${group}/org-guid`]: org, [`${group}/space-guid`]: space });
  await makeNamespace(foreign);
  // Far more than setup grants: everything that is refused below is refused by the policies alone.
  await kubectl(['apply', '-f', '-'], {
    input: binding(`policies-${run}`, 'cluster-admin', [account, { apiGroup: rbac, kind: 'User', name: 'alice' }]),
  });
});

afterAll(async () => {
  await kubectl(['delete', 'clusterrolebinding', `policies-${run}`]);
});

async function create(input: object, as?: string): Promise<string> {
  const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input, ...(as === undefined ? {} : { as }) });
  return code === 0 ? 'accepted' : stderr;
}

describe('the annotation changed-by', () => {
  const app = (changedBy?: string) => ({
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFApp',
    metadata: {
      name: 'signed',
      namespace: space,
      annotations: changedBy === undefined ? {} : { 'kf.cloudfoundry.org/changed-by': changedBy },
    },
    spec: { displayName: 'a', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  });
  const refusal = 'Annotation kf.cloudfoundry.org/changed-by must name you (alice), not bob';

  test('can be missing or name the caller, but nobody else', async () => {
    expect(await create(app(), 'alice')).toBe('accepted');
    expect(await create(app('alice'), 'alice')).toBe('accepted');
    expect(await create(app('bob'), 'alice')).toContain(refusal);
  });

  test('is checked in Secrets of a space too, and not in Secrets elsewhere', async () => {
    const secret = (namespace: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { ...app('bob').metadata, namespace } });
    expect(await create(secret(space), 'alice')).toContain(refusal);
    expect(await create(secret(foreign), 'alice')).toBe('accepted');
  });

  test('stays when another user changes something else, and cannot be forged by a change', async () => {
    await kubectl(['create', '-f', '-'], { input: app('alice'), as: 'alice' });
    const patch = (body: object, as: string) =>
      ask(['patch', 'cfapp', '-n', space, 'signed', '--type=merge', '-p', JSON.stringify(body)], { as });
    expect((await patch({ spec: { displayName: 'b' } }, controller)).code).toBe(0);
    const forged = await patch({ metadata: { annotations: { 'kf.cloudfoundry.org/changed-by': 'bob' } } }, 'alice');
    expect(forged.stderr).toContain(refusal);
  });
});

test('the annotation unbinding cannot be written under the name that another user has left', async () => {
  const name = 'unbound';
  const object = {
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFServiceBinding',
    metadata: { name, namespace: space, annotations: { 'kf.cloudfoundry.org/changed-by': 'alice' } },
    spec: { type: 'app', appRef: { name: 'a' }, service: { kind: 'CFServiceInstance', name: 'i' }, parameters: { name: '' } },
  };
  await kubectl(['create', '-f', '-'], { input: object, as: 'alice' });
  const note = (as: string, changedBy: Record<string, string>) => {
    const body = { metadata: { annotations: { 'kf.cloudfoundry.org/unbinding': '2026-01-01T00:00:00Z', ...changedBy } } };
    return ask(['patch', 'cfservicebinding', '-n', space, name, '--type=merge', '--dry-run=server', '-p', JSON.stringify(body)], { as });
  };
  const own = { 'kf.cloudfoundry.org/changed-by': controller };
  expect((await note(controller, {})).stderr).toContain('Annotation kf.cloudfoundry.org/unbinding needs kf.cloudfoundry.org/changed-by');
  expect([(await note(controller, own)).code, (await note('alice', {})).code]).toEqual([0, 0]);
});

describe('objects that users write', () => {
  const user = (name: string) => ({ apiGroup: rbac, kind: 'User', name });

  test('RoleBindings in orgs and spaces have limits, because the controller caches and copies them', async () => {
    const wide = (count: number, name = 'u') =>
      binding(
        'wide',
        'view',
        Array.from({ length: count }, (_, index) => user(`${name}${index}`)),
        org,
      );
    const noted = (annotations: Record<string, string>) => {
      const made = wide(1);
      return { ...made, metadata: { ...made.metadata, annotations } };
    };
    expect(await create(wide(20), 'alice')).toBe('accepted');
    expect(await create(wide(21), 'alice')).toContain('may name at most 20 subjects, with names of at most 256 characters');
    expect(await create(wide(1, 'u'.repeat(256)), 'alice')).toContain('may name at most 20 subjects');
    expect(await create(noted({ a: 'x'.repeat(65536) }), 'alice')).toBe('accepted');
    expect(await create(noted({ a: 'x'.repeat(65537) }), 'alice')).toContain(
      'may have at most 64 annotations, with 65536 characters in all',
    );
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`a${index}`, '']));
    expect(await create(noted(many), 'alice')).toContain('may have at most 64 annotations');
    const elsewhere = wide(21);
    expect(await create({ ...elsewhere, metadata: { name: 'wide', namespace: foreign } }, 'alice')).toBe('accepted');
  });

  test('a Secret that the cluster fills with a token is refused, unless the user can create tokens', async () => {
    const metadata = { name: 'token', namespace: space, annotations: { 'kubernetes.io/service-account.name': 'default' } };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/service-account-token' };
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch'] }];
    await kubectl(['create', '-f', '-'], {
      input: [
        { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: `secrets-${run}` }, rules },
        binding(`dave-${run}`, `secrets-${run}`, [user('dave')], space),
      ],
    });
    expect(await create(secret, 'dave')).toContain(
      `Only who may make tokens of accounts in namespace ${space} may make a Secret that is filled with one`,
    );
    expect(await create({ ...secret, type: 'Opaque' }, 'dave')).toBe('accepted');
    expect(await create(secret, 'alice')).toBe('accepted');
  });

  test('a service instance can follow only a Secret that its user can read', async () => {
    const rules = [
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['mine'], verbs: ['get'] },
      { apiGroups: [group], resources: ['cfserviceinstances'], verbs: ['get', 'create', 'patch'] },
    ];
    await kubectl(['create', '-f', '-'], {
      input: [
        { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: `instances-${run}` }, rules },
        binding(`grace-${run}`, `instances-${run}`, [user('grace')], space),
      ],
    });
    const instance = (secretName: string, followed: boolean) => ({
      apiVersion: `${group}/v1alpha1`,
      kind: 'CFServiceInstance',
      metadata: { name: 'followed', namespace: space, annotations: followed ? { 'kf.cloudfoundry.org/from-secret': 'true' } : {} },
      spec: { displayName: 'db', type: 'user-provided', secretName, planGuid: '' },
    });
    const refusal = `You may not read Secret theirs in namespace ${space}, so no service can follow it for you`;
    expect(await create(instance('theirs', true), 'grace')).toContain(refusal);
    expect(await create(instance('theirs', true), 'alice')).toBe('accepted');
    expect(await create(instance('theirs', false), 'grace')).toBe('accepted');
    await kubectl(['create', '-f', '-'], { input: instance('mine', true), as: 'grace' });
    const patch = (body: object, as: string) =>
      ask(['patch', 'cfserviceinstance', '-n', space, 'followed', '--type=merge', '-p', JSON.stringify(body)], { as });
    expect((await patch({ spec: { secretName: 'theirs' } }, 'grace')).stderr).toContain(refusal);
    expect((await patch({ spec: { secretName: 'theirs' } }, 'alice')).code).toBe(0);
    // Who changes something else needs no right on the Secret.
    expect((await patch({ spec: { displayName: 'other' } }, 'grace')).code).toBe(0);
  });

  describe('RoleBindings of orgs and spaces', () => {
    const given = (name: string, finalizers?: string[]) => {
      const made = binding(name, 'korifi-controllers-space-auditor', [user('frank')], space);
      return { ...made, metadata: { ...made.metadata, ...(finalizers === undefined ? {} : { finalizers }) } };
    };
    const remove = (name: string, cascade: string, as: string) =>
      ask(['delete', 'rolebinding', '-n', space, name, `--cascade=${cascade}`, '--dry-run=server'], { as });

    beforeAll(async () => {
      await kubectl(['create', '-f', '-'], {
        input: [
          binding(`erin-${run}`, 'korifi-controllers-organization-manager', [user('erin')], space),
          binding('kf-controller-space', 'kf-controller-space', [account], space),
          given('given'),
        ],
      });
    });

    test('cannot be made to stay in force after their deletion', async () => {
      expect(await create(given('more'), 'erin')).toBe('accepted');
      expect(await create(given('more', ['example.com/keep']), 'erin')).toContain('A role binding may have no finalizers here');
      expect(await create(given('more', ['example.com/keep']))).toBe('accepted');
      for (const cascade of ['foreground', 'orphan'])
        expect((await remove('given', cascade, 'erin')).stderr).toContain('A role binding can only be deleted in the background here');
      expect((await remove('given', 'background', 'erin')).code).toBe(0);
    });

    test('include one of the controller, which nobody else deletes or replaces', async () => {
      const refusal = "Role binding kf-controller-space gives kf's controller its rights";
      expect((await remove('kf-controller-space', 'background', 'erin')).stderr).toContain(refusal);
      expect((await remove('kf-controller-space', 'background', controller)).code).toBe(0);
      expect((await remove('kf-controller-space', 'background', 'alice')).code).toBe(0);
      await kubectl(['delete', 'rolebinding', '-n', space, 'kf-controller-space']);
      expect(await create(given('kf-controller-space'), 'erin')).toContain(refusal);
    });
  });
});

describe('places where orgs, domains and spaces can be created', () => {
  const of = (kind: string, namespace: string, spec: object) => ({
    apiVersion: `${group}/v1alpha1`,
    kind,
    metadata: { name: 'placed', namespace },
    spec,
  });

  test('orgs and domains only in the root namespace', async () => {
    expect(await create(of('CFOrg', 'cf', { displayName: 'o' }))).toBe('accepted');
    expect(await create(of('CFOrg', org, { displayName: 'o' }))).toContain(`An org can only be created in namespace cf, not in ${org}`);
    expect(await create(of('CFDomain', org, { name: 'a.b' }))).toContain(`A domain can only be created in namespace cf, not in ${org}`);
  });

  test('spaces only in the namespace of an org', async () => {
    expect(await create(of('CFSpace', org, { displayName: 's' }))).toBe('accepted');
    expect(await create(of('CFSpace', 'cf', { displayName: 's' }))).toContain(
      'A space can only be created in the namespace of an org, and cf is none',
    );
    expect(await create(of('CFSpace', foreign, { displayName: 's' }))).toContain(`and ${foreign} is none`);
  });

  test('objects of apps only in the namespace of a space', async () => {
    const app = { displayName: 'a', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } };
    expect(await create(of('CFApp', space, app))).toBe('accepted');
    for (const ns of [org, 'cf', 'kf-system', foreign])
      expect(await create(of('CFApp', ns, app))).toContain(
        `CFApp objects can only be created in the namespace of a space, and ${ns} is none`,
      );
    expect(await create(of('CFTask', org, { command: 'true', appRef: { name: 'a' } }))).toContain('CFTask objects can only');
  });

  test('users who cannot create namespaces must name orgs and spaces by GUIDs', async () => {
    const named = (kind: string, namespace: string, name: string) => ({
      ...of(kind, namespace, { displayName: 's' }),
      metadata: { name, namespace },
    });
    const writer = (verb: string, group_: string, resource: string) => ({
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: `${verb}-${resource}-${run}` },
      rules: [{ apiGroups: [group_], resources: [resource], verbs: [verb] }],
    });
    const carol = [{ apiGroup: rbac, kind: 'User', name: 'carol' }];
    await kubectl(['create', '-f', '-'], {
      input: ['cforgs', 'cfspaces'].flatMap((resource) => [
        writer('create', group, resource),
        binding(`carol-${resource}-${run}`, `create-${resource}-${run}`, carol),
      ]),
    });
    for (const name of ['kf-system', 'kube-system', 'istio-system', 'dev', `x${randomUUID().slice(1)}`]) {
      expect(await create(named('CFSpace', org, name), 'carol')).toContain(
        `A space must be named by a GUID such as 0f4c2ab1-6d0e-4b4e-9a53-1f2e3d4c5b6a, not ${name}: its name becomes that of a namespace`,
      );
      expect(await create(named('CFOrg', 'cf', name), 'carol')).toContain('An org must be named by a GUID');
      expect(await create(named('CFSpace', org, name), 'alice')).toBe('accepted');
    }
    expect(await create(named('CFSpace', org, randomUUID()), 'carol')).toBe('accepted');
    expect(await create(named('CFOrg', 'cf', randomUUID()), 'carol')).toBe('accepted');
  });
});
