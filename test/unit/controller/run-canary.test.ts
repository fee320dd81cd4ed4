// The steps of a canary, and what the other processes of its app do meanwhile.

import { describe, expect, test } from 'vitest';
import { canaryStep, type Generation } from '../../../src/controller/rollout/planner.ts';
import { generation, plan } from './rollout-scene.ts';

describe('a canary', () => {
  const old = (instances: number, ready = instances) => generation('old', instances, ready, { served: true });

  test.each([
    [4, undefined, { instances: 1, others: 4 }],
    [4, 10, { instances: 1, others: 4, percent: 10 }],
    [4, 50, { instances: 2, others: 3, percent: 50 }],
    [3, 99, { instances: 2, others: 2, percent: 99 }],
    [1, 1, { instances: 1, others: 1, percent: 1 }],
    [4, 100, { instances: 4, others: 0, percent: 100 }],
  ])('of %i instances has at %s %% the numbers of cf', (desired, percent, numbers) => {
    expect(canaryStep(desired, percent)).toEqual(numbers);
  });

  test('gets no request before one has reached it, and then the share of its step', () => {
    const state = { canary: canaryStep(1, 10), generations: [old(1), generation('new', 1, 1, { proven: false })] };
    expect(plan(state)).toMatchObject({ instances: { old: 1, new: 1 }, weights: { old: 1 } });
    const proven = plan({ ...state, generations: [old(1), generation('new', 1, 1)], settled: { old: 90, new: 10 } });
    expect(proven).toMatchObject({ instances: { old: 1, new: 1 }, weights: { old: 90, new: 10 }, remove: [], complete: false });
  });

  test('on its way to a step has requests by the number of instances', () => {
    const next = plan({ desired: 10, canary: canaryStep(10, 45), generations: [old(9), generation('new', 2, 2)] });
    expect(next.weights).toEqual({ old: 8, new: 2 });
    expect(next.instances).toEqual({ old: 9, new: 3 });
    const reached = plan({ desired: 10, canary: canaryStep(10, 45), generations: [old(7), generation('new', 4, 4)] });
    expect(reached).toMatchObject({ instances: { old: 7, new: 4 }, weights: { old: 55, new: 45 } });
  });

  test('never takes over by itself while the version before is not ready, and follows when somebody scales', () => {
    const down = plan({ desired: 3, canary: canaryStep(3), generations: [old(3, 0), generation('new', 1, 1)] });
    expect(down.instances).toEqual({ old: 3, new: 1 });
    const scaled = plan({ desired: 5, canary: canaryStep(5), generations: [old(3), generation('new', 1, 1)] });
    expect(scaled.instances).toEqual({ old: 5, new: 1 });
  });

  test('of one instance, replaced by another push, leaves the requests to the version that has served', () => {
    const state = { carried: { old: 90, canary: 10 }, settled: { old: 90, canary: 10 } };
    const canary = generation('canary', 1, 1, { created: 1.5 });
    const next = plan({ ...state, generations: [old(1), canary, generation('new', 0, 0)] });
    expect(next).toMatchObject({ instances: { old: 1, new: 1 }, weights: { old: 1 } });
  });

  test('that fails loses all requests, and the version before grows back', () => {
    const next = plan({ desired: 4, failed: true, canary: canaryStep(4, 50), generations: [old(3), generation('new', 2, 0)] });
    expect(next).toMatchObject({ instances: { old: 4, new: 0 }, weights: { old: 1 }, goal: 'old' });
  });

  test('of another process leaves this one as it is', () => {
    for (const routed of [true, false]) {
      const held = plan({ routed, canary: { instances: 0, others: 2 }, desired: 2, generations: [old(2), generation('new', 0, 0)] });
      expect(held).toMatchObject({ instances: { old: 2, new: 0 }, remove: [] });
      expect(held.weights).toEqual(routed ? { old: 2 } : {});
    }
  });

  test('of another process ends the trial instance of a change that it overtook, and keeps both behind routes', () => {
    const generations = [old(2), generation('half', 1, 1), generation('new', 0, 0)];
    const held = (routed: boolean) => plan({ routed, canary: { instances: 0, others: 2 }, desired: 2, generations }).instances;
    expect([held(false), held(true)]).toEqual([
      { old: 2, half: 0, new: 0 },
      { old: 2, half: 1, new: 0 },
    ]);
  });

  test('of another process keeps what has begun to run, whichever version it is', () => {
    const held = (generations: Generation[], routed = false) =>
      plan({ routed, canary: { instances: 0, others: 2 }, desired: 2, generations }).instances;
    // The version before was told to end, and its pods are still ready.
    const ending = generation('old', 0, 2, { served: true, created: 0 });
    expect(held([ending, generation('half', 1, 1), generation('new', 0, 0)])).toMatchObject({ half: 1 });
    // A change before has begun with the wanted version.
    expect(held([old(0, 0), generation('new', 2, 1)])).toEqual({ old: 0, new: 2 });
    expect(held([old(1), generation('new', 2, 1)], true)).toEqual({ old: 1, new: 2 });
  });

  test.each([true, false])('of another process leaves the version that serves free to be scaled (with routes: %j)', (routed) => {
    const held = (desired: number, ...generations: Generation[]) =>
      plan({ routed, canary: { instances: 0, others: desired }, desired, generations }).instances;
    expect(held(5, old(2), generation('new', 0, 0))).toEqual({ old: 5, new: 0 });
    expect(held(5, old(2, 0), generation('new', 0, 0))).toEqual({ old: 5, new: 0 });
    expect(held(1, old(4), generation('new', 0, 0))).toEqual({ old: 1, new: 0 });
    expect(held(3, old(4), generation('new', 0, 0))).toEqual({ old: 3, new: 0 });
    const moving = generation('old', 2, 2, { served: true, spare: true });
    expect(held(1, moving, generation('new', 0, 0))).toEqual({ old: 2, new: 0 });
    // From none: the last version that served.
    expect(held(3, old(0, 0), generation('new', 0, 0))).toEqual({ old: 3, new: 0 });
    // Half of a change that it overtook goes first, whatever that one was allowed to have beside it.
    const half = (instances: number) => generation('half', instances, 0, { created: 0 });
    const settled = (desired: number, halves: number) =>
      plan({
        canary: { instances: 0, others: desired },
        desired,
        generations: [old(3), half(halves), generation('new', 0, 0)],
        settled: { old: 3 },
      });
    expect(settled(3, 3).instances).toEqual({ old: 3, half: 0, new: 0 });
    expect(settled(5, 4).instances).toEqual({ old: 3, half: 2, new: 0 });
    // Nothing is stopped before the gateway has left it.
    if (routed) expect(held(3, old(3), half(3), generation('new', 0, 0))).toEqual({ old: 3, half: 3, new: 0 });
    // Of a worker two versions run side by side no longer than they must.
    expect(held(6, old(1), generation('new', 2, 1, { served: true }))).toEqual({ old: routed ? 4 : 1, new: 2 });
  });

  test('without routes runs beside the version before, too', () => {
    const next = plan({ routed: false, desired: 2, canary: canaryStep(2), generations: [old(2), generation('new', 1, 1)] });
    expect(next).toMatchObject({ instances: { old: 2, new: 1 }, weights: {} });
  });

  test('at 100 % keeps the version before, without instances, until it is decided', () => {
    const generations = [old(0), generation('new', 2, 2, { served: true })];
    const state = { desired: 2, canary: canaryStep(2, 100), generations };
    expect(plan({ ...state, decided: false })).toMatchObject({ instances: { old: 0, new: 2 }, weights: { new: 1 }, remove: [] });
    expect(plan({ desired: 2, generations, decided: true }).remove).toEqual(['old']);
  });

  test.each([1, 2, 3, 5, 10])('of %i instances goes through all steps, never serves with fewer and never exceeds the surge', (desired) => {
    let generations = [old(desired), generation('new', 0, 0)];
    for (const percent of [1, 20, 45, 100]) {
      for (let round = 0; round < 60; round += 1) {
        const state = { desired, canary: canaryStep(desired, percent), generations, decided: false };
        const { weights } = plan(state);
        const next = plan({ ...state, settled: weights });
        generations = generations.map((item) => {
          const instances = next.instances[item.hash] ?? 0;
          const ready = Math.min(instances, item.ready + 1);
          return { ...item, instances, present: instances, ready, proven: item.ready > 0 };
        });
        expect(generations.reduce((sum, { instances }) => sum + instances, 0)).toBeLessThanOrEqual(desired + 2);
        expect(generations.reduce((sum, { ready }) => sum + ready, 0)).toBeGreaterThanOrEqual(desired);
      }
      const { instances, others } = canaryStep(desired, percent);
      expect(generations).toMatchObject([{ instances: others }, { instances }]);
    }
  });
});
