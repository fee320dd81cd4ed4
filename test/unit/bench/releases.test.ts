// What fails a run of changes under load, on the cluster ring and in the bench: counts, and no clock.

import { expect, test } from 'vitest';
import { faultsOf, renderTable } from '../../bench/table.ts';
import type { Loaded } from '../../support/load.ts';
import { faultsOfCanary, faultsOfRoll } from '../../support/releases.ts';

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

const during = { asked: 1000, failed: 100, byCanary: 60 };
const after = { asked: 300, failed: 0, byCanary: 0 };

test('a canary that breaks has no fault as long as only its share fails, and nothing after its return', () => {
  expect(faultsOfCanary({ during, after })).toEqual([]);
});

test.each([
  ['more than its share', { during: { ...during, failed: 101 } }, ['101 of 1000 requests failed while the canary had 10 % of them']],
  ['a failure after its return', { after: { ...after, failed: 1 } }, ['1 of 300 requests failed after the canary was taken back']],
  ['a return that has not happened', { after: { ...after, byCanary: 30 } }, ['the canary answered 30 requests after it was taken back']],
  ['a canary that had no requests', { during: { ...during, byCanary: 0 } }, ['no user has seen the canary']],
])('%s is a fault of a canary', (_what, more, faults) => {
  expect(faultsOfCanary({ during, after, ...more })).toEqual(faults);
});

test('faults of a bench are listed with its name, and stand in their row', () => {
  const row = { what: 'roll', reach: '0 failed', measured: '1 failed', beside: 'and more' };
  const results = { idle: { when: '1', rows: [row] }, releases: { when: '1', rows: [row, { ...row, faults: ['one', 'two'] }] } };
  expect(faultsOf(results)).toEqual(['releases: one', 'releases: two']);
  expect(renderTable(results).split('\n')[4]).toBe('| roll | 0 failed | 1 failed | NOT KEPT: one; NOT KEPT: two; and more | 1 |');
});
