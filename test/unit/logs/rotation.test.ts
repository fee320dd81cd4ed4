import { describe, expect, test } from 'vitest';
import { gapAtStart, Rotations } from '../../../src/lib/logs/rotation.ts';

const at = (ms: number, nanos = 0): string => new Date(ms).toISOString().replace('Z', `${String(nanos).padStart(6, '0')}Z`);

/** Passes lines, one for each time; returns the gaps before them. */
function read(rotations: Rotations, times: readonly string[]): unknown[] {
  return times.flatMap((time) => rotations.pass(time) ?? []);
}

describe('a new file of a followed log', () => {
  test('that becomes known later is found between the lines around its first one', () => {
    const rotations = new Rotations();
    expect(read(rotations, [at(10), at(20), at(10_000), at(10_020)])).toEqual([]);
    expect(rotations.found(at(9_000))).toEqual({ from: at(20), to: at(10_000), reason: 'log rotated' });
    expect(rotations.found(at(9_000))).toBeUndefined();
  });

  test('that is known before its lines is told where they begin, and once for several files', () => {
    const rotations = new Rotations();
    read(rotations, [at(10), at(20)]);
    expect(rotations.found(at(5_000))).toBeUndefined();
    expect(rotations.found(at(9_000))).toBeUndefined();
    expect(read(rotations, [at(30), at(9_000), at(9_010)])).toEqual([{ from: at(30), to: at(9_000), reason: 'log rotated' }]);
    expect(rotations.found(at(9_000))).toBeUndefined();
  });

  test('is told although a reader far behind reads the file before it too', () => {
    const rotations = new Rotations();
    read(rotations, [at(10), at(20)]);
    for (const start of [at(5_000), at(9_000)]) rotations.found(start);
    expect(read(rotations, [at(30), at(5_000), at(5_010)])).toEqual([{ from: at(30), to: at(5_000), reason: 'log rotated' }]);
    expect(rotations.isBehind).toBe(true);
    expect(rotations.found(at(9_000))).toBeUndefined();
    expect(read(rotations, [at(9_500), at(9_510)])).toEqual([{ from: at(5_010), to: at(9_500), reason: 'log rotated' }]);
    expect(rotations.isBehind).toBe(false);
  });

  test('in which the reading began is no gap', () => {
    const rotations = new Rotations();
    read(rotations, [at(10), at(20)]);
    expect(rotations.found(at(10))).toBeUndefined();
    expect(new Rotations().found(at(10))).toBeUndefined();
  });

  test('in which the reading began is no gap after many lines either, whether it was read from its first line or from a later one', () => {
    const rotations = new Rotations();
    for (let ms = 10_000; ms < 30_000; ms++) rotations.pass(at(ms));
    expect([rotations.found(at(10)), rotations.found(at(10_000))]).toEqual([undefined, undefined]);
    // A later one is, although its place is no longer known.
    expect(rotations.found(at(10_001))).toEqual({ to: expect.any(String) as unknown, reason: 'log rotated' });
  });

  test('after a gap that a new connection showed is not told twice', () => {
    const rotations = new Rotations();
    read(rotations, [at(10)]);
    expect(rotations.pass(at(9_000), true)).toBeUndefined();
    expect(rotations.found(at(5_000))).toBeUndefined();
  });

  test('is found within the millisecond of other lines, and among many lines', () => {
    const rotations = new Rotations();
    for (let ms = 0; ms < 20_000; ms++) for (const nanos of [1, 2, 3]) rotations.pass(at(ms, nanos));
    expect(rotations.found(at(19_000, 2))).toEqual({ from: at(19_000, 1), to: at(19_001, 1), reason: 'log rotated' });
    // Its place is no longer known.
    expect(rotations.found(at(19_500))).toEqual({ from: at(19_499, 1), to: at(19_500, 1), reason: 'log rotated' });
  });
});

describe('a line that a kubelet sends again', () => {
  test('is known by its time, also when it is old; lines of two streams may change places', () => {
    const rotations = new Rotations();
    for (let ms = 0; ms < 20_000; ms++) rotations.pass(at(ms, 5));
    expect([at(0, 5), at(19_000, 5), at(19_998, 5)].map((time) => rotations.isRepeated(time))).toEqual([true, true, true]);
    // The last one too, but two lines of one time are two lines.
    expect(rotations.isRepeated(at(19_999, 5))).toBe(true);
    rotations.pass(at(20_000));
    expect(rotations.isRepeated(at(20_000))).toBe(false);
    expect([at(19_998, 6), at(20_001)].map((time) => rotations.isRepeated(time))).toEqual([false, false]);
  });
});

describe('the first line of a run', () => {
  test('that came 2 s after a start at the end of a second, whose part of a second is not known, comes after no gap', () => {
    // The container was started at 00.950, and its app wrote at 02.900.
    expect(gapAtStart('2026-01-01T00:00:00Z', '2026-01-01T00:00:02.900000000Z', 20)).toBeUndefined();
  });

  const started = '2026-01-01T00:00:00Z';
  const late = '2026-01-01T00:00:03.100000000Z';

  test('that was there already, and is not of its first moments, comes after a gap', () => {
    expect(gapAtStart(started, late, 20)).toEqual({ to: late, reason: 'log rotated' });
    // A busy runtime is asked for the file.
    expect(gapAtStart(started, late, 450)).toEqual({ to: late, reason: 'log rotated' });
  });

  test('that is of its first moments, or came while the reader waited, comes after none', () => {
    expect(gapAtStart(started, '2026-01-01T00:00:01.900000000Z', 20)).toBeUndefined();
    expect(gapAtStart(started, late, 1_500)).toBeUndefined();
    expect(gapAtStart(started, late, 600)).toBeUndefined();
    expect(gapAtStart(undefined, late, 20)).toBeUndefined();
  });
});
