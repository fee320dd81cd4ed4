import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { ask, installKinds, installPolicies, kubectl, kubectlJson, makeNamespace, makeSpaceLike } from './kubectl.ts';

const run = Date.now().toString(36);
const ns = `limits-${run}`;
const group = 'korifi.cloudfoundry.org';
const apiVersion = `${group}/v1alpha1`;

beforeAll(async () => {
  await installKinds();
  await installPolicies();
  await makeSpaceLike(ns);
  await kubectl(['create', 'clusterrolebinding', `limits-${run}`, '--clusterrole=cluster-admin', '--user=alice']);
});
afterAll(async () => {
  await kubectl(['delete', 'clusterrolebinding', `limits-${run}`]);
});

const create = async (input: object): Promise<string> => {
  const { code, stderr } = await ask(['create', '--dry-run=server', '-f', '-'], { input, as: 'alice' });
  return code === 0 ? 'accepted' : stderr;
};

const app = (metadata: object = {}, spec: object = {}) => ({
  apiVersion,
  kind: 'CFApp',
  metadata: { name: 'a', namespace: ns, ...metadata },
  spec: { displayName: 'a', desiredState: 'STOPPED', lifecycle: { type: 'buildpack', data: { stack: '' } }, ...spec },
});
const process = (spec: object = {}) => ({
  apiVersion,
  kind: 'CFProcess',
  metadata: { name: 'p', namespace: ns },
  spec: {
    appRef: { name: 'a' },
    processType: 'web',
    memoryMB: 1,
    diskQuotaMB: 1,
    healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 1, timeoutSeconds: 1 } },
    ...spec,
  },
});
const route = (destinations: number) => ({
  apiVersion,
  kind: 'CFRoute',
  metadata: { name: 'r', namespace: ns },
  spec: {
    host: 'h',
    domainRef: { name: 'd', namespace: 'cf' },
    destinations: Array.from({ length: destinations }, (_, index) => ({ guid: `g${index}`, appRef: { name: 'a' }, processType: 'web' })),
  },
});
const statefulSet = (name: string, replicas: number) => ({
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name, namespace: ns },
  spec: {
    replicas,
    serviceName: name,
    selector: { matchLabels: { app: name } },
    // No pod may be created from it: the namespace does not admit one like this.
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'none.invalid/none' }] } },
  },
});

/** Runs `work` as it was possible before the policy existed. */
async function withoutPolicy(work: () => Promise<unknown>, name = 'kf-sizes'): Promise<void> {
  const probe = name === 'kf-sizes' ? app({ name: 'probe', labels: many(65) }) : statefulSet('probe', 1_001);
  const isObeyed = async (): Promise<boolean> => (await create(probe)) !== 'accepted';
  await kubectl(['delete', 'validatingadmissionpolicybinding', name]);
  try {
    await until(`policy ${name} to be gone`, async () => !(await isObeyed()));
    await work();
  } finally {
    await installPolicies();
    await until(`policy ${name} to be obeyed`, isObeyed);
  }
}
const managed = (fields: object): object[] => [
  { manager: 'm', operation: 'Update', apiVersion, fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': fields } },
];
const many = (count: number, length = 1): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'x'.repeat(length)]));

