// When a binding whose service instance is gone is looked at again.

import { expect, test } from 'vitest';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { serviceBindingReconciler } from '../../../src/controller/services/binding.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { emptyStores } from './stores.ts';

test('a binding without its instance is looked at again when it has been missing for a minute, and is deleted then', async () => {
  const cluster = new MemoryCluster();
  const memory = new Memory();
  let now = Date.parse('2030-01-01T00:00:00Z');
  const service = { kind: 'CFServiceInstance', name: 'i-1', namespace: 's-1' };
  const spec = { appRef: { name: 'a-1' }, service, type: 'app' as const, parameters: { name: '' } };
  await cluster.create(kinds.serviceBinding, { metadata: { name: 'b-1', namespace: 's-1' }, spec });
  await cluster.mergePatch(kinds.serviceBinding, 's-1', 'b-1', { status: { envSecretRef: { name: 'c' } } }, { subresource: 'status' });
  const live = () => cluster.peek(kinds.serviceBinding, 's-1', 'b-1');
  const reconcile = async () => {
    const stores = emptyStores();
    stores.put(kinds.serviceBinding, live() ?? {});
    const context = { cluster, memory, stores, event: () => undefined, now: () => now } as unknown as Context;
    return serviceBindingReconciler.reconcile('s-1/b-1', context);
  };
  await expect(reconcile()).rejects.toMatchObject({ reason: 'ServiceInstanceNotFound', afterMs: 60_000 });
  now += 59_000;
  await expect(reconcile()).rejects.toMatchObject({ afterMs: 1_000 });
  expect(live()).toBeDefined();
  now += 1_000;
  expect(await reconcile()).toBeUndefined();
  expect(live()).toBeUndefined();
});
