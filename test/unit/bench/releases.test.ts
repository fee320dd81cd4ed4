// What fails a run of changes under load, on the cluster ring and in the bench: counts, and times beside others.

import { expect, test } from 'vitest';
import { faultsOf, faultsOfTime, renderTable } from '../../bench/table.ts';
import type { Loaded } from '../../support/load.ts';
import { faultsOfCanary, faultsOfRoll, partsOf } from '../../support/releases.ts';

const loaded = (more: Partial<Loaded> = {}): Loaded => ({
  asked: { 'new connection': 20, 'keep-alive': 20, 'POST of 2 s': 5, 'HTTP/2': 5, WebSocket: 10 },
  failures: [],
  versions: ['1.0', '1.1', '2.2'],
  ...more,
});
const expected = ['1.0', '1.1', '2.2'];

test('a roll without a failed request, of which each version was seen, has no fault', () => {
  expect(faultsOfRoll({ loaded: loaded(), expected })).toEqual([]);
});

test.each([
  ['a failed request', { failures: ['9 ms: keep-alive: 502'] }, ['1 of 60 requests failed: 9 ms: keep-alive: 502']],
  ['a version that nobody saw', { versions: ['1.0', '2.2'] }, ['no user has seen version 1.1']],
  ['requests that were not sent', { asked: { ...loaded().asked, WebSocket: 0 } }, ["nobody has sent a request of the kind 'WebSocket'"]],
])('%s is a fault of a roll', (_what, more, faults) => {
  expect(faultsOfRoll({ loaded: loaded(more), expected })).toEqual(faults);
});

const before = { asked: 200, failed: 0, byCanary: 0 };
const during = { asked: 1000, failed: 70, byCanary: 30 };
const after = { asked: 300, failed: 0, byCanary: 0 };
const run = { before, during, after, socketFailures: 0 };

test('a canary that breaks has no fault as long as only its share fails, and nothing before and after it', () => {
  expect(faultsOfCanary(run)).toEqual([]);
  // The gateway draws: a little more than the mean is a chance.
  expect(faultsOfCanary({ ...run, during: { ...during, byCanary: 67 } })).toEqual([]);
});

test.each([
  [
    'more than its share',
    { during: { ...during, failed: 101, byCanary: 20 } },
    ['101 of 1000 requests failed while the canary had 10 % of them'],
  ],
  [
    'a failure beside its own requests',
    { during: { ...during, failed: 98, byCanary: 41 } },
    ['the version before has not answered 139 of 1000 requests while the canary had 10 % of them'],
  ],
  [
    'a failure before its first answer',
    { before: { ...before, failed: 1 } },
    ['1 of 200 requests failed before the canary had answered any'],
  ],
  ['a WebSocket of the version before', { socketFailures: 1 }, ['1 WebSockets of the version before failed']],
  ['a failure after its return', { after: { ...after, failed: 1 } }, ['1 of 300 requests failed after the canary was taken back']],
  ['a return that has not happened', { after: { ...after, byCanary: 30 } }, ['the canary answered 30 requests after it was taken back']],
  ['a canary that had no requests', { during: { ...during, byCanary: 0 } }, ['no user has seen the canary']],
])('%s is a fault of a canary', (_what, more, faults) => {
  expect(faultsOfCanary({ ...run, ...more })).toEqual(faults);
});

test('only what ends between the first answer of a canary and its last one, or its last failure, counts for its share', () => {
  const [old, canary, failed] = ['1.0', '1.1', undefined];
  const outcomes = [
    failed,
    old,
    /* begins */ old,
    failed,
    old,
    canary,
    old,
    failed,
    canary,
    old,
    failed,
    old,
    old,
    /* back */ old,
    failed,
    canary,
  ];
  expect(partsOf(outcomes, 2, 13, canary)).toEqual({
    before: { asked: 3, failed: 1, byCanary: 0 },
    during: { asked: 6, failed: 2, byCanary: 2 },
    after: { asked: 3, failed: 1, byCanary: 1 },
  });
});

test('a canary that nobody has seen has no share, and each failure is one before it', () => {
  expect(partsOf(['1.0', undefined, '1.0', '1.0'], 0, 3, '1.1')).toEqual({
    before: { asked: 3, failed: 1, byCanary: 0 },
    during: { asked: 0, failed: 0, byCanary: 0 },
    after: { asked: 1, failed: 0, byCanary: 0 },
  });
});

test('a time is a fault only when it is longer than the one beside it, and what is allowed more', () => {
  expect(faultsOfTime('the push', 17_000, 7_000, 10_000)).toEqual([]);
  expect(faultsOfTime('the push', 17_001, 7_000, 10_000)).toEqual(['the push took 17.0 s, beside 7.0 s and 10.0 s more']);
});

test('faults of a bench are listed with its name, and stand in their row', () => {
  const row = { what: 'roll', reach: '0 failed', measured: '1 failed', beside: 'and more' };
  const results = { idle: { when: '1', rows: [row] }, releases: { when: '1', rows: [row, { ...row, faults: ['one', 'two'] }] } };
  expect(faultsOf(results)).toEqual(['releases: one', 'releases: two']);
  expect(renderTable(results).split('\n')[4]).toBe('| roll | 0 failed | 1 failed | NOT KEPT: one; NOT KEPT: two; and more | 1 |');
});
