// The lines of a failure in a status: their size is limited whatever a program prints.

import { describe, expect, test } from 'vitest';
import { keepLines, linesIn, mostKeptBytes } from '../../../src/lib/api/kept-lines.ts';

const none = { head: [], omitted: 0, tail: [] };

test.each([
  ['both ends', { head: ['first'], omitted: 3, tail: ['second', 'last'] }],
  ['a short log, which is all tail', { head: [], omitted: 0, tail: ['last'] }],
  ['none', none],
])('are read as they were kept: %s', (_, lines) => {
  expect(linesIn(keepLines(lines))).toEqual(lines);
});

test('no lines leave no field', () => {
  expect(keepLines(none)).toEqual({});
});

describe('have at most 8 KiB together', () => {
  test.each([
    ['plain text', 'x'.repeat(500)],
    ['control characters', '\u001b'.repeat(500)],
    ['characters of three bytes', '\u20ac'.repeat(500)],
  ])('with lines of %s; the first and the last line stay, and the others are counted', (_, long) => {
    const head = ['first', ...Array.from({ length: 9 }, () => long)];
    const tail = [...Array.from({ length: 59 }, () => long), 'last'];
    const kept = keepLines({ head, omitted: 2, tail });
    expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThanOrEqual(mostKeptBytes);
    const lines = linesIn(kept);
    expect([lines.head[0], lines.tail.at(-1)]).toEqual(['first', 'last']);
    expect(lines.head.length + lines.omitted + lines.tail.length).toBe(72);
  });

  test('of a log that is all tail, the lines before the last ones are counted too', () => {
    const { head, omitted, tail } = linesIn(keepLines({ ...none, tail: Array.from({ length: 30 }, () => 'x'.repeat(500)) }));
    expect([head, omitted + tail.length]).toEqual([[], 30]);
    expect(omitted).toBeGreaterThan(0);
  });
});
