// What managers of orgs and spaces and supporters may change of an object, where RBAC alone would allow all of it.

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { cfRoles } from '../../src/lib/api/roles.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, makeNamespace } from './kubectl.ts';
import { until } from '../support/until.ts';

const [org, otherOrg, space] = [randomUUID(), randomUUID(), randomUUID()];
const group = 'korifi.cloudfoundry.org';
const mark = { 'kf.cloudfoundry.org/managed-by': 'kf' };
const place = (kind: string, name: string, namespace: string) => ({
  apiVersion: `${group}/v1alpha1`,
  kind,
  metadata: { name, namespace, labels: { [`${group}/ready`]: 'True' } },
  spec: { displayName: name },
});

async function give(user: string, role: keyof typeof cfRoles, namespace: string): Promise<void> {
  const binding = buildRoleBinding({ role: cfRoles[role], subject: { user }, namespace, guid: randomUUID() });
  await kubectl(['apply', '--server-side', '-f', '-'], { input: binding });
}

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeNamespace(org, { ...mark, [`${group}/org-guid`]: org });
  await makeNamespace(space, { ...mark, [`${group}/org-guid`]: org, [`${group}/space-guid`]: space });
  await kubectl(['create', '-f', '-'], {
    input: [place('CFOrg', org, 'cf'), place('CFOrg', otherOrg, 'cf'), place('CFSpace', space, org)],
  });
  for (const user of ['orla', 'sam', 'dora', 'sue']) {
    await give(user, 'cfUser', 'cf');
    await give(user, 'organizationUser', org);
  }
  await give('orla', 'organizationManager', org);
  // The controller's copy.
  await give('orla', 'organizationManager', space);
  await give('sam', 'spaceManager', space);
  await give('dora', 'spaceDeveloper', space);
  await give('sue', 'spaceSupporter', space);
  await until('the rights', async () => (await ask(['auth', 'can-i', 'patch', `cforgs.${group}`, '-n', org], { as: 'orla' })).code === 0);
});

/** The refusal, or nothing. */
async function patch(as: string, kind: string, namespace: string, name: string, body: object): Promise<string> {
  const { code, stderr } = await ask(['patch', kind, '-n', namespace, name, '--type=merge', '-p', JSON.stringify(body)], { as });
  return code === 0 ? 'done' : stderr;
}

const label = { metadata: { labels: { cost: '42', 'example.com/team': 'a' } } };
const onlyManagers = 'Only a manager of';
const onlyLabels = 'may change its labels and annotations, except those of the platform, and nothing else of it';
const more: [string, object][] = [
  ['its name', { spec: { displayName: 'other' } }],
  ['labels of Korifi', { metadata: { labels: { [`${group}/ready`]: 'False' } } }],
  ['labels of Korifi away', { metadata: { labels: { [`${group}/ready`]: null } } }],
  ['labels of Kubernetes', { metadata: { labels: { 'kubernetes.io/x': 'y' } } }],
  ['annotations of kf', { metadata: { annotations: { 'kf.cloudfoundry.org/owner-uid': 'x' } } }],
  ['finalizers', { metadata: { finalizers: ['kf.test/never'] } }],
];

describe('an org', () => {
  test('is labelled by its manager, and by no other user', async () => {
    expect(await patch('orla', 'cforg', 'cf', org, label)).toBe('done');
    expect(await patch('orla', 'cforg', 'cf', otherOrg, label)).toContain(onlyManagers);
    for (const as of ['sam', 'dora']) expect(await patch(as, 'cforg', 'cf', org, label)).toContain(onlyManagers);
  });

  test.each(more)('keeps %s', async (_, body) => {
    expect(await patch('orla', 'cforg', 'cf', org, body)).toContain(onlyLabels);
  });

  test('is changed by an admin as before', async () => {
    await give('ada', 'admin', 'cf');
    expect(await patch('ada', 'cforg', 'cf', otherOrg, { spec: { displayName: 'renamed' } })).toBe('done');
  });
});

describe('a space', () => {
  test('is labelled by its managers, and by no other user of the org', async () => {
    for (const as of ['sam', 'orla']) expect(await patch(as, 'cfspace', org, space, label)).toBe('done');
    for (const as of ['dora', 'sue']) expect(await patch(as, 'cfspace', org, space, label)).toContain(onlyManagers);
  });

  test.each(more)('keeps %s', async (_, body) => {
    expect(await patch('sam', 'cfspace', org, space, body)).toContain(onlyLabels);
  });
});

