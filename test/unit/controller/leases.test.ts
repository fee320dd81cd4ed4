// Which names a service binding holds after it was renamed, and when one whose name is taken looks again.

import { beforeEach, expect, test } from 'vitest';
import { claimName } from '../../../src/controller/names/leases.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { conditionsWith } from '../../../src/controller/runtime/status.ts';
import { leaseType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFServiceBinding, CFServiceInstance } from '../../../src/lib/api/types.generated.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 's-1';
let cluster: MemoryCluster;
let context: Context;

beforeEach(() => {
  cluster = new MemoryCluster();
  const { signal } = new AbortController();
  context = { cluster, memory: new Memory(), now: () => Date.now(), signal } as unknown as Context;
});

/** Creates or renames a binding of the instance and claims its name, as its reconciler does; returns whether it has the name. */
async function name(binding: string, displayName: string, instance = 'i-1'): Promise<boolean> {
  const spec = { type: 'app', appRef: { name: 'a-1' }, service: { kind: 'CFServiceInstance', name: instance }, displayName };
  const live =
    cluster.peek(kinds.serviceBinding, ns, binding) === undefined
      ? await cluster.create(kinds.serviceBinding, { metadata: { name: binding, namespace: ns }, spec } as CFServiceBinding)
      : await cluster.mergePatch(kinds.serviceBinding, ns, binding, { spec: { displayName } });
  const { held, claimed } = await claimName(context, { entity: 'serviceBinding', object: live, instanceName: instance });
  const status = { conditions: conditionsWith(live, claimed) };
  await cluster.mergePatch(kinds.serviceBinding, ns, binding, { status }, { subresource: 'status' });
  return held;
}

const heldBy = (binding: string): string[] =>
  cluster
    .all(leaseType)
    .filter(({ metadata }) => metadata.annotations?.[annotations.leaseOwnerName] === binding)
    .map(({ metadata }) => metadata.annotations?.[annotations.leaseName] ?? '');

test('a binding that was renamed to a taken name and then to a free one has only the last name', async () => {
  expect(await name('b-1', 'first')).toBe(true);
  expect(await name('b-2', 'taken')).toBe(true);
  expect(await name('b-1', 'taken')).toBe(false);
  expect(await name('b-1', 'last')).toBe(true);
  expect(heldBy('b-1')).toEqual(['sb::a-1::last']);
  expect(await name('b-3', 'first')).toBe(true);
});

test.each([
  ['of its own', 'first'],
  ['of its instance', ''],
])('another binding gets a name %s that a binding had before it was renamed to a taken one', async (_, first) => {
  const instance = { metadata: { name: 'first', namespace: ns }, spec: { displayName: 'first' } } as CFServiceInstance;
  await cluster.create(kinds.serviceInstance, instance);
  expect(await name('b-1', first, 'first')).toBe(true);
  expect(await name('b-2', 'taken')).toBe(true);
  expect(await name('b-3', 'first')).toBe(false);
  expect(await name('b-1', 'taken')).toBe(false);
  expect(await name('b-3', 'first')).toBe(true);
  expect(heldBy('b-3')).toEqual(['sb::a-1::first']);
});

test('a binding without a name of its own keeps its name while its instance is gone', async () => {
  expect(await name('b-1', '', 'gone')).toBe(true);
  expect(await name('b-2', 'gone')).toBe(false);
});

test.each([
  [1_000, 3_000],
  [90_000, 9_000],
  [3_600_000, 60_000],
])('a binding whose name was taken %d ms ago looks again after %d ms', async (takenMs, lookMs) => {
  await name('b-1', 'taken');
  await name('b-2', 'taken');
  const live = cluster.peek(kinds.serviceBinding, ns, 'b-2');
  if (live === undefined) throw new Error('b-2 is missing');
  const [condition] = live.status?.conditions ?? [];
  const since = Date.parse(condition?.lastTransitionTime ?? '');
  const later = { ...context, now: () => since + takenMs };
  const claim = await claimName(later, { entity: 'serviceBinding', object: live, instanceName: 'i-1' });
  expect(claim).toMatchObject({ held: false, requeueAfterMs: lookMs });
});
