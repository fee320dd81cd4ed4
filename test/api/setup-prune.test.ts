// Objects of an earlier setup: of every kind in a set, a labelled object that is not in the set is deleted, and one without the label stays.

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeObject } from '../../src/lib/api/object.ts';
import { connect } from '../../src/lib/kube/client.ts';
import type { Cluster } from '../../src/lib/kube/cluster.ts';
import { objectsOfParts } from '../../src/lib/ops/install/installation.ts';
import { describeObject, kindOf, prunedKinds, setupObject } from '../../src/lib/ops/install/kinds.ts';
import { planPrune, prune } from '../../src/lib/ops/install/prune.ts';
import { resolvePlan } from '../../src/lib/ops/install/request.ts';
import { kf } from './kf.ts';
import { installKinds, kubectl, makeNamespace, makeSpaceLike, makeStorageClass, removeKinds } from './kubectl.ts';

const run = Date.now().toString(36);
const ns = `prune-${run}`;
const mark = { 'kf.cloudfoundry.org/part-of': 'setup' };
const rbac = 'rbac.authorization.k8s.io';
const admission = 'admissionregistration.k8s.io/v1';
const gatewayApi = 'gateway.networking.k8s.io/v1';
const cf = 'korifi.cloudfoundry.org/v1alpha1';
const gatewayKinds = path.join(import.meta.dirname, '../../manifests/gateway-api');

interface Sample extends KubeObject {
  apiVersion: string;
  kind: string;
}

const roleRef = (kind: string) => ({ apiGroup: rbac, kind, name: 'none' });
/** It matches nothing. */
const rules = [{ apiGroups: ['example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['nothings'] }];
const matchConstraints = { resourceRules: rules };
const mutation = { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } };
const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'x', image: 'none' }] } };

/** One of each kind: its content, and whether it has a namespace. */
const samples: [apiVersion: string, kind: string, namespace: string | undefined, content: object][] = [
  ['v1', 'ServiceAccount', ns, {}],
  ['v1', 'ConfigMap', ns, {}],
  // The first sample of the kind ServiceAccount is there before the cluster has made its own one in the namespace.
  ['v1', 'Pod', ns, { spec: { serviceAccountName: `marked-${run}`, containers: [{ name: 'x', image: 'none' }] } }],
  ['v1', 'Service', ns, { spec: { ports: [{ port: 80 }] } }],
  ['apps/v1', 'Deployment', ns, { spec: { replicas: 0, selector: { matchLabels: { app: 'x' } }, template } }],
  [`${rbac}/v1`, 'ClusterRole', undefined, { rules: [] }],
  [`${rbac}/v1`, 'ClusterRoleBinding', undefined, { roleRef: roleRef('ClusterRole') }],
  [`${rbac}/v1`, 'Role', ns, { rules: [] }],
  [`${rbac}/v1`, 'RoleBinding', ns, { roleRef: roleRef('Role') }],
  [admission, 'ValidatingAdmissionPolicy', undefined, { spec: { matchConstraints, validations: [{ expression: 'true' }] } }],
  [admission, 'ValidatingAdmissionPolicyBinding', undefined, { spec: { policyName: 'none', validationActions: ['Audit'] } }],
  [admission, 'MutatingAdmissionPolicy', undefined, { spec: { matchConstraints, mutations: [mutation], reinvocationPolicy: 'Never' } }],
  [admission, 'MutatingAdmissionPolicyBinding', undefined, { spec: { policyName: 'none' } }],
  [gatewayApi, 'GatewayClass', undefined, { spec: { controllerName: 'example.com/none' } }],
  [gatewayApi, 'Gateway', ns, { spec: { gatewayClassName: 'none', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] } }],
  [
    'gateway.networking.k8s.io/v1beta1',
    'ReferenceGrant',
    ns,
    { spec: { from: [{ group: '', kind: 'Gateway', namespace: 'none' }], to: [{ group: '', kind: 'Secret', name: 'none' }] } },
  ],
  [gatewayApi, 'HTTPRoute', ns, { spec: {} }],
  ['networking.k8s.io/v1', 'NetworkPolicy', ns, { spec: { podSelector: {} } }],
  [cf, 'BuilderInfo', ns, {}],
  [cf, 'RunnerInfo', ns, { spec: { runnerName: 'none' } }],
];

