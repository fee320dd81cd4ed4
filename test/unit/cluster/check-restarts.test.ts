// What a restart by a check excuses in the test of upgrades: only what it explains.

import { expect, test } from 'vitest';
import { changedPods, checkRestarts, isDuring, type CheckedPod, type KillingEvent } from '../../support/check-restarts.ts';

const at = (second: number): number => Date.parse('2026-01-01T00:00:00Z') + second * 1_000;
const text = (second: number): string => new Date(at(second)).toISOString();

/** Its program was started at one second and is ready since another one. */
const pod = (uid: string, startedAt: number, readyAt: number, isReady = true): CheckedPod => ({
  metadata: { uid },
  status: {
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: text(readyAt) }],
    containerStatuses: [{ restartCount: 1, state: { running: { startedAt: text(startedAt) } } }],
  },
});
const killing = (uid: string, first: number, last = first, more: Partial<KillingEvent> = {}): KillingEvent => ({
  message: 'Container application failed liveness probe, will be restarted',
  involvedObject: { uid },
  firstTimestamp: text(first),
  lastTimestamp: text(last),
  ...more,
});
const work = { from: at(100) + 500, to: at(200) };

test.each([
  ['a restart', killing('a', 120), pod('a', 130, 132), { most: 1, from: at(117), to: at(135) }],
  ['one in the second in which the work began', killing('a', 100), pod('a', 110, 111), { most: 1, from: at(97), to: at(114) }],
  ['several ones', killing('a', 120, 150, { count: 2 }), pod('a', 160, 161), { most: 2, from: at(117), to: at(164) }],
  ['the last one of several', killing('a', 20, 150, { count: 3 }), pod('a', 160, 161), { most: 2, from: at(147), to: at(164) }],
  ['one after which the app is not ready', killing('a', 190), pod('a', 195, 195, false), { most: 1, from: at(187), to: Infinity }],
  ['one whose program still ends', killing('a', 190), pod('a', 1, 2), { most: 1, from: at(187), to: Infinity }],
])('%s during the work excuses the time from shortly before it until the app is ready again', (_what, event, after, expected) => {
  expect(checkRestarts([event], [after], work)).toEqual([{ uid: 'a', ...expected }]);
});

test.each([
  ['before the work', killing('a', 99)],
  ['after the work', killing('a', 201)],
  ['of another pod', killing('b', 120)],
  ['for another reason', killing('a', 120, 120, { message: 'Stopping container application' })],
])('one %s excuses nothing', (_what, event) => {
  expect(checkRestarts([event], [pod('a', 130, 132)], work)).toEqual([]);
});

test('a request is excused when it was under way during the restart, and not before or after it', () => {
  const restarts = [{ from: at(10), to: at(20) }];
  const spans = [
    { from: at(1), to: at(9) },
    { from: at(1), to: at(10) },
    { from: at(12), to: at(13) },
    { from: at(20), to: at(30) },
    { from: at(21), to: at(22) },
  ];
  expect(spans.map((span) => isDuring(restarts, span))).toEqual([false, true, true, true, false]);
});

test('pods that went or came, and restarts beyond those of the checks, are told; others are not', () => {
  const before = ['kept', 'gone', 'busy', 'more', 'less'].map((uid) => ({ uid, restarts: 1 }));
  const after = [
    { uid: 'kept', restarts: 1 },
    { uid: 'new', restarts: 0 },
    { uid: 'busy', restarts: 2 },
    { uid: 'more', restarts: 3 },
    { uid: 'less', restarts: 0 },
  ];
  const restarts = ['busy', 'more'].map((uid) => ({ uid, most: 1, from: 0, to: 0 }));
  expect(changedPods(before, after, restarts)).toEqual([
    'gone is gone',
    'new is new',
    'more was restarted 2 times, 1 by its checks',
    'less was restarted -1 times, 0 by its checks',
  ]);
});
