// Changes of a process while some instances of the version before are not ready.

import { describe, expect, test } from 'vitest';
import { canaryStep, type Generation } from '../../../src/controller/rollout/planner.ts';
import { generation, plan } from './rollout-scene.ts';

/** A version of which only the instances with these indexes are ready. */
const withReady = (hash: string, instances: number, readyIndexes: number[], more: Partial<Generation> = {}): Generation =>
  generation(hash, instances, readyIndexes.length, { readyIndexes, ...more });

describe('an old version whose ready instances have the highest indexes', () => {
  test('has no requests any more before its only ready one is stopped', () => {
    const generations = [withReady('old', 2, [1]), withReady('new', 2, [0])];
    const settled = plan({ desired: 2, generations, carried: { old: 1, new: 1 }, settled: { old: 1, new: 1 } });
    expect(settled).toMatchObject({ instances: { old: 2, new: 2 }, weights: { new: 1 } });
    expect(plan({ desired: 2, generations, carried: { new: 1 }, settled: { new: 1 } })).toMatchObject({
      instances: { old: 1, new: 2 },
      weights: { new: 1 },
    });
    // Its StatefulSet has not stopped it yet.
    const stopping = [withReady('old', 1, [1], { present: 2 }), withReady('new', 2, [0])];
    expect(plan({ desired: 2, generations: stopping, carried: { new: 1 } }).weights).toEqual({ new: 1 });
  });

  test('has as many requests as ready instances stay', () => {
    const generations = [withReady('old', 3, [1, 2]), withReady('new', 1, [0])];
    const settled = { old: 2, new: 1 };
    expect(plan({ desired: 3, generations, settled })).toMatchObject({ instances: { old: 3 }, weights: { old: 1, new: 1 } });
    expect(plan({ desired: 3, generations, settled: { old: 1, new: 1 } }).instances).toMatchObject({ old: 2 });
    const lowest = [withReady('old', 3, [0, 1]), withReady('new', 1, [0])];
    expect(plan({ desired: 3, generations: lowest, settled })).toMatchObject({ instances: { old: 2 }, weights: settled });
  });

  test('keeps its only ready one while nothing else serves, if the new version has room', () => {
    const old = withReady('old', 5, [1]);
    const settled = { old: 1 };
    const next = plan({ generations: [old, generation('new', 0, 0)], settled });
    expect(next).toMatchObject({ instances: { old: 2, new: 0 }, weights: { old: 1 } });
    expect(plan({ generations: [withReady('old', 2, [1]), generation('new', 0, 0)], settled }).instances).toEqual({ old: 2, new: 1 });
    // One may be in flight, and one more about to be stopped: with three of the old version, none of the new one could be started.
    const highest = [withReady('old', 3, [2]), generation('new', 0, 0)];
    expect(plan({ generations: highest, settled }).instances).toEqual({ old: 1, new: 0 });
    expect(plan({ generations: highest, settled, maxInFlight: 2 }).instances).toEqual({ old: 3, new: 1 });
    // Nor may it go on so when somebody scales the app down meanwhile.
    expect(plan({ generations: [withReady('old', 3, [2]), generation('new', 1, 0)], settled }).instances).toEqual({ old: 1, new: 1 });
    const two = withReady('old', 2, [1]);
    expect(plan({ generations: [two, generation('new', 1, 0)], settled }).instances).toEqual({ old: 2, new: 1 });
    expect(plan({ generations: [two, withReady('new', 1, [0])], settled })).toMatchObject({ instances: { old: 2 }, weights: { new: 1 } });
    expect(plan({ generations: [two, withReady('new', 1, [0])], settled: { new: 1 } }).instances).toEqual({ old: 0, new: 1 });
  });

  test('is stopped only after its requests were given to another old version', () => {
    const generations = [withReady('before', 2, [0]), withReady('old', 1, [0]), generation('new', 0, 0)];
    const state = { desired: 2, generations, carried: { before: 1, old: 1 } };
    expect(plan({ ...state, settled: { before: 1, old: 1 } })).toMatchObject({ instances: { before: 2, old: 1 }, weights: { before: 1 } });
    expect(plan({ ...state, carried: { before: 1 }, settled: { before: 1 } }).instances).toMatchObject({ before: 2, old: 0 });
  });
});

