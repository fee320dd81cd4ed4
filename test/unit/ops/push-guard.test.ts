// Which push may write an app's settings, and for how long.

import { expect, test } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { abortError, timerMs } from '../../../src/lib/wait.ts';
import { lockJudge, takeOver } from '../../../src/lib/ops/push/lock.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const locked = (lock?: string): CFApp =>
  ({ metadata: { annotations: lock === undefined ? {} : { [annotations.applying]: lock } }, spec: { displayName: 'a' } }) as CFApp;

test("another push's lock holds for ten seconds by the own clock, whatever time it contains", () => {
  for (const theirTime of [0, Date.now() - 3_600_000, Date.now() + 3_600_000]) {
    let now = 1_000;
    const isLocked = lockJudge('mine', () => now);
    const app = locked(`theirs@${theirTime}`);
    expect(isLocked(app)).toBe(true);
    now += 9_999;
    expect(isLocked(app)).toBe(true);
    now += 1;
    expect(isLocked(app)).toBe(false);
  }
});

test('a lock that is renewed or changes its owner starts a new period, and no lock or the own one does not block', () => {
  let now = 0;
  const isLocked = lockJudge('mine', () => now);
  expect(isLocked(locked('theirs@1'))).toBe(true);
  now = 20_000;
  expect(isLocked(locked('theirs@2'))).toBe(true);
  expect(isLocked(locked('mine@3'))).toBe(false);
  expect(isLocked(locked())).toBe(false);
});

test('a time limit that is too large for a timer does not end at once', () => {
  expect(timerMs(100_000 * 60_000)).toBe(2 ** 31 - 1);
  expect(timerMs(Infinity)).toBe(2 ** 31 - 1);
  expect(timerMs(5)).toBe(5);
});

test('a push that waits for another one ends at once when it is interrupted, also while the API server does not answer', async () => {
  const cluster = new MemoryCluster();
  const metadata = { name: 'a', namespace: 's', annotations: { [annotations.applying]: 'theirs@1' } };
  const app = await cluster.create(kinds.app, { ...locked(), metadata });
  const stop = new AbortController();
  const silent = Object.assign(Object.create(cluster) as MemoryCluster, {
    get: (_type: unknown, _ns: string, _name: string, signal?: AbortSignal) => {
      queueMicrotask(() => stop.abort());
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(abortError(signal)), { once: true }));
    },
  });
  const wait = takeOver(silent, app, { pushId: 'mine', user: 'somebody' }, { signal: stop.signal });
  await expect(wait).rejects.toMatchObject({ code: 'interrupted' });
});
