import { expect, test } from 'vitest';
import { configMapType, deploymentType, namespaceType, secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject } from '../../../src/lib/api/object.ts';
import { kindNamed } from '../../../src/lib/ops/install/kinds.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { uninstall, uninstallKeepingData, type UninstallResult } from '../../../src/lib/ops/install/uninstall.ts';
import { kfInfo } from '../../../src/templates/setup/info.ts';
import { registryPassword } from '../../../src/lib/api/registry-credentials.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { recordEvents } from '../../support/reported.ts';

const run = (cluster: MemoryCluster): Promise<UninstallResult> => uninstall({ cluster, report: () => undefined });

const ofSetup = { 'kf.cloudfoundry.org/part-of': 'setup' };
const crdType = kindNamed('CustomResourceDefinition');
const routeType = kindNamed('HTTPRoute');

function kindOfGatewayApi(plural: string, kind: string): KubeObject {
  const spec = {
    group: 'gateway.networking.k8s.io',
    names: { plural, kind },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true }],
  };
  return { metadata: { name: `${plural}.gateway.networking.k8s.io`, labels: ofSetup }, ...{ spec } };
}

test('kinds of the Gateway API that setup installed are removed, but not if somebody else uses them', async () => {
  const cluster = new MemoryCluster();
  await cluster.create(crdType, kindOfGatewayApi('httproutes', 'HTTPRoute'));
  await cluster.create(crdType, kindOfGatewayApi('gateways', 'Gateway'));
  await cluster.create(routeType, { metadata: { name: 'kf-setup-check', namespace: 'kf-system', labels: ofSetup } });
  await cluster.create(routeType, { metadata: { name: 'theirs', namespace: 'theirs' } });
  const { removed, kept } = await run(cluster);
  const named = 'CustomResourceDefinition httproutes.gateway.networking.k8s.io';
  expect(kept).toEqual([{ object: named, reason: '1 object(s) of this kind are not of kf' }]);
  expect(removed).toEqual(['HTTPRoute kf-system/kf-setup-check', 'CustomResourceDefinition gateways.gateway.networking.k8s.io']);
  expect(cluster.all(routeType).map(({ metadata }) => metadata.name)).toEqual(['theirs']);
});

test('a kind whose deletion the API server has not tried again is changed, so that it tries', async () => {
  const cluster = new MemoryCluster();
  const crd = kindOfGatewayApi('gateways', 'Gateway');
  const conditions = [{ type: 'Terminating', status: 'True', reason: 'InstanceDeletionFailed' }];
  const { name = '' } = crd.metadata;
  const finalizers = ['customresourcecleanup.apiextensions.k8s.io'];
  await cluster.create(crdType, { ...crd, metadata: { ...crd.metadata, finalizers }, ...{ status: { conditions } } });
  cluster.intercept = (verb) => {
    // The API server: it deletes the kind when that changes, for the first time after the deletion has failed.
    if (verb === 'list' && cluster.peek(crdType, undefined, name)?.metadata.annotations !== undefined) {
      return cluster.mergePatch(crdType, undefined, name, { metadata: { finalizers: [] } }).then(() => undefined);
    }
  };
  await run(cluster);
  expect(cluster.all(crdType)).toEqual([]);
});

test('if the controller does not run, orgs and spaces are deleted with their finalizers and namespaces without a wait', async () => {
  const cluster = new MemoryCluster();
  const finalizers = (kind: string): string[] => [`cf${kind}.korifi.cloudfoundry.org`, 'theirs.example.com/last'];
  await cluster.create(deploymentType, { metadata: { name: 'kf-controller', namespace: 'kf-system', labels: ofSetup } });
  await cluster.create(kinds.org, {
    metadata: { name: 'org', namespace: 'cf', finalizers: finalizers('Org') },
    ...{ spec: { displayName: 'acme' } },
  });
  await cluster.create(kinds.space, {
    metadata: { name: 'space', namespace: 'org', finalizers: finalizers('Space') },
    ...{ spec: { displayName: 'dev' } },
  });
  const managed = { 'kf.cloudfoundry.org/managed-by': 'kf' };
  for (const [name, labels] of [
    ['cf', managed],
    ['org', { ...managed, 'korifi.cloudfoundry.org/org-guid': 'org' }],
    ['space', { ...managed, 'korifi.cloudfoundry.org/org-guid': 'org' }],
    ['managed-elsewhere', managed],
    ['theirs', {}],
  ] as const)
    await cluster.create(namespaceType, { metadata: { name, labels } });
  const { orgs, removed } = await run(cluster);
  expect(orgs).toBe(1);
  expect(removed).toEqual(['Deployment kf-system/kf-controller', 'Namespace org', 'Namespace space', 'Namespace cf']);
  expect(cluster.all(namespaceType).map(({ metadata }) => metadata.name)).toEqual(['managed-elsewhere', 'theirs']);
  // Finalizers of others are removed by their owners.
  expect(cluster.peek(kinds.org, 'cf', 'org')?.metadata.finalizers).toEqual(['theirs.example.com/last']);
  expect(cluster.peek(kinds.space, 'org', 'space')?.metadata.finalizers).toEqual(['theirs.example.com/last']);
});

test('without the controller nodes can pull the images of apps for a year, and setup prints the date', async () => {
  const cluster = new MemoryCluster();
  const key = Buffer.from('0123456789abcdef0123456789abcdef');
  const data = { key: key.toString('base64') };
  await cluster.create(secretType, { metadata: { name: 'kf-registry-key', namespace: 'kf-system' }, data });
  const info = kfInfo(resolvePlan({}, '1.0.0', 'hostport'));
  const config = { 'info.json': JSON.stringify(info) };
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: config });
  for (const name of ['s-1', 's-2'])
    await cluster.create(kinds.space, { metadata: { name, namespace: 'org' }, ...{ spec: { displayName: name } } });
  const metadata = { name: 'image-registry-credentials', namespace: 's-1' };
  await cluster.create(secretType, { metadata, type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': 'e30=' } });
  const { report, warnings } = recordEvents();
  await uninstallKeepingData({ cluster, report });

  const text = cluster.peek(secretType, 's-1', 'image-registry-credentials')?.data?.['.dockerconfigjson'] ?? '';
  const { auths } = JSON.parse(Buffer.from(text, 'base64').toString()) as { auths: Record<string, { username: string; password: string }> };
  const { username = '', password = '' } = auths['localhost:32500'] ?? {};
  const [kind, space, until = ''] = username.split('.');
  expect([kind, space, password]).toEqual(['pull', 's-1', registryPassword(key, username)]);
  const days = (Number(until) - Date.now() / 1000) / 86_400;
  expect(Math.round(days)).toBe(365);
  expect(cluster.peek(secretType, 's-2', 'image-registry-credentials')).toBeUndefined();
  expect(warnings().join()).toContain(`they expire on ${new Date(Number(until) * 1000).toISOString().slice(0, 10)}`);
});
