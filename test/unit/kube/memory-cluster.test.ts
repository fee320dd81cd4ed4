// The cluster in memory of many tests behaves as a real one.

import { expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

test('an object whose owner is already gone is deleted, and one that has another owner stays', async () => {
  const cluster = new MemoryCluster();
  const [gone, alive] = [
    await cluster.create(configMapType, { metadata: { name: 'gone', namespace: 'ns' } }),
    await cluster.create(configMapType, { metadata: { name: 'alive', namespace: 'ns' } }),
  ];
  const ownedBy = (name: string, ...owners: (typeof gone)[]) => ({
    metadata: {
      name,
      namespace: 'ns',
      ownerReferences: owners.map(({ metadata }) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: metadata.name ?? '',
        uid: metadata.uid ?? '',
      })),
    },
  });
  await cluster.delete(configMapType, 'ns', 'gone');
  await cluster.create(configMapType, ownedBy('late', gone));
  await cluster.create(configMapType, ownedBy('both', gone, alive));
  expect(cluster.all(configMapType).map(({ metadata }) => metadata.name)).toEqual(['alive', 'both']);
});