describe('an object that would fill memory', () => {
  test.each([
    ['a command of a megabyte', process({ command: 'x'.repeat(1_000_000) }), 'spec.command: Too long'],
    ['too many instances', process({ desiredInstances: 1001 }), 'spec.desiredInstances'],
    ['too many ports', process({ ports: Array.from({ length: 65 }, (_, port) => port) }), 'spec.ports: Too many'],
    ['a name of a megabyte', app({}, { displayName: 'x'.repeat(1_000_000) }), 'spec.displayName: Too long'],
    [
      'too many buildpacks',
      app({}, { lifecycle: { type: 'buildpack', data: { stack: '', buildpacks: Object.keys(many(17)) } } }),
      'buildpacks: Too many',
    ],
    ['too many destinations', route(65), 'spec.destinations: Too many'],
    ['too many labels', app({ labels: many(65) }), 'It has 65 labels; at most 64 are possible here'],
    ['too many annotations', app({ annotations: many(65) }), 'at most 64 annotations'],
    ['annotations of ours that are too long', app({ annotations: { [`${group}/x`]: 'x'.repeat(4_097) } }), 'at most 4096 characters'],
    ['annotations that are too long', app({ annotations: many(2, 40_000) }), 'with 65536 characters in all'],
    [
      'an owner with a long name',
      app({ ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x'.repeat(1_000), uid: 'u' }] }),
      'at most 8 owners',
    ],
    [
      'managed fields that are too long',
      app({ managedFields: managed({ ['f:x'.padEnd(140_000, 'x')]: {} }) }),
      'at most 131072 characters',
    ],
    [
      'managed fields that are too deep',
      app({ managedFields: managed({ 'f:a': { 'f:b': { 'f:c': { 'f:d': { 'f:e': { 'f:f': { 'f:g': {} } } } } } } }) }),
      'at most 131072 characters',
    ],
    ['too many finalizers', app({ finalizers: Object.keys(many(9)).map((key) => `example.com/${key}`) }), 'at most 8 finalizers'],
  ])('is refused, and the message names the field: %s', async (_, object, said) => expect(await create(object)).toContain(said));

  test('is accepted at its limits', async () => {
    expect(await create(process({ command: 'x'.repeat(8_192), desiredInstances: 1_000 }))).toBe('accepted');
    expect(await create(app({ labels: many(64), annotations: many(64, 1_024) }))).toBe('accepted');
    expect(await create(route(64))).toBe('accepted');
  });

  test('is refused as a role binding too', async () => {
    const binding = (count: number, length: number) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'b', namespace: ns },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: Object.keys(many(count)).map((key) => ({
        kind: 'User',
        apiGroup: 'rbac.authorization.k8s.io',
        name: key.padEnd(length, 'x'),
      })),
    });
    expect(await create(binding(20, 256))).toBe('accepted');
    expect(await create(binding(21, 8))).toContain('at most 20 subjects');
    expect(await create(binding(1, 257))).toContain('names of at most 256 characters');
    // Nobody reads the namespace of a User, and nothing else limits it.
    const [subject] = binding(1, 8).subjects;
    const far = { ...binding(0, 0), subjects: [{ ...subject, namespace: 'x'.repeat(1_000_000) }] };
    expect(await create(far)).toContain('namespaces of at most 63');
  });

  test('cannot grow through one field manager after the other', async () => {
    const apply = (manager: number) =>
      ask(['apply', '--server-side', `--field-manager=m${manager}`, '-f', '-'], {
        input: { ...app({ name: 'managed', labels: { [`l${manager % 40}`]: 'x' } }), spec: manager === 0 ? app().spec : undefined },
        as: 'alice',
      });
    const answers = [];
    for (let manager = 0; manager < 70; manager += 1) answers.push(await apply(manager));
    expect(answers.at(-1)?.stderr).toContain('At most 64 field managers');
    const { metadata } = await kubectlJson<{ metadata: { managedFields: unknown[] } }>([
      'get',
      'cfapp',
      'managed',
      '-n',
      ns,
      '--show-managed-fields',
    ]);
    expect(metadata.managedFields.length).toBeLessThanOrEqual(64);
  });
});

