// The plan of a setup over an earlier kf: objects may have fields that only the new definitions of their kinds declare.

import { expect, test } from 'vitest';
import { planObjects } from '../../../src/lib/ops/install/applier.ts';
import { setupObject } from '../../../src/lib/ops/install/kinds.ts';
import { setupSet } from '../../../src/lib/ops/install/setup-set.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const undeclared =
  'failed to create typed patch object (cf/internal-domain; korifi.cloudfoundry.org/v1alpha1, Kind=CFDomain): .spec.internal: field not declared in schema';

function clusterThatSays(message: string): MemoryCluster {
  const cluster = new MemoryCluster();
  cluster.intercept = (verb) => {
    if (verb === 'apply') throw new KubeError('failed', `Error from Kubernetes: ${message}`, { status: 500, reason: 'InternalError' });
  };
  return cluster;
}

const metadata = { name: 'internal-domain', namespace: 'cf' };
const domain = setupObject({ apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFDomain', metadata, ...{ spec: { internal: true } } });

test('a field that the kind gets with this setup is no reason to refuse it', async () => {
  expect(await planObjects(clusterThatSays(undeclared), setupSet, [domain])).toMatchObject([{ action: 'create' }]);
  const cluster = clusterThatSays(undeclared);
  await cluster.create(kinds.domain, { metadata, spec: { name: 'apps.internal' } });
  expect(await planObjects(cluster, setupSet, [domain])).toMatchObject([{ action: 'change' }]);
});

test('other refusals, and fields that kinds of Kubernetes do not have, end the setup before it writes', async () => {
  await expect(planObjects(clusterThatSays('no such user'), setupSet, [domain])).rejects.toThrow('no such user Nothing was written.');
  const map = setupObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata });
  await expect(planObjects(clusterThatSays(undeclared), setupSet, [map])).rejects.toThrow('field not declared in schema');
});
