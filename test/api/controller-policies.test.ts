// The policies limit the controller's account even if it has every right: here it is cluster-admin.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, installKinds, installPolicies, kubectl, makeNamespace } from './kubectl.ts';

const run = Date.now().toString(36);
const [org, space, foreign, node] = ['org', 'space', 'foreign', 'node'].map((name) => `${name}-c${run}`) as [
  string,
  string,
  string,
  string,
];
const controller = 'system:serviceaccount:kf-system:kf-controller';
const group = 'korifi.cloudfoundry.org';
const mark = { 'kf.cloudfoundry.org/managed-by': 'kf' };
const rbac = 'rbac.authorization.k8s.io';
const account = { kind: 'ServiceAccount', name: 'kf-controller', namespace: 'kf-system' };
const user = (name: string) => ({ apiGroup: rbac, kind: 'User', name });
const people = (name: string) => ({ apiGroup: rbac, kind: 'Group', name });

beforeAll(async () => {
  await installKinds();
  await installPolicies();
  await makeNamespace(org, { ...mark, [`${group}/org-guid`]: org });
  await makeNamespace(space, { ...mark, [`${group}/org-guid`]: org, [`${group}/space-guid`]: space });
  await makeNamespace(node, mark);
  await makeNamespace(foreign);
  // Far more than setup grants: everything that is refused below is refused by the policies alone.
  const metadata = { name: `controller-policies-${run}` };
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: 'cluster-admin' };
  const input = { apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata, roleRef, subjects: [account] };
  await kubectl(['apply', '-f', '-'], { input });
});

afterAll(async () => {
  await kubectl(['delete', 'clusterrolebinding', `controller-policies-${run}`]);
});

async function create(input: object, as: string | undefined = controller): Promise<string> {
  const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input, as });
  return code === 0 ? 'accepted' : stderr;
}

const configMap = (namespace: string, name = 'x') => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } });

describe("the controller's account can write", () => {
  test('only in namespaces of orgs and spaces, the root namespace and its own', async () => {
    for (const ns of [org, space, 'cf', 'kf-system']) expect(await create(configMap(ns))).toBe('accepted');
    for (const ns of [foreign, node, 'kube-system'])
      expect(await create(configMap(ns))).toContain(
        `The kf controller may not write in namespace ${ns}, which is none of an org or space of kf`,
      );
    const refusal = `may not write in namespace ${foreign}`;
    await kubectl(['create', '-f', '-'], { input: configMap(foreign) });
    expect((await ask(['delete', 'configmap', '-n', foreign, 'x'], { as: controller })).stderr).toContain(refusal);
    expect((await ask(['label', 'configmap', '-n', foreign, 'x', 'a=b'], { as: controller })).stderr).toContain(refusal);
  });

  test('may write addresses in the namespace internal, and nothing else there', async () => {
    await makeNamespace('internal', mark);
    const slice = (namespace: string): object => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'x', namespace },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], hostname: 'shop' }],
    });
    expect(await create(slice('internal'))).toBe('accepted');
    expect(await create(slice('kube-system'))).toContain('may not write in namespace kube-system');
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'apps', namespace: 'internal' }, spec: { clusterIP: 'None' } };
    for (const object of [configMap('internal'), service]) expect(await create(object)).toContain('may not write in namespace internal');
  });

  test('and the policy affects no other user', async () => {
    expect((await ask(['create', '--dry-run=server', '-f', '-'], { input: configMap(foreign, 'y') })).code).toBe(0);
  });
});

