// Kubernetes counts every resource that the quota of a space or an org names. It accepts an unknown name, but such a limit has no effect.

import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { limitsName } from '../../src/lib/api/group.ts';
import { buildLimits, limitsOf, type LimitedPlace, type Limits } from '../../src/templates/limits.ts';
import { until } from '../support/until.ts';
import { installKinds, kubectl, kubectlJson, makeSpaceLike } from './kubectl.ts';

const run = Date.now().toString(36);
const group = 'korifi.cloudfoundry.org';
const misspelt = `count/cfapp.${group}`;
/** The requests of the pod: `requests.…` of a quota counts them. */
const requests: Record<string, string> = { memory: '64Mi', 'ephemeral-storage': '32Mi' };
const container = { name: 'c', image: 'none.invalid/none', resources: { requests } };
const template = { metadata: { labels: { app: 'counted' } }, spec: { containers: [container] } };
const rbac = 'rbac.authorization.k8s.io';

/** One object of each kind that is not kf's; only the Pod starts a pod. */
const others = [
  { apiVersion: 'v1', kind: 'Pod', spec: template.spec },
  { apiVersion: 'v1', kind: 'Secret' },
  { apiVersion: 'v1', kind: 'ConfigMap' },
  { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } },
  {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    spec: { replicas: 0, serviceName: 'counted', selector: { matchLabels: template.metadata.labels }, template },
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    spec: { suspend: true, template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
  },
  {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    spec: { scaleTargetRef: { apiVersion: `${group}/v1alpha1`, kind: 'CFProcess', name: 'counted' }, maxReplicas: 2 },
  },
  { apiVersion: `${rbac}/v1`, kind: 'RoleBinding', roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'view' } },
  { apiVersion: `${group}/v1alpha1`, kind: 'CFSpace', spec: { displayName: 'counted' } },
  { apiVersion: `${group}/v1alpha1`, kind: 'CFQuota', spec: { displayName: 'counted' } },
  {
    apiVersion: `${group}/v1alpha1`,
    kind: 'CFNetworkPolicy',
    spec: { appRef: { name: 'a' }, direction: 'accepts', peer: { space: 's', app: 'b', uid: 'u' }, protocol: 'tcp', port: 8080 },
  },
].map((object) => ({ ...object, metadata: { name: object.kind === 'CFSpace' ? '44444444-4444-4444-8444-444444444444' : 'counted' } }));

interface Quota {
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

const statusOf = async (ns: string) => (await kubectlJson<Quota>(['get', 'resourcequota', limitsName, '-n', ns])).status;

/** The number of objects of a resource, as the quota counts them. */
async function thereIs(ns: string, resource: string): Promise<string> {
  const [kind, requested = ''] = resource.split('requests.');
  if (kind === '') return requests[requested] ?? '0';
  const names = await kubectl(['get', resource.replace('count/', ''), '-n', ns, '-o', 'name']);
  return String(names.split('\n').length - 1);
}

beforeAll(installKinds);

/** Writes the quota until everything in it is counted: the cluster looks for new kinds every 30 s, and reads a quota again when it changes. */
async function untilCounted(ns: string, limits: Limits): Promise<void> {
  let written = 0;
  await until('the quota to count', async () => {
    const used = (await statusOf(ns))?.used ?? {};
    if (Object.keys(limits).every((name) => name in used)) return true;
    written += 1;
    await kubectl(['apply', '-f', '-'], { input: buildLimits(ns, { ...limits, [misspelt]: String(written) }) });
    throw new Error(`counted is: ${Object.keys(used).join(', ')}`);
  });
}

describe.each<LimitedPlace>(['space', 'org'])('the quota of a %s', (place) => {
  test('names only resources that the cluster counts', async () => {
    const ns = `counts-${place}-${run}`;
    await makeSpaceLike(ns);
    const limits = limitsOf(place);
    await kubectl(['apply', '-f', '-'], { input: buildLimits(ns, { ...limits, [misspelt]: '0' }) });
    // Until then objects of these kinds are refused, because their number is not known.
    await untilCounted(ns, limits);
    await kubectl(['apply', '-n', ns, '-f', join(import.meta.dirname, 'fixtures/contract-objects.yaml')]);
    await kubectl(['apply', '-n', ns, '-f', '-'], { input: others });
    const names = Object.keys(limits);
    const wanted = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await thereIs(ns, name)] as const)));
    expect(Object.entries(wanted).filter(([, count]) => count === '0')).toEqual([]);
    await expect.poll(async () => (await statusOf(ns))?.used).toEqual(wanted);
    expect(Object.keys((await statusOf(ns))?.hard ?? {}).toSorted()).toEqual([...names, misspelt].toSorted());
  });
});