/** Kinds with data of people and apps. */
const lasting: Sample[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: `${ns}-marked` } },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'marked', namespace: ns } },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'marked', namespace: ns },
    ...{ spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
  },
  { apiVersion: cf, kind: 'CFSpace', metadata: { name: 'marked', namespace: ns }, ...{ spec: { displayName: 'marked' } } },
  { apiVersion: cf, kind: 'CFOrg', metadata: { name: `marked-${run}`, namespace: 'cf' }, ...{ spec: { displayName: `marked-${run}` } } },
  { apiVersion: cf, kind: 'CFDomain', metadata: { name: `marked-${run}`, namespace: 'cf' }, ...{ spec: { name: `${run}.example.com` } } },
];

function sample([apiVersion, kind, namespace, content]: (typeof samples)[number], name: string, labels: object): Sample {
  return {
    apiVersion,
    kind,
    metadata: { name: `${name}-${run}`, ...(namespace === undefined ? {} : { namespace }), labels },
    ...content,
  } as Sample;
}

const marked = samples.map((one) => sample(one, 'marked', mark));
const unmarked = samples.map((one) => sample(one, 'unmarked', { 'kf.cloudfoundry.org/part-of': 'another' }));
const bare = samples.map((one) => sample(one, 'bare', {}));
const last = lasting.map((object) => ({ ...object, metadata: { ...object.metadata, labels: mark } }));
const names = (objects: Sample[]): string[] => objects.map((object) => describeObject(setupObject(object))).toSorted();

let cluster: Cluster;

beforeAll(async () => {
  await makeStorageClass('any');
  await installKinds();
  await kubectl(['apply', '--server-side', '-f', gatewayKinds]);
  await kubectl(['wait', '--for=condition=Established', '-f', gatewayKinds, '--timeout=120s']);
  await makeSpaceLike(ns);
  await makeNamespace('cf', { 'kf.cloudfoundry.org/managed-by': 'kf' });
  await kubectl(['apply', '--server-side', '-f', '-'], { input: [...marked, ...unmarked, ...bare, ...last] });
  cluster = await connect({ kubeconfig: process.env['KF_TEST_KUBECONFIG'] ?? '', env: process.env });
});
afterAll(async () => {
  cluster.close();
  const own = [...unmarked, ...bare, ...last, ...marked].map((object) => ({ ...object }));
  await kubectl(['delete', '--ignore-not-found', '--wait=false', '-f', '-'], { input: own });
  await kubectl(['delete', 'namespace', ns, '--wait=false']);
  await removeKinds(gatewayKinds);
});

async function thereOf(objects: Sample[]): Promise<string[]> {
  const found = await Promise.all(
    objects.map(async (object) => {
      const live = await cluster.get(kindOf(object), object.metadata.namespace, object.metadata.name ?? '');
      return live === undefined || live.metadata.deletionTimestamp !== undefined ? [] : [object];
    }),
  );
  return names(found.flat());
}

test('this test has a sample of each kind that is removed', () => {
  expect(samples.map(([, kind]) => kind).toSorted()).toEqual(prunedKinds.map(({ kind }) => kind).toSorted());
});

test('a dry run names the objects to remove, and removes nothing', async () => {
  const { code, stdout, stderr } = await kf('setup', '--dry-run', '--storage-class', 'any');
  expect(code, stderr).toBe(0);
  const [, listed = ''] = /^Objects of an earlier setup that would be removed: (.+)$/m.exec(stderr) ?? [];
  expect(listed.split(', ').toSorted()).toEqual(names(marked));
  expect(stdout).not.toContain(`marked-${run}`);
  const json = await kf('setup', '--dry-run', '--storage-class', 'any', '--json');
  const { result } = JSON.parse(json.stdout) as { result: { removals: string[] } };
  expect(result.removals.toSorted()).toEqual(names(marked));
  expect(await thereOf(marked)).toEqual(names(marked));
});

test('a labelled object that is not in the set is removed, of each kind, but not one without the label or of a kind that holds data', async () => {
  const served = { hasGatewayApi: true, hasMutatingPolicies: true };
  const parts = await objectsOfParts({ plan: resolvePlan({}, '1.0.0', 'hostport'), programs: {}, served });
  const removed = await prune(cluster, await planPrune(cluster, served, parts));
  expect(removed.toSorted()).toEqual(names(marked));
  expect(await thereOf(marked)).toEqual([]);
  expect(await thereOf([...unmarked, ...bare, ...last])).toEqual(names([...unmarked, ...bare, ...last]));
});
