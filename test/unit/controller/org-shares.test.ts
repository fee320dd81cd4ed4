import { describe, expect, test } from 'vitest';
import { divide, type Holding } from '../../../src/controller/tenancy/division.ts';
import { limitsOf, totalsOf } from '../../../src/templates/limits.ts';

const empty = { used: 0, given: 0, inForce: 0, uncounted: 0 };
const holding = (used: number, given: number, inForce = given): Holding => ({ ...empty, used, given, inForce });

describe('the total of an org', () => {
  test('is divided equally, with a part for a future space', () => {
    expect(divide(200, 100, [empty])).toEqual({ shares: [100], isShort: [false] });
    expect(divide(200, 100, [holding(10, 100), empty])).toEqual({ shares: [100, 63], isShort: [false, false] });
    expect(divide(90, 100, [empty, empty])).toEqual({ shares: [30, 30], isShort: [false, false] });
  });

  test('stays divided as it is while each space has half of its part left', () => {
    expect(divide(200, 100, [holding(20, 70), holding(0, 66)]).shares).toEqual([70, 66]);
    // The part is 46: less than 23 are left in the first.
    expect(divide(200, 100, [holding(60, 70), holding(0, 66)]).shares).toEqual([100, 66]);
  });

  test('is reduced in one space first, and given to others when the reduction is in force', () => {
    const before = divide(200, 200, [holding(20, 160), holding(0, 40), empty]);
    expect(before).toEqual({ shares: [65, 40, 0], isShort: [false, false, true] });
    // The quota that was reduced still admits objects.
    expect(divide(200, 200, [holding(20, 65, 160), holding(0, 40), empty])).toEqual({ shares: [65, 40, 0], isShort: [false, false, true] });
    expect(divide(200, 200, [holding(20, 65), holding(0, 40), empty])).toEqual({ shares: [65, 40, 45], isShort: [false, false, false] });
  });

  test('is zero for each space when it is used up, and existing objects stay', () => {
    expect(divide(200, 100, [holding(100, 100), holding(100, 100), empty])).toEqual({
      shares: [100, 100, 0],
      isShort: [false, false, false],
    });
    expect(divide(200, 100, [holding(150, 150), holding(90, 100), empty])).toEqual({
      shares: [100, 90, 0],
      isShort: [false, false, false],
    });
  });

  test('is not given to others while a quota admits objects that it does not count', () => {
    // 40 of 60 are counted, so 20 more would be admitted: the limit is lowered by 20, which makes the cluster count again.
    expect(divide(100, 100, [{ ...holding(60, 60), uncounted: 20 }, holding(30, 30)]).shares).toEqual([43, 30]);
    expect(divide(100, 100, [holding(60, 43), holding(30, 30)]).shares).toEqual([63, 33]);
  });

  test('is not exceeded by spaces that fill up as fast as they can, whenever the cluster applies the quotas', () => {
    let seed = 42;
    const random = (below: number): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % below;
    for (let run = 0; run < 50; run += 1) {
      // The state of the cluster, and what the controller read of it last.
      const spaces: { used: number; given: number; inForce: number; seen: Holding }[] = [];
      for (let step = 0; step < 400; step += 1) {
        if (spaces.length < 20 && random(10) === 0) spaces.push({ ...empty, seen: { ...empty } });
        const { shares } = divide(
          200,
          180,
          spaces.map(({ seen }) => seen),
        );
        for (const [index, space] of spaces.entries()) {
          if (space.given === shares[index]) continue;
          // The answer to a write is the whole quota in its state at that time.
          space.given = shares[index] ?? 0;
          space.seen = { ...empty, given: space.given, inForce: space.inForce, used: space.used };
        }
        for (const space of spaces) {
          if (random(6) === 0) space.inForce = space.given;
          if (random(5) === 0) space.used = 0;
          else if (random(3) === 0) space.used = Math.max(space.used, space.inForce);
          if (random(3) === 0) space.seen = { ...empty, given: space.given, inForce: space.inForce, used: space.used };
        }
        expect(spaces.reduce((sum, { used }) => sum + used, 0)).toBeLessThanOrEqual(200);
      }
    }
  });
});

test("the total of an org is twice the limits of a space (once for Secrets), or the operator's value", () => {
  const totals = totalsOf(limitsOf('space'));
  expect(totals).toMatchObject({ 'count/cfapps.korifi.cloudfoundry.org': '200', 'count/secrets': '2000' });
  expect(Object.keys(totals)).not.toContain('requests.memory');
  const named = totalsOf(limitsOf('space', { 'count/secrets': '50' }), { pods: '100', 'count/pods': '' });
  expect(named).toMatchObject({ 'count/secrets': '50', pods: '100' });
  expect(Object.keys(named)).not.toContain('count/pods');
});
