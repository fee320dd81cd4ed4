// Objects of earlier setups: which of them a setup removes, and which stay.

import { expect, test } from 'vitest';
import { configMapType, deploymentType, serviceType } from '../../../src/lib/api/core.ts';
import type { KubeObject } from '../../../src/lib/api/object.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { objectsOfParts, type PartObjects } from '../../../src/lib/ops/install/installation.ts';
import { kindOf } from '../../../src/lib/ops/install/kinds.ts';
import { planPrune, prune } from '../../../src/lib/ops/install/prune.ts';
import { resolvePlan, type SetupRequest } from '../../../src/lib/ops/install/request.ts';
import { buildHandoverPod, buildHandoverService } from '../../../src/templates/setup/gateway-handover.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const served = { hasGatewayApi: false, hasMutatingPolicies: true };
const network = {
  nodes: { addresses: ['192.0.2.1'], podRanges: ['10.0.0.0/16'] },
  ipv6: false,
  dns: ['10.1.0.10'],
  apiServer: ['192.0.2.1'],
};
const mark = { 'kf.cloudfoundry.org/part-of': 'setup' };

function objectsFor(request: SetupRequest, program = 'one'): Promise<PartObjects[]> {
  return objectsOfParts({ plan: resolvePlan(request, '1.0.0', 'hostport', network), programs: { 'controller.mjs': program }, served });
}

async function install(cluster: MemoryCluster, parts: PartObjects[]): Promise<void> {
  for (const object of parts.flatMap(({ objects }) => objects)) {
    const metadata = { ...object.metadata, labels: { ...object.metadata.labels, ...mark } };
    if (metadata.name !== '') await cluster.apply(kindOf(object), structuredClone({ ...object, metadata }));
  }
}

async function removedBy(cluster: MemoryCluster, parts: PartObjects[]): Promise<string[]> {
  return (await planPrune(cluster, served, parts)).map(({ name }) => name);
}

test('a setup with the same settings removes nothing', async () => {
  const cluster = new MemoryCluster();
  await install(cluster, await objectsFor({}));
  expect(await removedBy(cluster, await objectsFor({}))).toEqual([]);
});

test('an upgrade removes the previous programs after everything else is applied', async () => {
  const cluster = new MemoryCluster();
  await install(cluster, await objectsFor({}));
  const planned = await planPrune(cluster, served, await objectsFor({}, 'two'));
  expect(planned.map(({ name }) => name)).toEqual([expect.stringMatching(/^ConfigMap kf-system\/kf-bundle-[0-9a-f]{10}$/)]);
  expect(await prune(cluster, planned)).toEqual(planned.map(({ name }) => name));
  expect(cluster.all(configMapType).filter(({ metadata: { name = '' } }) => name.startsWith('kf-bundle-'))).toEqual([]);
});

test.each([
  ['a registry outside', { registry: 'registry.example.com/kf' }],
  ['a gateway of the operator', { gateway: 'infra/public' }],
  ['a class of the operator', { gatewayClass: 'edge' }],
  ['a load balancer', { gatewayExposure: 'loadbalancer' }],
] as const)('objects of the previous choice stay, with their programs: %s', async (_, request) => {
  const cluster = new MemoryCluster();
  await install(cluster, await objectsFor({}));
  expect(await removedBy(cluster, await objectsFor(request))).toEqual([]);
});

test.each([
  ['a gateway of the operator', { gateway: 'infra/public' }],
  ['a class of the operator', { gatewayClass: 'edge' }],
  ['a load balancer', { gatewayExposure: 'loadbalancer' }],
] as const)('a second gateway that an interrupted setup left goes with the last step of a setup with %s', async (_, request) => {
  const cluster = new MemoryCluster();
  await install(cluster, await objectsFor({}));
  const plan = resolvePlan({}, '1.0.0', 'hostport', network);
  await cluster.create(podType, buildHandoverPod(plan, 'node-1'));
  await cluster.create(serviceType, buildHandoverService(plan, ['192.0.2.1']));
  const planned = await planPrune(cluster, served, await objectsFor(request));
  // Nothing leads to it when it ends.
  expect(await prune(cluster, planned)).toEqual(['Service kf-node/kf-gateway-handover', 'Pod kf-node/kf-gateway-handover']);
});

test('a registry that stays keeps the programs that its pod mounts, through upgrades', async () => {
  const cluster = new MemoryCluster();
  const outside = { registry: 'registry.example.com/kf' };
  await install(cluster, await objectsFor({}));
  await install(cluster, await objectsFor(outside, 'two'));
  expect(await removedBy(cluster, await objectsFor(outside, 'three'))).toHaveLength(1);
  await install(cluster, await objectsFor(outside, 'three'));
  await prune(cluster, await planPrune(cluster, served, await objectsFor(outside, 'three')));
  const mounted = JSON.stringify(cluster.peek(deploymentType, 'kf-system', 'kf-registry'));
  const bundles = cluster.all(configMapType).flatMap(({ metadata: { name = '' } }) => (name.startsWith('kf-bundle-') ? [name] : []));
  expect(bundles).toHaveLength(2);
  expect(bundles.filter((name) => mounted.includes(name))).toHaveLength(1);
});

test('policies that are switched off are removed', async () => {
  const cluster = new MemoryCluster();
  await install(cluster, await objectsFor({}));
  const removed = await removedBy(cluster, await objectsFor({ networkPolicies: 'off' }));
  expect(removed.toSorted()).toEqual([
    'NetworkPolicy kf-node/kf-gateway',
    ...['kf-closed', 'kf-controller', 'kf-pages', 'kf-registry'].map((name) => `NetworkPolicy kf-system/${name}`),
  ]);
});

test('an object that was created again under the same name stays', async () => {
  const cluster = new MemoryCluster();
  const object = (): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'old', namespace: 'kf-system', labels: mark },
  });
  await cluster.create(configMapType, object());
  const planned = await planPrune(cluster, served, await objectsFor({}));
  await cluster.delete(configMapType, 'kf-system', 'old');
  await cluster.create(configMapType, object());
  expect(await prune(cluster, planned)).toEqual([]);
  expect(cluster.peek(configMapType, 'kf-system', 'old')).toBeDefined();
});
