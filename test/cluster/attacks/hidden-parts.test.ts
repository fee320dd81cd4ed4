// Attackers: a developer who lets instances run on without their app, where neither kf nor the manager of the space sees them; one whose autoscalers
// keep the cluster's controller busy; and managers who give themselves more than their org or space.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Place } from '../../support/developer.ts';
import { kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const group = 'korifi.cloudfoundry.org';
const world = new TestWorld();
let [here, elsewhere]: Place[] = [];
let [developer, spaceManager, orgManager]: Member[] = [];

const spaceOf = (place: Place | undefined): string => place?.space ?? '';
const orgOf = (place: Place | undefined): string => place?.org ?? '';

async function said(member: Member | undefined, args: readonly string[], input?: object): Promise<string> {
  const { code, stderr } = (await member?.kubectl(args, input)) ?? { code: -1, stderr: '' };
  return code === 0 ? 'done' : stderr;
}

async function namesOf(kind: string, guid: string): Promise<string[]> {
  const { items } = await kubectlJson<{ items: { metadata: { name: string } }[] }>(
    'get', kind, '-n', spaceOf(here), '-l', `${group}/app-guid=${guid}`,
  ); // prettier-ignore
  return items.map(({ metadata }) => metadata.name);
}

async function push(name: string): Promise<string> {
  await developer?.kf.ok('push', name, '-o', sample, '-m', '32M', '-k', '32M');
  return (await developer?.kf.ok('app', name, '--guid'))?.stdout.trim() ?? '';
}

beforeAll(async () => {
  here = await world.space();
  elsewhere = await world.space();
  developer = await world.member('spaceDeveloper', here);
  spaceManager = await world.member('spaceManager', here);
  orgManager = await world.member('organizationManager', { org: here.org });
});
afterAll(() => world.remove());

describe('a developer', () => {
  test('cannot delete an app so that its instances run on', async () => {
    const guid = await push('hidden');
    const app = ['cfapp', guid, '-n', spaceOf(here)];
    const finalizers = JSON.stringify({ metadata: { finalizers: ['orphan'] } });
    expect(await said(developer, ['delete', ...app, '--cascade=orphan', '--wait=false'])).toContain('is deleted with all that it runs');
    expect(await said(developer, ['patch', ...app, '--type=merge', '-p', finalizers])).toContain('is deleted with all that it runs');
    expect(await namesOf('pods', guid)).toHaveLength(1);
    expect(await said(developer, ['delete', ...app, '--wait=false'])).toBe('done');
    for (const kind of ['cfprocess', 'appworkload', 'statefulset', 'pods'])
      await until(`the end of every ${kind}`, async () => (await namesOf(kind, guid)).length === 0);
  });

  test('cannot make an autoscaler that asks for hundreds of metrics', async () => {
    const guid = await push('scaled');
    const [name = ''] = await namesOf('cfprocess', guid);
    const cpu = { type: 'Resource', resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '500m' } } };
    const scaler = (metrics: object[]): object => ({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name, namespace: spaceOf(here) },
      spec: {
        scaleTargetRef: { apiVersion: `${group}/v1alpha1`, kind: 'CFProcess', name },
        minReplicas: 1,
        maxReplicas: 2,
        metrics,
      },
    });
    const create = ['create', '-f', '-'];
    expect(await said(developer, create, scaler(Array<object>(900).fill(cpu)))).toContain('can follow at most 8 metrics');
    expect(await said(developer, create, scaler([cpu]))).toBe('done');
  });
});

describe('a manager', () => {
  const binding = (namespace: string, role: string, user = 'attacker'): object => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: `b-${randomUUID()}`, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
  const prefix = 'korifi-controllers';
  const refused = /forbidden/;

  test.each<[string, () => [Member | undefined, object]]>([
    ['of an org in another org', () => [orgManager, binding(orgOf(elsewhere), `${prefix}-organization-user`)]],
    ['of an org in a space of another org', () => [orgManager, binding(spaceOf(elsewhere), `${prefix}-space-developer`)]],
    ['of an org in the root namespace', () => [orgManager, binding('cf', `${prefix}-root-namespace-user`)]],
    ['of an org as an admin', () => [orgManager, binding(orgOf(here), `${prefix}-admin`)]],
    ['of an org as the controller', () => [orgManager, binding(orgOf(here), 'kf-controller-space')]],
    ['of an org with a role of Kubernetes', () => [orgManager, binding(spaceOf(here), 'edit')]],
    ['of a space in its org', () => [spaceManager, binding(orgOf(here), `${prefix}-organization-manager`)]],
    ['of a space as a manager of the org in the space', () => [spaceManager, binding(spaceOf(here), `${prefix}-organization-manager`)]],
    ['of a space in another space', () => [spaceManager, binding(spaceOf(elsewhere), `${prefix}-space-developer`)]],
  ])('%s gives no role', async (_, make) => {
    const [member, object] = make();
    expect(await said(member, ['create', '-f', '-'], object)).toMatch(refused);
  });

  test('of an org cannot give the org another quota, or change what limits its spaces', async () => {
    const note = JSON.stringify({ metadata: { annotations: { 'kf.cloudfoundry.org/quota': randomUUID() } } });
    const patch = (kind: string, name: string, ns: string, body: string): Promise<string> =>
      said(orgManager, ['patch', kind, name, '-n', ns, '--type=merge', '-p', body]);
    expect(await patch('cforg', orgOf(here), 'cf', note)).toContain('may change its labels and annotations, except those of the platform');
    expect(await patch('namespace', spaceOf(here), '', note)).toMatch(refused);
    expect(await patch('resourcequota', 'kf-limits', spaceOf(here), JSON.stringify({ spec: { hard: { pods: '9999' } } }))).toMatch(refused);
  });
});