describe('a supporter', () => {
  const app = {
    ...place('CFApp', 'shop', space),
    spec: { displayName: 'shop', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  };
  const process = {
    ...place('CFProcess', 'shop-web', space),
    spec: {
      ...{ appRef: { name: 'shop' }, processType: 'web', desiredInstances: 1, memoryMB: 64, diskQuotaMB: 64 },
      healthCheck: { type: 'port', data: { timeoutSeconds: 60, invocationTimeoutSeconds: 1 } },
    },
  };
  const task = { ...place('CFTask', 'migrate', space), spec: { appRef: { name: 'shop' }, command: 'true' } };
  beforeAll(async () => void (await kubectl(['create', '-f', '-'], { input: [app, process, task] })));
  const refusal = 'A SpaceSupporter may start, stop and scale apps, and end tasks, and change nothing else of them';
  const started = { 'kf.cloudfoundry.org/deploy-id': 'd', [`${group}/app-rev`]: '1', 'kf.cloudfoundry.org/changed-by': 'sue' };
  const sidecars = [{ name: 'spy', command: 'env' }];
  // The cluster deletes an object whose owner does not exist.
  const orphan = { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: randomUUID() }] };
  const blocked = { finalizers: ['kf.test/never'] };

  test('starts, stops and scales an app, gives it another droplet, and ends a task', async () => {
    const start = { metadata: { annotations: started }, spec: { desiredState: 'STARTED', currentDropletRef: { name: 'd' } } };
    expect(await patch('sue', 'cfapp', space, 'shop', start)).toBe('done');
    const held = { metadata: { annotations: { 'kf.cloudfoundry.org/held': null, 'kf.cloudfoundry.org/unstaged': null } } };
    expect(await patch('sue', 'cfapp', space, 'shop', held)).toBe('done');
    expect(await patch('sue', 'cfprocess', space, 'shop-web', { spec: { desiredInstances: 2, memoryMB: 128 } })).toBe('done');
    expect(await patch('sue', 'cftask', space, 'migrate', { spec: { canceled: true } })).toBe('done');
  });

  test.each([
    ['cfapp', 'shop', { spec: { displayName: 'other' } }],
    ['cfapp', 'shop', { spec: { envSecretName: 'other' } }],
    ['cfapp', 'shop', { metadata: { labels: { 'kf.cloudfoundry.org/ssh': 'disabled' } } }],
    ['cfapp', 'shop', { metadata: { annotations: { 'kf.cloudfoundry.org/max-in-flight': '9' } } }],
    ['cfprocess', 'shop-web', { spec: { command: 'env' } }],
    ['cfprocess', 'shop-web', { spec: { healthCheck: { type: 'process' } } }],
    ['cfprocess', 'shop-web', { spec: { sidecars } }],
    ['cfprocess', 'shop-web', { spec: { ports: [9000] } }],
    ['cftask', 'migrate', { spec: { command: 'env' } }],
    ['cftask', 'migrate', { spec: { displayName: 'other' } }],
  ])('changes nothing else of it: %s %s %j', async (kind, name, body) => {
    expect(await patch('sue', kind, space, name, body)).toContain(refusal);
    expect(await patch('dora', kind, space, name, body)).toBe('done');
  });

  test.each([
    ['cfapp', 'shop'],
    ['cfprocess', 'shop-web'],
    ['cftask', 'migrate'],
  ])('neither makes the cluster delete it nor keeps it from being deleted: %s %s', async (kind, name) => {
    for (const metadata of [orphan, blocked]) expect(await patch('sue', kind, space, name, { metadata })).toContain(refusal);
  });
});

describe('an autoscaler', () => {
  const target = { apiVersion: `${group}/v1alpha1`, kind: 'CFProcess', name: 'shop-web' };
  const metric = (type: string): object =>
    type === 'Resource'
      ? { type, resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '500m' } } }
      : { type, external: { metric: { name: 'queue' }, target: { type: 'AverageValue', averageValue: '1' } } };
  const spec = { scaleTargetRef: target, minReplicas: 1, maxReplicas: 3, metrics: [metric('Resource')] };

  const step = { type: 'Pods', value: 1, periodSeconds: 15 };

  async function create(as: string, name: string, change: object, annotations = {}): Promise<string> {
    const metadata = { name, namespace: space, annotations };
    const input = { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata, spec: { ...spec, ...change } };
    const { code, stderr } = await ask(['create', '-f', '-'], { as, input });
    return code === 0 ? 'done' : stderr;
  }

  test('is made, changed and deleted by a developer, and by no supporter', async () => {
    expect(await create('sue', 'by-sue', {})).toContain('cannot create resource "horizontalpodautoscalers"');
    expect(await create('dora', 'web', {})).toBe('done');
    expect(await patch('dora', 'hpa', space, 'web', { spec: { maxReplicas: 5 } })).toBe('done');
    expect((await ask(['delete', 'hpa', '-n', space, 'web'], { as: 'dora' })).code).toBe(0);
  });

  test.each([
    ['a set of instances', { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web' } }, 'can only scale a CFProcess'],
    ['a kind of that name elsewhere', { scaleTargetRef: { ...target, apiVersion: 'example.com/v1' } }, 'can only scale a CFProcess'],
    ['too many instances', { maxReplicas: 1_001 }, 'can set at most 1000 instances'],
    ['a metric from outside', { metrics: [metric('External')] }, 'can only follow the use of CPU and memory'],
    ['metrics that keep the controller of all busy', { metrics: Array(9).fill(metric('Resource')) }, 'can follow at most 8 metrics'],
    ['a long behavior', { behavior: { scaleUp: { policies: Array(9).fill(step) } } }, 'at most 8 policies for each direction'],
    ['a long behavior downwards', { behavior: { scaleDown: { policies: Array(9).fill(step) } } }, 'at most 8 policies for each direction'],
  ])('is refused for %s', async (_what, change, text) => {
    expect(await create('dora', 'bad', change)).toContain(text);
  });

  test('is refused for large annotations, and made with all that a user needs', async () => {
    expect(await create('dora', 'bad', {}, { note: 'x'.repeat(16_400) })).toContain('at most 16384 characters');
    const behavior = { scaleUp: { policies: Array(8).fill(step) }, scaleDown: { policies: Array(8).fill(step) } };
    expect(await create('dora', 'full', { metrics: Array(8).fill(metric('Resource')), behavior }, { note: 'x'.repeat(16_000) })).toBe(
      'done',
    );
  });
});
