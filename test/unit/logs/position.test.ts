import { describe, expect, test } from 'vitest';
import { LogPosition, parseStamped } from '../../../src/lib/logs/position.ts';

const at = (second: number, nanos = 0): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}.${String(nanos).padStart(9, '0')}Z`;

function read(position: LogPosition, times: string[]): string[] {
  position.connect();
  return times.map((time) => position.take(time, true));
}

describe('timestamps', () => {
  test.each([
    ['2026-08-07T10:16:20.450000000Z hello', '2026-08-07T10:16:20.450000000Z', 'hello'],
    ['2026-08-07T12:16:20.45+02:00 hello world', '2026-08-07T10:16:20.450000000Z', 'hello world'],
    ['2026-08-07T10:16:20Z  two blanks', '2026-08-07T10:16:20.000000000Z', ' two blanks'],
    ['2026-08-07T10:16:20.1Z', '2026-08-07T10:16:20.100000000Z', ''],
  ])('%s', (line, time, text) => {
    expect(parseStamped(line)).toEqual({ time, text });
  });

  test('a line without a timestamp is not from the container', () => {
    expect(parseStamped('unable to retrieve container logs for containerd://abc')).toBeUndefined();
  });
});

describe('a log position', () => {
  test('resumes a second before its last line', () => {
    const position = new LogPosition();
    expect(position.sinceTime).toBeUndefined();
    read(position, [at(5, 900)]);
    expect(position.sinceTime).toBe('2026-01-01T00:00:04Z');
  });

  test('skips lines up to its last one and accepts the next', () => {
    const position = new LogPosition();
    read(position, [at(4), at(5, 1), at(5, 2)]);
    expect(read(position, [at(4), at(5, 1), at(5, 2), at(5, 3), at(6)])).toEqual(['seen', 'seen', 'seen', 'new', 'new']);
  });

  test('counts lines with the same time', () => {
    const position = new LogPosition();
    read(position, [at(5), at(5)]);
    expect(read(position, [at(5), at(5), at(5)])).toEqual(['seen', 'seen', 'new']);
    expect(read(position, [at(5), at(5), at(5)])).toEqual(['seen', 'seen', 'seen']);
  });

  test('keeps the order of the file if times go backwards', () => {
    const position = new LogPosition();
    read(position, [at(5, 10), at(5, 8)]);
    expect(read(position, [at(5, 10), at(5, 8), at(5, 9), at(5, 11)])).toEqual(['seen', 'seen', 'new', 'new']);
  });

  test('reports a gap if a younger line comes before the last known one', () => {
    const position = new LogPosition();
    read(position, [at(5)]);
    expect(read(position, [at(7), at(8)])).toEqual(['hole', 'new']);
    expect(position.caughtUp).toBe(true);
  });

  test('is not changed by a gap that is not accepted yet', () => {
    const position = new LogPosition();
    read(position, [at(5)]);
    position.connect();
    expect([position.take(at(7), false), position.last]).toEqual(['hole', at(5)]);
    expect(read(position, [at(5), at(7)])).toEqual(['seen', 'new']);
  });

  test('has not caught up on a connection that contains no known line', () => {
    const position = new LogPosition();
    read(position, [at(5)]);
    position.connect();
    expect(position.caughtUp).toBe(false);
    expect(read(position, [at(5), at(6)])).toEqual(['seen', 'new']);
  });

  test('does not share its state with a copy', () => {
    const position = new LogPosition();
    read(position, [at(5)]);
    const copy = position.copy();
    read(position, [at(5), at(6)]);
    expect([copy.last, position.last]).toEqual([at(5), at(6)]);
  });
});