describe('namespaces and the controller', () => {
  const marks = { ...mark, [`${group}/org-guid`]: 'x', 'pod-security.kubernetes.io/enforce': 'restricted' };
  const namespace = (labels: object, annotations: object = { 'kf.cloudfoundry.org/owner-uid': 'u' }) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: `new-${run}`, labels, annotations },
  });

  test('it creates those of orgs and spaces, with their labels and their owner', async () => {
    expect(await create(namespace(marks))).toBe('accepted');
    expect(await create(namespace(mark))).toContain('The kf controller may only change namespaces of orgs and spaces that kf made');
    expect(await create(namespace({}))).toContain('is none');
    expect(await create(namespace(marks, {}))).toContain(`may not change whom namespace new-${run} belongs to`);
  });

  test.each([
    ['privileged', { 'pod-security.kubernetes.io/enforce': 'privileged' }],
    ['baseline', { 'pod-security.kubernetes.io/enforce': 'baseline' }],
    ['restricted of an old version', { 'pod-security.kubernetes.io/enforce-version': 'v1.19' }],
  ])('it cannot create one with PodSecurity %s', async (_what, labels) => {
    expect(await create(namespace({ ...marks, ...labels }))).toContain('may only make namespaces with PodSecurity restricted');
  });

  test('it cannot create one without PodSecurity', async () => {
    expect(await create(namespace({ ...mark, [`${group}/org-guid`]: 'x' }))).toContain('with PodSecurity restricted');
  });

  test('it can neither take over nor delete namespaces of others', async () => {
    const refusal = `The kf controller may only change namespaces of orgs and spaces that kf made, and ${foreign} is none`;
    const takeOver = ['label', 'namespace', foreign, 'kf.cloudfoundry.org/managed-by=kf', `${group}/org-guid=x`];
    expect((await ask(takeOver, { as: controller })).stderr).toContain(refusal);
    expect((await ask(['delete', 'namespace', foreign], { as: controller })).stderr).toContain(refusal);
    for (const name of ['kf-system', 'cf'])
      expect((await ask(['delete', 'namespace', name], { as: controller })).stderr).toContain(`and ${name} is none`);
    const unmark = ['label', 'namespace', org, 'kf.cloudfoundry.org/managed-by-'];
    expect((await ask(unmark, { as: controller })).stderr).toContain(`and ${org} is none`);
  });

  test('it can neither change the owner nor weaken PodSecurity of a namespace that it created', async () => {
    const mine = { ...namespace(marks), metadata: { ...namespace(marks).metadata, name: `mine-${run}` } };
    await kubectl(['create', '-f', '-'], { input: mine, as: controller });
    const change = async (...args: string[]): Promise<string> => (await ask([...args, '--overwrite'], { as: controller })).stderr;
    expect(await change('annotate', 'namespace', `mine-${run}`, 'kf.cloudfoundry.org/owner-uid=other')).toContain(
      `may not change whom namespace mine-${run} belongs to`,
    );
    expect(await change('annotate', 'namespace', `mine-${run}`, 'kf.cloudfoundry.org/owner-uid-')).toContain('belongs to');
    expect(await change('label', 'namespace', `mine-${run}`, 'pod-security.kubernetes.io/enforce=privileged')).toContain(
      'PodSecurity restricted',
    );
    expect(await change('label', 'namespace', `mine-${run}`, 'touched=yes')).toBe('');
  });
});

describe("role bindings of the controller's account", () => {
  const binding = (role: string, subjects: object[], namespace: string | undefined, from?: string, name = 'x') => ({
    apiVersion: `${rbac}/v1`,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(from === undefined ? {} : { labels: { 'cloudfoundry.org/propagated-from': from } }),
    },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
    subjects,
  });
  const [admin, developer, own] = ['korifi-controllers-admin', 'korifi-controllers-space-developer', 'kf-controller-space'];
  const alice = [user('alice')];

  test('it copies those of the level above, and creates its own in orgs and spaces', async () => {
    expect(await create(binding(admin, alice, org, 'cf'))).toBe('accepted');
    expect(await create(binding(admin, alice, space, org))).toBe('accepted');
    expect(await create(binding(admin, [{ kind: 'ServiceAccount', name: 'ci', namespace: 'people' }], space, org))).toBe('accepted');
    for (const ns of [org, space]) expect(await create(binding(own, [account], ns, undefined, own))).toBe('accepted');
  });

  test.each([
    ['the root namespace', 'cf'],
    ['its own namespace', 'kf-system'],
    ['a namespace of setup that is privileged', node],
    ['a namespace that kf did not make', foreign],
  ])('it creates none in %s, not even its own', async (_what, ns) => {
    const refusal = /may only bind roles in namespaces of orgs and spaces|may not write in namespace/;
    expect(await create(binding(own, [account], ns, undefined, own))).toMatch(refusal);
    expect(await create(binding(admin, alice, ns, 'cf'))).toMatch(refusal);
  });

  test('it creates none for the whole cluster, and no roles', async () => {
    expect(await create(binding(admin, alice, undefined, 'cf'))).toContain('may only bind roles in namespaces of orgs and spaces');
    const role = { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name: 'x', namespace: org }, rules: [] };
    expect(await create(role)).toContain('may only bind roles in namespaces of orgs and spaces');
    expect(await create({ ...role, kind: 'ClusterRole', metadata: { name: 'x' } })).toContain('may only bind roles');
  });

  test('in the root namespace it makes people users of the installation, and nothing else', async () => {
    const users = 'korifi-controllers-root-namespace-user';
    const made = (subjects: object[], labels: object = mark, annotations: object = {}) => {
      const plain = binding(users, subjects, 'cf');
      return { ...plain, metadata: { ...plain.metadata, labels, annotations } };
    };
    expect(await create(made(alice))).toBe('accepted');
    expect(await create(made(alice, {}))).toContain('may only bind roles in namespaces of orgs and spaces');
    expect(await create(made(alice, mark, { 'cloudfoundry.org/propagate-cf-role': 'true' }))).toContain(
      'may only bind roles in namespaces',
    );
    expect(await create(made([account]))).toContain('may not give roles of people to itself');
    expect(await create(made([people('system:authenticated')]))).toContain('may not give roles of people to itself');
    await kubectl(['create', '-f', '-'], {
      input: { ...binding(users, alice, 'cf'), metadata: { name: `admins-${run}`, namespace: 'cf' } },
    });
    const gone = await ask(['delete', '--dry-run=server', 'rolebinding', '-n', 'cf', `admins-${run}`], { as: controller });
    expect(gone.stderr).toContain('may only bind roles in namespaces of orgs and spaces');
  });

  test('it grants nothing that the level above does not hand down', async () => {
    const refusal = 'may only bind the roles of people that the org or the root namespace hands down, and its own role to itself';
    expect(await create(binding(developer, alice, space))).toContain(refusal);
    expect(await create(binding(developer, alice, space, 'cf'))).toContain(refusal);
    expect(await create(binding(admin, alice, org, org))).toContain(refusal);
    expect(await create(binding('cluster-admin', alice, space, org))).toContain(refusal);
    expect(await create(binding('edit', alice, space, org))).toContain(refusal);
    expect(await create(binding(own, alice, space, undefined, own))).toContain(refusal);
    expect(await create(binding(own, [account, ...alice], space, undefined, own))).toContain(refusal);
    expect(await create(binding(own, [account], space, org))).toContain(refusal);
  });

  test.each([
    ['itself', account],
    ['itself as a user', user(controller)],
    ['another account of kf-system', { ...account, name: 'default' }],
    ['all accounts of kf-system', people('system:serviceaccounts:kf-system')],
    ['all accounts', people('system:serviceaccounts')],
    ['everybody', people('system:authenticated')],
    ['who has no name', user('system:anonymous')],
    ['the account of apps', { kind: 'ServiceAccount', name: 'korifi-app', namespace: 'elsewhere' }],
    ['an account of the space', { kind: 'ServiceAccount', name: 'default', namespace: space }],
    ['an account of the org', { kind: 'ServiceAccount', name: 'default', namespace: org }],
  ])('cannot bind a role for people to %s', async (_who, subject) => {
    for (const role of [admin, developer])
      expect(await create(binding(role, [...alice, subject], space, org))).toContain(
        'may not give roles of people to itself, to accounts of apps, or to everybody',
      );
  });
});