test('an object from before the limits can still be changed where it is not too large', async () => {
  await kubectl(['create', '-f', '-'], { input: process() });
  const crd = 'cfprocesses.korifi.cloudfoundry.org';
  const schema = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties';
  const set = (patch: object[]) => kubectl(['patch', 'crd', crd, '--type=json', '-p', JSON.stringify(patch)]);
  await set([{ op: 'replace', path: `${schema}/command/maxLength`, value: 100_000 }]);
  await kubectl(['patch', 'cfprocess', 'p', '-n', ns, '--type=merge', '-p', JSON.stringify({ spec: { command: 'x'.repeat(50_000) } })]);
  await set([{ op: 'replace', path: `${schema}/command/maxLength`, value: 8_192 }]);
  const answer = await ask(['patch', 'cfprocess', 'p', '-n', ns, '--type=merge', '-p', '{"spec":{"desiredInstances":2}}'], { as: 'alice' });
  expect(answer).toMatchObject({ code: 0 });
});

describe('an object from before the limits that is too large', () => {
  const large = (name: string) => app({ name, finalizers: ['example.com/held'], labels: many(3_000), annotations: many(65) });
  const patch = (name: string, body: object) =>
    ask(['patch', 'cfapp', name, '-n', ns, '--type=merge', '-p', JSON.stringify(body)], { as: 'alice' });

  test('can still be deleted, and people can remove its finalizers', async () => {
    await withoutPolicy(() => kubectl(['create', '-f', '-'], { input: large('from-before') }));
    await kubectl(['delete', 'cfapp', 'from-before', '-n', ns, '--wait=false'], { as: 'alice' });
    expect((await patch('from-before', { metadata: { labels: { more: 'x' } } })).stderr).toContain('labels; at most 64 are possible here');
    expect((await patch('from-before', { metadata: { annotations: { more: 'x' } } })).stderr).toContain('at most 64 annotations');
    expect(await patch('from-before', { metadata: { finalizers: null } })).toMatchObject({ code: 0 });
    expect((await ask(['get', 'cfapp', 'from-before', '-n', ns])).stderr).toContain('NotFound');
  });

  test('cannot be enlarged by an update during its deletion either', async () => {
    await kubectl(['create', '-f', '-'], { input: app({ name: 'going', finalizers: ['example.com/held'] }), as: 'alice' });
    await kubectl(['delete', 'cfapp', 'going', '-n', ns, '--wait=false'], { as: 'alice' });
    expect((await patch('going', { metadata: { labels: many(3_000) } })).stderr).toContain('at most 64 are possible here');
    expect((await patch('going', { metadata: { annotations: many(1, 70_000) } })).stderr).toContain('with 65536 characters in all');
    const owners = [{ apiVersion: 'v1', kind: 'Pod', name: 'x'.repeat(70_000), uid: 'u' }];
    expect((await patch('going', { metadata: { ownerReferences: owners } })).stderr).toContain('at most 8 owners');
    expect(await patch('going', { metadata: { finalizers: null } })).toMatchObject({ code: 0 });
  });
});

describe('a StatefulSet of a space', () => {
  const hpa = 'system:serviceaccount:kube-system:horizontal-pod-autoscaler';
  const scale = (name: string, replicas: number, as: string) => {
    const path = `/apis/apps/v1/namespaces/${ns}/statefulsets/${name}/scale`;
    const input = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name, namespace: ns }, spec: { replicas } };
    return ask(['replace', '--raw', path, '-f', '-'], { input, as });
  };
  const refused = (count: number): string => `A StatefulSet may have at most 1000 instances here, not ${count}`;

  test('has at most 1000 instances, also for admins', async () => {
    // No pod may be created from it.
    await kubectl(['create', 'quota', 'no-pods', '-n', ns, '--hard=pods=0']);
    await kubectl(['create', '-f', '-'], { input: statefulSet('s', 0), as: 'alice' });
    expect((await scale('s', 2_147_483_647, 'alice')).stderr).toContain(refused(2_147_483_647));
    expect((await scale('s', 1_001, hpa)).stderr).toContain(refused(1_001));
    expect(await scale('s', 1_000, hpa)).toMatchObject({ code: 0 });
    expect(await scale('s', 0, 'alice')).toMatchObject({ code: 0 });
    expect(await create(statefulSet('t', 1_001))).toContain(refused(1_001));
    const patch = ['patch', 'sts', 's', '-n', ns, '--type=merge', '-p', '{"spec":{"replicas":1001}}'];
    expect((await ask(patch, { as: 'alice' })).stderr).toContain(refused(1_001));
  });

  test('keeps a number from before the limit, and can be scaled down', async () => {
    await withoutPolicy(() => kubectl(['create', '-f', '-'], { input: statefulSet('many', 1_200) }), 'kf-instances');
    expect(await ask(['label', 'sts', 'many', '-n', ns, 'a=b'], { as: 'alice' })).toMatchObject({ code: 0 });
    expect((await scale('many', 1_201, 'alice')).stderr).toContain(refused(1_201));
    expect(await scale('many', 1_100, 'alice')).toMatchObject({ code: 0 });
    expect(await scale('many', 1, 'alice')).toMatchObject({ code: 0 });
    await kubectl(['delete', 'sts', 'many', '-n', ns], { as: 'alice' });
  });
});