describe('an old version that was ready a short time ago', () => {
  const old = (more: Partial<Generation> = {}) => generation('old', 1, 0, { served: true, lapsed: true, ...more });

  test('is kept with its requests until the new version serves', () => {
    const first = plan({ generations: [old(), generation('new', 0, 0)], settled: { old: 1 } });
    expect(first).toMatchObject({ instances: { old: 1, new: 1 }, weights: { old: 1 } });
    const unproven = generation('new', 1, 1, { proven: false });
    expect(plan({ generations: [old(), unproven], settled: { old: 1 } })).toMatchObject({ instances: { old: 1 }, weights: { old: 1 } });
    const generations = [old(), generation('new', 1, 1)];
    expect(plan({ generations, settled: { old: 1 } })).toMatchObject({ instances: { old: 1 }, weights: { new: 1 } });
    expect(plan({ generations, carried: { new: 1 } })).toMatchObject({ instances: { old: 1 }, weights: { new: 1 } });
    expect(plan({ generations, carried: { new: 1 }, settled: { new: 1 } }).instances).toEqual({ old: 0, new: 1 });
  });

  test('is given up at once when the time for that is over', () => {
    const next = plan({ generations: [old({ lapsed: false }), generation('new', 0, 0)], settled: { old: 1 } });
    expect(next).toMatchObject({ instances: { old: 0, new: 1 }, weights: { new: 1 } });
  });

  test('of several instances makes room for the new version, and is as large as that lacks', () => {
    const many = old({ instances: 3, present: 3 });
    const state = { desired: 3, carried: { old: 2 } };
    expect(plan({ ...state, generations: [many, generation('new', 0, 0)] })).toMatchObject({
      instances: { old: 3, new: 1 },
      weights: { old: 3 },
    });
    const entered = { ...state, carried: { new: 1 }, settled: { new: 1 } };
    expect(plan({ ...entered, generations: [many, generation('new', 1, 1)] })).toMatchObject({
      instances: { old: 2, new: 2 },
      weights: { new: 1 },
    });
  });

  test('is not kept if it is half made and has no requests', () => {
    const half = generation('half', 1, 0, { created: 1.5, lapsed: true });
    const next = plan({ generations: [old(), half, generation('new', 0, 0)] });
    expect(next).toMatchObject({ instances: { old: 1, half: 0, new: 1 }, weights: { old: 1 } });
    expect(plan({ generations: [half, generation('new', 0, 0)] })).toMatchObject({ instances: { half: 0 }, weights: { new: 1 } });
    expect(plan({ generations: [half, generation('new', 1, 1)] })).toMatchObject({ instances: { half: 0 }, weights: { new: 1 } });
  });

  test('does not get the requests of another version', () => {
    const generations = [old(), generation('new', 1, 0)];
    expect(plan({ generations, carried: { new: 1 } })).toMatchObject({ instances: { old: 0 }, weights: { new: 1 } });
    expect(plan({ generations: [old(), generation('before', 1, 1), generation('new', 0, 0)], carried: { before: 1 } })).toMatchObject({
      instances: { old: 0, before: 1 },
      weights: { before: 1 },
    });
  });
});

test('a canary that no request has reached gets none while the version before is not ready', () => {
  const before = generation('old', 2, 0, { served: true });
  const next = plan({ desired: 2, canary: canaryStep(2), generations: [before, generation('new', 1, 1, { proven: false })] });
  expect(next).toMatchObject({ instances: { old: 2, new: 1 }, weights: { old: 2 } });
});

interface Turn {
  before: Generation[];
  after: Generation[];
  /** By which the gateway spreads requests meanwhile. */
  weights: Record<string, number>;
}

/** Acts as controller, gateway and kubelet until the change is done. Of the old version only these instances are ready, and no others ever become so. */
function play(desired: number, maxInFlight: number, ready: readonly number[]): Turn[] {
  let generations = [withReady('old', desired, [...ready], { served: true }), withReady('new', 0, [])];
  let weights: Record<string, number> = { old: ready.length };
  const turns: Turn[] = [];
  while (turns.length < 100) {
    const next = plan({ desired, maxInFlight, generations, carried: weights, settled: weights });
    const after = generations
      .filter(({ hash }) => !next.remove.includes(hash))
      .map((item) => {
        const instances = next.instances[item.hash] ?? 0;
        // An instance that was made in the turn before is ready now.
        const grown = Array.from({ length: Math.min(item.instances, instances) }, (_, index) => index);
        return withReady(item.hash, instances, item.hash === 'new' ? grown : ready.filter((index) => index < instances), {
          served: item.served,
        });
      });
    turns.push({ before: generations, after, weights });
    if (next.complete && next.remove.length === 0) return turns;
    generations = after;
    weights = next.weights;
  }
  throw new Error(`The change does not end: ${JSON.stringify(generations)}`);
}

test.each([
  [2, 1],
  [3, 1],
  [4, 2],
  [5, 3],
  [6, 9],
])('a change of %i instances in steps of %i ends, and never stops instances that the weights count', (desired, maxInFlight) => {
  for (let mask = 1; mask < 2 ** desired; mask += 1) {
    const ready = Array.from({ length: desired }, (_, index) => index).filter((index) => (mask & (2 ** index)) > 0);
    for (const { before, after, weights } of play(desired, maxInFlight, ready)) {
      const old = after.find(({ hash }) => hash === 'old');
      const shrinks = (old?.instances ?? 0) < (before.find(({ hash }) => hash === 'old')?.instances ?? 0);
      if (shrinks) expect(old?.ready ?? 0, `${JSON.stringify({ ready, weights })}`).toBeGreaterThanOrEqual(weights['old'] ?? 0);
    }
  }
});
