import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { withLock, withLockIfFree } from '../../../tools/cluster/state.ts';
import { markUsed, removeUnused } from '../../../tools/cluster/unused-parts.ts';

const day = 24 * 3_600_000;
const now = Date.parse('2026-08-20T12:00:00Z');

let cache: string;
beforeEach(() => {
  cache = mkdtempSync(path.join(tmpdir(), 'kf-parts-'));
});
afterEach(() => rmSync(cache, { recursive: true }));

/** A part in the cache that was used last so many days ago. */
function part(name: string, daysAgo: number): string {
  const folder = path.join(cache, 'parts', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'program'), '');
  const used = new Date(now - daysAgo * day);
  utimesSync(folder, used, used);
  return folder;
}

const left = (): string[] => readdirSync(path.join(cache, 'parts')).toSorted();

test('a part that the present build does not name is removed after 14 days without use', async () => {
  for (const [name, daysAgo] of Object.entries({ 'coredns-new': 40, 'coredns-old': 15, 'coredns-recent': 13, 'runc-old.4711.tmp': 15 }))
    part(name, daysAgo);
  await removeUnused(cache, { named: ['coredns-new'], inUse: [], now });
  expect(left()).toEqual(['coredns-new', 'coredns-recent']);
});

test('a part with programs of an existing cluster stays', async () => {
  const kept = part('kubernetes-old', 400);
  part('kubernetes-older', 500);
  await removeUnused(cache, { named: [], inUse: [path.join(kept, 'program')], now });
  expect(left()).toEqual(['kubernetes-old']);
});

test('a use is recorded, so that the part stays for another 14 days', async () => {
  const folder = part('coredns-old', 100);
  markUsed(folder, now);
  expect(statSync(folder).mtimeMs).toBe(now);
  await removeUnused(cache, { named: [], inUse: [], now: now + 13 * day });
  expect(left()).toEqual(['coredns-old']);
  await removeUnused(cache, { named: [], inUse: [], now: now + 15 * day });
  expect(left()).toEqual([]);
});

test('nothing is removed while another process builds, and the cleanup does not wait for it', async () => {
  part('coredns-old', 15);
  await withLock('parts', () => removeUnused(cache, { named: [], inUse: [], now }), cache);
  expect(left()).toEqual(['coredns-old']);
  await removeUnused(cache, { named: [], inUse: [], now });
  expect(left()).toEqual([]);
});

test('if there is nothing to remove the lock is not taken, and a cache without parts is not an error', async () => {
  await removeUnused(cache, { named: [], inUse: [], now });
  expect(readdirSync(cache)).toEqual([]);
});

test('a free lock is held during the action, and released if the action fails', async () => {
  const lock = path.join(cache, '.parts.lock');
  const failing = withLockIfFree(
    'parts',
    () => {
      expect(existsSync(lock)).toBe(true);
      return Promise.reject(new Error('broken'));
    },
    cache,
  );
  await expect(failing).rejects.toThrow('broken');
  expect(existsSync(lock)).toBe(false);
});
