// Who may write an app's settings, and for how long.

import { expect, test } from 'vitest';
import { annotations } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { timerMs } from '../../../src/lib/wait.ts';
import { lockJudge } from '../../../src/lib/ops/push/lock.ts';

const locked = (lock?: string): CFApp =>
  ({ metadata: { annotations: lock === undefined ? {} : { [annotations.applying]: lock } }, spec: { displayName: 'a' } }) as CFApp;

test("another push's lock holds for ten seconds by the own clock, whatever time it carries", () => {
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

test('a lock that is renewed or handed on counts anew; none, or the own one, does not hold', () => {
  let now = 0;
  const isLocked = lockJudge('mine', () => now);
  expect(isLocked(locked('theirs@1'))).toBe(true);
  now = 20_000;
  expect(isLocked(locked('theirs@2'))).toBe(true);
  expect(isLocked(locked('mine@3'))).toBe(false);
  expect(isLocked(locked())).toBe(false);
});

test('a time limit that no timer can hold does not end at once', () => {
  expect(timerMs(100_000 * 60_000)).toBe(2 ** 31 - 1);
  expect(timerMs(Infinity)).toBe(2 ** 31 - 1);
  expect(timerMs(5)).toBe(5);
});
