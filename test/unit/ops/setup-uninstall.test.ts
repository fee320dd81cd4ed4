import { expect, test } from 'vitest';
import { deploymentType, namespaceType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject } from '../../../src/lib/api/object.ts';
import { kindNamed } from '../../../src/lib/ops/setup/kinds.ts';
import { uninstall, type UninstallResult } from '../../../src/lib/ops/setup/uninstall.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const nothing = (): void => undefined;
const reporter = { say: nothing, step: nothing, bytes: nothing, log: nothing, warn: nothing, done: nothing };
const run = (cluster: MemoryCluster): Promise<UninstallResult> => uninstall({ cluster, reporter });

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

test('kinds of the Gateway API that setup brought go, but not those that somebody else uses', async () => {
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

test('a controller that does not run is not waited for: orgs and spaces go with their finalizers and namespaces', async () => {
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
  // Others' finalizers are theirs to take away.
  expect(cluster.peek(kinds.org, 'cf', 'org')?.metadata.finalizers).toEqual(['theirs.example.com/last']);
  expect(cluster.peek(kinds.space, 'org', 'space')?.metadata.finalizers).toEqual(['theirs.example.com/last']);
});
