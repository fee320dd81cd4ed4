// What the registry's gate counts: bytes and unfinished uploads of a space, and the free disk space.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Capacity, type CapacityOptions } from '../../../src/controller/gate/capacity.ts';
import { ImageStore, type Usage } from '../../../src/controller/gate/store.ts';
import { defined } from '../../../src/lib/defined.ts';

const app = { space: 's-1', name: 'a-packages' };
const holdsMs = 10_000;
const disk = { blocks: 1_000_000, bavail: 1_000_000, bsize: 4096, files: 0, ffree: 0 };
let folder: string;
let now: number;

/** A disk whose counts end when the test says so. */
class SlowStore extends ImageStore {
  readonly counts: ((usage: Usage) => void)[] = [];

  override usageOf(): Promise<Usage> {
    return new Promise((resolve) => this.counts.push(resolve));
  }

  async end(bytes: number): Promise<void> {
    await turn();
    this.counts.shift()?.({ bytes, uploads: 0 });
    await turn();
  }
}

const open = (store: ImageStore, more: Partial<CapacityOptions> = {}) =>
  new Capacity({ store, folder, reserve: 0, now: () => now, statfs: () => Promise.resolve(disk), ...more });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kf-capacity-'));
  now = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('bytes that arrive while their space is counted are in its count afterwards, and only once', async () => {
  const store = new SlowStore(folder);
  const capacity = open(store, { spaceQuota: 1_000_000 });
  const first = capacity.take('s-1', 0);
  await store.end(0);
  await first;
  now = holdsMs;
  const admitted = capacity.admit(app, 0, 'nothing');
  const arrived = capacity.take('s-1', 900_000);
  await store.end(0);
  expect([await admitted, await arrived]).toEqual([undefined, undefined]);
  expect(await capacity.take('s-1', 100_000)).toBeUndefined();
  expect((await capacity.take('s-1', 1))?.status).toBe(403);
  expect(store.counts).toHaveLength(0);
});

test('bytes that arrive while the free disk space is measured are subtracted', async () => {
  const figures: (() => void)[] = [];
  const statfs = () =>
    new Promise<typeof disk>((resolve) => figures.push(() => resolve({ ...disk, blocks: 1000, bavail: 1000, bsize: 1 })));
  const capacity = open(new ImageStore(folder), { statfs });
  const arrived = [capacity.take('s-1', 600), capacity.take('s-2', 300)];
  await turn();
  expect(figures).toHaveLength(1);
  figures[0]?.();
  expect(await Promise.all(arrived)).toEqual([undefined, undefined]);
  expect(await capacity.status()).toMatchObject({ free: 100 });
  expect((await capacity.take('s-3', 101))?.status).toBe(507);
});

test('after something was removed, the bytes of an upload in progress are still limited', async () => {
  const store = new SlowStore(folder);
  const capacity = open(store, { spaceQuota: 1_000_000 });
  const first = capacity.take('s-1', 900_000);
  await store.end(0);
  await first;
  capacity.forget();
  const next = capacity.take('s-1', 200_000);
  await store.end(900_000);
  expect((await next)?.status).toBe(403);
});

test('a count during which something was removed is repeated', async () => {
  const store = new SlowStore(folder);
  const capacity = open(store, { spaceQuota: 1_000_000 });
  const arrived = capacity.take('s-1', 200_000);
  await turn();
  capacity.forget();
  await store.end(900_000);
  await store.end(100_000);
  expect(await arrived).toBeUndefined();
});

test('a refused chunk is not counted', async () => {
  const capacity = open(new ImageStore(folder), { spaceQuota: 1000 });
  expect((await capacity.take('s-1', 1001))?.status).toBe(403);
  expect(await capacity.take('s-1', 1000)).toBeUndefined();
});

test('of uploads that begin at the same time, only those are admitted that fit', async () => {
  const capacity = open(new ImageStore(folder), { spaceQuota: 1e9 });
  const statuses = await Promise.all(Array.from({ length: 1_010 }, async () => (await capacity.admit(app, 0, 'upload'))?.status));
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
});

test('unfinished uploads are limited without a quota too', async () => {
  const capacity = open(new ImageStore(folder));
  for (let count = 0; count < 1_000; count += 1) expect(await capacity.admit(app, 0, 'upload')).toBeUndefined();
  expect((await capacity.admit(app, 0, 'upload'))?.status).toBe(429);
});

test.each([undefined, 1e9])('with a quota of %s, unfinished uploads that are stored count again after a removal', async (spaceQuota) => {
  const uploads = join(folder, 'docker/registry/v2/repositories/s-1/a-packages/_uploads');
  for (let count = 0; count < 1_000; count += 1) mkdirSync(join(uploads, String(count)), { recursive: true });
  const capacity = open(new ImageStore(folder), defined({ spaceQuota }));
  for (let time = 0; time < 2; time += 1) {
    expect((await capacity.admit(app, 0, 'upload'))?.status).toBe(429);
    expect(await capacity.admit(app, 0, 'entry')).toBeUndefined();
    capacity.forget();
  }
});
