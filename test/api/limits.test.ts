import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask, installKinds, installPolicies, kubectl, kubectlJson, makeSpaceLike } from './kubectl.ts';

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
    ['too many finalizers', app({ finalizers: Object.keys(many(9)).map((key) => `example.com/${key}`) }), 'at most 8 finalizers'],
  ])('is refused by name: %s', async (_, object, said) => expect(await create(object)).toContain(said));

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
    expect(await create(binding(100, 512))).toBe('accepted');
    expect(await create(binding(101, 8))).toContain('at most 100 subjects');
    expect(await create(binding(1, 513))).toContain('names of at most 512 characters');
  });

  test('grows no more by one field manager after the other', async () => {
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
