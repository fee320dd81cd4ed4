// The quotas of an org's spaces on a cluster that counts with a delay: when a quota is written, the cluster counts again and misses the newest
// objects.

import { beforeEach, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { countIndexes, OrgShares } from '../../../src/controller/tenancy/org-shares.ts';
import { resourceQuotaType, type ResourceQuota } from '../../../src/lib/api/core.ts';
import { kinds, limitsName } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const apps = 'count/cfapps.korifi.cloudfoundry.org';
const most = 200;
const limits = { space: () => ({ limits: { [apps]: '100' } }), total: { [apps]: String(most) }, exact: new Set<string>() };

/** An object is counted this long after it was created. */
const lateMs = 700;

let now: number;
let cluster: MemoryCluster;
let shares: OrgShares;
let context: Context;
let stores: Map<string, Store<KubeObject>>;
/** The creation times of the apps, by space. */
let made: Map<string, number[]>;

const storeOf = (type: ResourceType): Store<KubeObject> => {
  const store = stores.get(type.plural) ?? new Store<KubeObject>();
  stores.set(type.plural, store);
  return store;
};

beforeEach(() => {
  now = 1_000;
  cluster = new MemoryCluster();
  stores = new Map();
  for (const { type, name, of } of countIndexes) storeOf(type).addIndex(name, of);
  context = { cluster, stores: { of: storeOf }, signal: new AbortController().signal } as unknown as Context;
  shares = new OrgShares(() => now);
  made = new Map();
});

const quotaOf = (ns: string): Stored<ResourceQuota> | undefined => cluster.peek(resourceQuotaType, ns, limitsName);
const given = (ns: string): number => Number(quotaOf(ns)?.spec?.hard?.[apps] ?? Number.NaN);
const inForce = (ns: string): number => Number(quotaOf(ns)?.status?.hard?.[apps] ?? 0);
const used = (ns: string): number => Number(quotaOf(ns)?.status?.used?.[apps] ?? 0);
const there = (ns: string): number => made.get(ns)?.length ?? 0;
const counted = (ns: string): number => (made.get(ns) ?? []).filter((at) => at <= now - lateMs).length;
const inAll = (): number => [...made.keys()].reduce((sum, ns) => sum + there(ns), 0);

/** What the controller has seen so far. */
function hear(): void {
  for (const ns of made.keys()) {
    const quota = quotaOf(ns);
    if (quota !== undefined) storeOf(resourceQuotaType).put(quota);
    const known = storeOf(kinds.app).by('namespace', ns).length;
    for (let number = known; number < counted(ns); number += 1)
      storeOf(kinds.app).put({ metadata: { name: `${ns}-${number}`, namespace: ns, uid: `${ns}-${number}`, resourceVersion: '1' } });
  }
}

async function divide(newSpace?: string): Promise<string[]> {
  hear();
  const waiting = await shares.divide(context, 'o', limits, newSpace);
  hear();
  return [...waiting];
}

async function writeStatus(ns: string, hard: number, amount: number): Promise<void> {
  const status = { hard: { [apps]: String(hard) }, used: { [apps]: String(amount) } };
  await cluster.mergePatch(resourceQuotaType, ns, limitsName, { status }, { subresource: 'status' });
}

/** As the quota controller does if the limits were written. */
const takeOver = (ns: string): Promise<void> => writeStatus(ns, given(ns), counted(ns));

async function addSpace(ns: string): Promise<string[]> {
  made.set(ns, []);
  storeOf(kinds.space).put({ metadata: { name: ns, namespace: 'o', uid: ns, resourceVersion: '1' } });
  const waiting = await divide(ns);
  await takeOver(ns);
  return waiting;
}

/** As many as its quota admits, up to `amount`. */
async function create(ns: string, amount = 1): Promise<void> {
  const more = Math.max(0, Math.min(amount, inForce(ns) - used(ns)));
  for (let one = 0; one < more; one += 1) made.get(ns)?.push(now);
  if (more > 0) await writeStatus(ns, inForce(ns), used(ns) + more);
}

/** The controller runs every 100 ms, and the cluster applies the written quotas. */
async function pass(ms: number, meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<void> {
  for (const end = now + ms; now < end;) {
    now += 100;
    await meanwhile();
    await divide();
    for (const ns of made.keys()) if (given(ns) !== inForce(ns)) await takeOver(ns);
  }
}

describe('the quota of a space is written again', () => {
  test('if the objects of the space have not changed for two seconds', async () => {
    await addSpace('a');
    await addSpace('b');
    expect([given('a'), given('b')]).toEqual([100, 66]);
    await pass(5_000);
    const before = given('b');
    // One after the other, until less than half a part is left.
    for (let number = 0; number < 60; number += 1) await pass(100, () => create('b'));
    expect([there('b'), given('b')]).toEqual([60, before]);
    expect(await divide()).toEqual(['b']);
    await pass(1_500);
    expect(given('b')).toBe(before);
    await pass(1_500);
    expect(given('b')).toBeGreaterThan(before);
    expect(await divide()).toEqual([]);
  });

  test('if the objects differ from the count of the quota and neither has changed for five seconds', async () => {
    await addSpace('a');
    await addSpace('b');
    await pass(5_000);
    for (let number = 0; number < 60; number += 1) made.get('b')?.push(now);
    // It has counted 50 of 60, and nothing triggers another count.
    await writeStatus('b', given('b'), 50);
    const before = given('b');
    await pass(4_500);
    expect(given('b')).toBe(before);
    await pass(3_000);
    expect(given('b')).not.toBe(before);
    expect(used('b')).toBe(60);
  });

  test('thirty seconds after it was due if the objects change all the time: a new space gets its share', async () => {
    for (const name of ['a', 'b']) await addSpace(name);
    await pass(5_000);
    await create('b', 66);
    await pass(5_000);
    await create('b', 34);
    await pass(5_000);
    expect([given('a'), given('b'), there('b')]).toEqual([100, 100, 100]);
    // A task that is created and deleted again and again.
    const busy = (): Promise<void> => writeStatus('a', inForce('a'), 1 - used('a'));
    await pass(3_000, busy);
    expect(await addSpace('c')).toEqual(['c', 'a']);
    await pass(25_000, busy);
    expect([given('a'), given('c')]).toEqual([100, 0]);
    await pass(10_000, busy);
    expect(given('a')).toBeLessThan(30);
    expect(given('c')).toBeGreaterThan(20);
    expect(await divide()).toEqual([]);
  });

  test('at once for the first time, and a new space that has its share does not wait for others', async () => {
    await addSpace('a');
    await pass(3_000);
    await create('a', 80);
    expect(await addSpace('b')).not.toContain('b');
    expect(given('b')).toBeGreaterThan(0);
  });
});

test('spaces that are filled as fast as possible get exactly the total, however late the cluster counts', async () => {
  const names = Array.from({ length: 6 }, (_, index) => `s-${index}`);
  for (const name of names) await addSpace(name);
  await pass(10_000);
  await pass(60_000, async () => {
    for (const name of names) await create(name, 2);
  });
  expect(inAll()).toBeLessThanOrEqual(most);
  expect(inAll()).toBeGreaterThanOrEqual(most - names.length);
});
