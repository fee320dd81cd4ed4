// What a chaos session counts as a hit, and when it has made and hit enough.

import { describe, expect, test } from 'vitest';
import { faultNames, isHit, leastCommands, usesPart } from '../../chaos/session.ts';
import { stepNames } from '../../chaos/steps.ts';
import { Tally } from '../../chaos/tally.ts';

const newTally = (): Tally => new Tally(faultNames, stepNames, usesPart);

describe('a step of a chaos session', () => {
  test('counts as hit only by a fault of a part that it uses', () => {
    const tally = newTally();
    for (const step of stepNames) tally.hit('registry deleted', step);
    tally.hit('controller killed', 'set-env');
    tally.hit('gateway deleted', 'scale');
    expect(tally.missedSteps).toEqual([...stepNames]);
    tally.hit('command killed', 'set-env');
    tally.hit('controller killed', 'scale');
    tally.hit('gateway deleted', 'map-route');
    expect(tally.missedSteps).toEqual(stepNames.filter((step) => !['set-env', 'scale', 'map-route'].includes(step)));
    // Every kill is in the report, also beside a step that it cannot harm.
    expect(tally.hits('registry deleted', 'set-env')).toBe(1);
    expect(tally.missedFaults).toEqual(['controller deleted', 'API server killed']);
  });

  test('can be hit', () => {
    for (const step of stepNames) expect(faultNames.filter((fault) => usesPart(step, fault)).length, step).toBeGreaterThan(1);
  });
});

describe('a fault', () => {
  test.each([
    ['when something ended while the command ran', true, [true, true], true],
    ['not when there was nothing to be ended', false, [true, true], false],
    ['not when the command had ended before', true, [false, false], false],
    ['not when the command ended meanwhile', true, [true, false], false],
  ])('hits a command %s', async (_what, wasThere, runs, hit) => {
    const states = [...runs];
    let ended = 0;
    const end = (): Promise<boolean> => Promise.resolve((ended += 1) > 0 && wasThere);
    expect(await isHit(end, () => states.shift() ?? false)).toBe(hit);
    expect(ended).toBe(1);
  });
});

test('a session of 30 minutes makes 200 commands at least, and a shorter one as many in proportion', () => {
  expect([30, 15, 2, 0].map(leastCommands)).toEqual([200, 100, 13, 0]);
  const tally = newTally();
  for (const step of ['push', 'scale', 'push']) tally.took(step, 1_000);
  expect(tally.done).toBe(3);
});
