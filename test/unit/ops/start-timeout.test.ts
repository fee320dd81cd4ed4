import { expect, test } from 'vitest';
import { startTimeoutMs } from '../../../src/lib/ops/apps/rollout-wait.ts';

test.each([
  [undefined, undefined, 300_000],
  [undefined, 60, 300_000],
  [undefined, 600, 630_000],
  ['0.1', undefined, 6000],
  ['0.1', 60, 6000],
  ['10', 1200, 600_000],
  ['abc', 600, 630_000],
])('with CF_STARTUP_TIMEOUT=%s and an app that takes at most %s s a start has %s ms', (asked, ownSeconds, expected) => {
  expect(startTimeoutMs(asked === undefined ? {} : { CF_STARTUP_TIMEOUT: asked }, ownSeconds)).toBe(expected);
});
