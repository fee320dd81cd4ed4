// Verdicts in the ConfigMap of the revisions: their size is limited whatever an app prints, and what is no verdict is left out.

import { describe, expect, test } from 'vitest';
import {
  mostVerdictBytes,
  mostVerdicts,
  printVerdict,
  readVerdicts,
  verdictEntries,
  withVerdict,
  type Verdict,
} from '../../../src/lib/api/verdicts.ts';

const verdict: Verdict = {
  version: 7, change: 'deploy', cause: 'exit-code', message: 'The app ended with exit code 7.', at: '2026-01-01T00:00:00Z', process: 'web',
  pod: 'shop-0', container: 'application', exitCode: 7, head: ['first'], omitted: 3, tail: ['second', 'last'],
}; // prettier-ignore
const mapOf = (data: Record<string, string>) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data });
const bytes = (text: string): number => Buffer.byteLength(text);

test('a verdict is read as it was printed', () => {
  expect(readVerdicts(mapOf({ 'verdict-7': printVerdict(verdict), 7: '{}' }))).toEqual([verdict]);
});

describe('an entry has at most 8 KiB', () => {
  test.each([
    ['plain text', 'x'.repeat(500)],
    ['control characters, which JSON makes six times longer', '\u001b'.repeat(500)],
    ['characters of three bytes', '\u20ac'.repeat(500)],
    ['half characters', '\ud800'.repeat(500)],
  ])('with lines of %s; the first and the last line stay', (_what, long) => {
    const head = ['first', ...Array.from({ length: 9 }, () => long)];
    const tail = [...Array.from({ length: 29 }, () => long), 'last'];
    const entry = printVerdict({ ...verdict, head, tail, message: long.repeat(10) });
    expect(bytes(entry)).toBeLessThanOrEqual(mostVerdictBytes);
    const [read] = readVerdicts(mapOf({ 'verdict-7': entry }));
    expect([read?.head[0], read?.tail.at(-1)]).toEqual(['first', 'last']);
    expect((read?.head.length ?? 0) + (read?.tail.length ?? 0) + (read?.omitted ?? 0)).toBe(43);
  });

  test('with a single line that is too long, the line is left out', () => {
    const entry = printVerdict({ ...verdict, head: [], tail: ['\u0000'.repeat(9_000)] });
    expect(readVerdicts(mapOf({ 'verdict-7': entry }))[0]).toMatchObject({ tail: [], omitted: 4 });
  });
});

test('the oldest of too many are dropped, and those without a record go with it', () => {
  const data = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`verdict-${String(index + 1)}`, 'x']));
  const change = withVerdict(mapOf(data), { ...verdict, version: 21 });
  expect(Object.keys(change).toSorted()).toEqual(['verdict-1', 'verdict-21']);
  expect(change['verdict-1']).toBeNull();
  expect(mostVerdicts).toBe(20);
  expect(Object.keys(withVerdict(mapOf(data), { ...verdict, version: 20 }))).toEqual(['verdict-20']);
  expect(Object.keys(verdictEntries(mapOf({ ...data, 3: 'record' }), new Set([3, 4])))).toEqual(['verdict-3', 'verdict-4']);
});

test('what is no verdict is left out', () => {
  const data = { 'verdict-1': 'no JSON', 'verdict-2': 'null', 'verdict-3': '[]', 'verdict-0': printVerdict(verdict), 'verdict-x': '{}' };
  expect(readVerdicts(mapOf(data))).toEqual([]);
  expect(readVerdicts(undefined)).toEqual([]);
  const strange = JSON.stringify({ change: 'c', message: 'm', at: 't', cause: 'made-up', head: 'x', tail: [1, 'a'], exitCode: 'x' });
  expect(readVerdicts(mapOf({ 'verdict-4': strange }))).toEqual([
    { version: 4, change: 'c', cause: 'unknown', message: 'm', at: 't', head: [], omitted: 0, tail: ['a'] },
  ]);
});