test('a Secret of a space has at most 600 KiB, and the same limit of labels as other objects', async () => {
  const secret = (bytes: number, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', namespace: ns, ...metadata },
    stringData: { half: 'x'.repeat(bytes / 2), rest: 'x'.repeat(bytes / 2) },
  });
  const refused = 'A Secret may hold at most 600 KiB here';
  expect(await create(secret(600_000))).toBe('accepted');
  expect(await create(secret(700_000))).toContain(refused);
  expect(await create(secret(8, { labels: many(3_000, 60) }))).toContain('at most 64 are possible here');

  await withoutPolicy(() => kubectl(['create', '-f', '-'], { input: secret(700_000, { finalizers: ['example.com/held'] }) }));
  const patch = (body: object) => ask(['patch', 'secret', 's', '-n', ns, '--type=merge', '-p', JSON.stringify(body)], { as: 'alice' });
  expect((await patch({ stringData: { more: 'x' } })).stderr).toContain(refused);
  expect(await patch({ metadata: { finalizers: null } })).toMatchObject({ code: 0 });
});

test('a large Secret of a space has the label with which the gateway leaves it out of its memory, whoever writes it', async () => {
  const secret = (name: string, bytes: number, namespace = ns) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: { owner: 'me' } },
    stringData: { text: 'x'.repeat(bytes) },
  });
  const ownerOf = async (name: string, namespace = ns): Promise<string> =>
    kubectl(['get', 'secret', name, '-n', namespace, '-o', 'jsonpath={.metadata.labels.owner}']);
  const patch = (name: string, body: object) =>
    kubectl(['patch', 'secret', name, '-n', ns, '--type=merge', '-p', JSON.stringify(body)], { as: 'alice' });
  await until('the policy to be obeyed', async () => {
    const probe = ['create', '--dry-run=server', '-o', 'jsonpath={.metadata.labels.owner}', '-f', '-'];
    return (await kubectl(probe, { input: secret('probe', 400_000) })) === 'helm';
  });
  await kubectl(['create', '-f', '-'], { input: [secret('large', 400_000), secret('small', 16_000)], as: 'alice' });
  expect([await ownerOf('large'), await ownerOf('small')]).toEqual(['helm', 'me']);

  await patch('large', { metadata: { labels: { owner: null } } });
  await patch('small', { metadata: { annotations: { 'example.com/more': 'x'.repeat(40_000) } } });
  expect([await ownerOf('large'), await ownerOf('small')]).toEqual(['helm', 'helm']);

  // Those of setup may be certificates of the gateway.
  const system = `limits-system-${run}`;
  await makeNamespace(system, { 'kf.cloudfoundry.org/managed-by': 'kf', 'kf.cloudfoundry.org/part-of': 'setup' });
  await kubectl(['create', '-f', '-'], { input: secret('large', 400_000, system) });
  expect(await ownerOf('large', system)).toBe('me');
});