describe('pods and the controller', () => {
  const spec = (more: object = {}) => ({
    automountServiceAccountToken: false,
    containers: [{ name: 'c', image: 'i' }],
    ...more,
  });
  const pod = (namespace: string, more: object = {}, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'x', namespace, ...metadata },
    spec: spec(more),
  });
  const set = (more: object = {}) => ({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'x', namespace: space },
    spec: {
      serviceName: '',
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: spec(more) },
    },
  });
  const job = (more: object = {}) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'x', namespace: space },
    spec: { template: { spec: { restartPolicy: 'Never', ...spec(more) } } },
  });

  test('it creates those of apps, tasks and builds', async () => {
    expect(await create(set({ serviceAccountName: 'korifi-app' }))).toBe('accepted');
    expect(await create(job({ serviceAccountName: 'korifi-task' }))).toBe('accepted');
    expect(await create(job())).toBe('accepted');
  });

  test('it cannot create one with a token', async () => {
    const token = { projected: { sources: [{ serviceAccountToken: { path: 't' } }] }, name: 'v' };
    for (const make of [(more: object) => pod(space, more), set, job]) {
      expect(await create(make({ automountServiceAccountToken: true }))).toContain('may not make pods that get a token of the API server');
      expect(await create(make({ volumes: [token] }))).toContain('may not make pods that get a token');
    }
  });

  test('it cannot create one that runs as an account with rights', async () => {
    for (const make of [set, job])
      expect(await create(make({ serviceAccountName: 'deployer' }))).toContain('may not make pods that run as the account deployer');
  });

  test('in kf-system it creates only the pod that reads the builder image, without mounts and without labels of other pods', async () => {
    const look = { name: 'kf-builder-info' };
    const refusal = 'may make no pod in kf-system but the one that looks into the builder image';
    expect(await create(pod('kf-system', {}, { ...look, labels: mark }))).toBe('accepted');
    expect(await create(pod('kf-system'))).toContain(refusal);
    expect(await create(pod('kf-system', {}, { ...look, labels: { ...mark, app: 'kf-registry' } }))).toContain(refusal);
    const key = { volumes: [{ name: 'key', secret: { secretName: 'kf-registry-key' } }] };
    expect(await create(pod('kf-system', key, look))).toContain(refusal);
    expect(await create({ ...job(), metadata: { name: 'x', namespace: 'kf-system' } })).toContain(refusal);
  });

  test('it cannot create a Secret that the cluster fills with a token', async () => {
    const secret = (type: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'x', namespace: space, annotations: { 'kubernetes.io/service-account.name': 'korifi-app' } },
      type,
    });
    expect(await create(secret('kubernetes.io/service-account-token'))).toContain(
      'may not make Secrets that the cluster fills with tokens',
    );
    expect(await create(secret('Opaque'))).toBe('accepted');
  });

  test('it cannot create a Service that takes addresses or ports of others', async () => {
    const service = (more: object) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'x', namespace: space },
      spec: { ports: [{ port: 80 }], ...more },
    });
    const refusal = 'may only make Services of type ClusterIP without addresses from outside';
    expect(await create(service({}))).toBe('accepted');
    expect(await create(service({ externalIPs: ['10.0.0.1'] }))).toContain(refusal);
    expect(await create(service({ type: 'NodePort' }))).toContain(refusal);
    expect(await create(service({ type: 'LoadBalancer' }))).toContain(refusal);
    expect(await create(service({ type: 'ExternalName', externalName: 'bank.example.com' }))).toContain(refusal);
  });
});
