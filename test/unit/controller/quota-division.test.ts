// The total that a quota of the org sets is small and meant to be used up.

import { describe, expect, test } from 'vitest';
import { divide, type Holding } from '../../../src/controller/tenancy/division.ts';

const holding = (used: number, given: number, more: Partial<Holding> = {}): Holding => ({
  ...{ used, given, inForce: given, uncounted: 0 },
  ...more,
});
const exact = { isExact: true };

describe('the total of a quota', () => {
  test('belongs wholly to an only space, without a part for a future one', () => {
    expect(divide(10, 100, [holding(0, 0)], exact).shares).toEqual([10]);
    expect(divide(10, 100, [holding(3, 100)], exact).shares).toEqual([10]);
    // Raised while nothing changes in the space.
    expect(divide(15, 100, [holding(0, 10)], exact).shares).toEqual([15]);
  });

  test('is never more than the limit of each space', () => {
    expect(divide(10, [3, 100], [holding(0, 0), holding(0, 0)], exact).shares).toEqual([3, 5]);
  });

  test('goes first to what should run and does not yet', () => {
    // Two spaces share 2048; each has 1024, and the first needs 1536 beside its 256.
    const before = [holding(256, 1024, { asked: 1536 }), holding(0, 1024)];
    const lowered = divide(2048, Infinity, before, exact);
    expect(lowered).toEqual({ shares: [1024, 128], isShort: [true, false] });
    // The smaller limit is in force now.
    expect(divide(2048, Infinity, [holding(256, 1024, { asked: 1536 }), holding(0, 128)], exact)).toEqual({
      shares: [1920, 128],
      isShort: [false, false],
    });
  });

  test('is not exceeded by what is asked', () => {
    const asked = [holding(1000, 1024, { asked: 5000 }), holding(500, 1024, { asked: 5000 })];
    expect(divide(2048, Infinity, asked, exact).shares).toEqual([1024, 500]);
    expect(divide(2048, Infinity, [holding(1000, 1024, { asked: 5000 }), holding(500, 500)], exact).shares).toEqual([1548, 500]);
  });
});
