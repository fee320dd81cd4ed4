import { describe, expect, test } from 'vitest';
import {
  canaryStep,
  parseWeights,
  planRollout,
  printWeights,
  type Generation,
  type RolloutPlan,
  type RolloutState,
} from '../../../src/controller/rollout/planner.ts';

const generation = (hash: string, instances: number, ready: number, more: Partial<Generation> = {}): Generation => ({
  hash,
  instances,
  ready,
  present: Math.max(instances, ready),
  ending: 0,
  proven: ready > 0,
  served: false,
  created: hash === 'new' ? 2 : 1,
  ...more,
});
const plan = (state: Partial<RolloutState> & Pick<RolloutState, 'generations'>): RolloutPlan =>
  planRollout({
    desired: 1,
    maxInFlight: 1,
    routed: true,
    target: 'new',
    failed: false,
    carried: { old: 1 },
    settled: undefined,
    ...state,
  });

describe('the first version of a process', () => {
  test('starts all instances at once', () => {
    expect(plan({ desired: 3, generations: [generation('new', 0, 0)] })).toMatchObject({
      instances: { new: 3 },
      weights: { new: 1 },
      complete: false,
    });
  });

  test('is complete when all instances are ready', () => {
    expect(plan({ desired: 3, generations: [generation('new', 3, 2)] }).complete).toBe(false);
    expect(plan({ desired: 3, generations: [generation('new', 3, 3)] }).complete).toBe(true);
  });

  test('that crashes stays as it is until something changes', () => {
    expect(plan({ failed: true, generations: [generation('new', 1, 0)] })).toMatchObject({
      instances: { new: 1 },
      goal: 'new',
      remove: [],
    });
  });

  test('of a stopped app has no instances and is kept for the next start', () => {
    expect(plan({ desired: 0, generations: [generation('new', 2, 2)] })).toMatchObject({ instances: { new: 0 }, remove: [] });
  });
});

describe('a start after a failed update and a stop', () => {
  const served = generation('old', 0, 0, { served: true });

  test('tries the new version, and keeps the last version that served until the new one has served', () => {
    for (const routed of [true, false]) {
      const tried = plan({ routed, generations: [served, generation('new', 0, 0)] });
      expect(tried).toMatchObject({ instances: { new: 1, old: 0 }, goal: 'new', remove: [] });
    }
    const proven = generation('new', 1, 1, { served: true });
    expect(plan({ generations: [served, proven] }).remove).toEqual(['old']);
  });

  test('returns to the last version that served if the new version fails', () => {
    const failed = plan({ failed: true, generations: [served, generation('new', 1, 0)] });
    expect(failed).toMatchObject({ instances: { new: 0, old: 1 }, weights: { old: 1 }, goal: 'old', remove: [] });
    // Without routes two versions never run side by side: the failed one ends first.
    const alone = { routed: false, failed: true };
    expect(plan({ ...alone, generations: [served, generation('new', 1, 0)] }).instances).toEqual({ new: 0, old: 0 });
    expect(plan({ ...alone, generations: [served, generation('new', 0, 0)] }).instances).toEqual({ new: 0, old: 1 });
  });

  test('keeps only one version, the newest that served, and never one that did not serve', () => {
    const older = generation('older', 0, 0, { served: true, created: 0 });
    const broken = generation('broken', 0, 0, { created: 1 });
    expect(plan({ generations: [older, served, broken, generation('new', 0, 0)] }).remove.toSorted()).toEqual(['broken', 'older']);
    expect(plan({ failed: true, generations: [broken, generation('new', 1, 0)] })).toMatchObject({ goal: 'new', remove: ['broken'] });
  });
});

describe('a rolling change behind routes', () => {
  test('starts the new version beside the old one, which keeps all requests', () => {
    const next = plan({ generations: [generation('old', 1, 1), generation('new', 0, 0)] });
    expect(next).toMatchObject({ instances: { old: 1, new: 1 }, weights: { old: 1 } });
  });

  test('gives no weight to a ready instance that no request has reached yet', () => {
    const next = plan({ generations: [generation('old', 1, 1), generation('new', 1, 1, { proven: false })] });
    expect(next.weights).toEqual({ old: 1 });
  });

  test('moves requests first, and the old instance stays until that has settled', () => {
    const generations = [generation('old', 1, 1), generation('new', 1, 1)];
    expect(plan({ generations })).toMatchObject({ instances: { old: 1, new: 1 }, weights: { new: 1 } });
    expect(plan({ generations, settled: { old: 1 } }).instances['old']).toBe(1);
    expect(plan({ generations, settled: { new: 1 } }).instances['old']).toBe(0);
  });

  test('removes an old version only when its last instance is gone', () => {
    const gone = (present: number) => plan({ generations: [generation('old', 0, 0, { present }), generation('new', 1, 1)] });
    expect(gone(1).remove).toEqual([]);
    expect(gone(0).remove).toEqual(['old']);
  });

  test('stops the pods of a crash-looping old version first, without waiting for the new one', () => {
    expect(plan({ generations: [generation('old', 1, 0), generation('new', 0, 0)] }).instances).toEqual({ old: 0, new: 1 });
  });

  test('stops old instances when it is scaled down only after the rest has settled', () => {
    const generations = [generation('old', 3, 3), generation('new', 1, 0)];
    expect(plan({ desired: 1, generations }).instances).toEqual({ old: 3, new: 1 });
    expect(plan({ desired: 1, generations, settled: { old: 1 } }).instances).toEqual({ old: 1, new: 1 });
  });

  test('replaces an interrupted change by a third version', () => {
    const generations = [generation('old', 1, 1), generation('half', 1, 0, { created: 1.5 }), generation('new', 0, 0)];
    const next = plan({ generations });
    expect(next.instances).toMatchObject({ old: 1, half: 0 });
    expect(next.instances['new']).toBe(1);
    const after = plan({ generations: [generation('old', 1, 1), generation('half', 0, 0, { created: 1.5 }), generation('new', 0, 0)] });
    expect(after).toMatchObject({ instances: { new: 1 }, remove: ['half'] });
  });

  test('gives no traffic to a version that was ready but never reached by a request when a third one comes', () => {
    const half = generation('half', 1, 1, { created: 1.5, proven: false });
    const next = plan({ generations: [generation('old', 1, 1), half, generation('new', 0, 0)], settled: { old: 1 } });
    expect(next).toMatchObject({ instances: { old: 1, half: 0, new: 1 }, weights: { old: 1 } });
    const some = plan({ desired: 3, generations: [generation('old', 3, 2), half, generation('new', 0, 0)] });
    expect(some.weights).toEqual({ old: 2 });
    const failed = plan({ failed: true, generations: [generation('old', 1, 1), half, generation('new', 1, 1)] });
    expect(failed).toMatchObject({ goal: 'old', weights: { old: 1 } });
  });

  test('uses ready instances of any version if none serves, until the next version is ready', () => {
    const half = generation('half', 1, 1, { created: 1.5, proven: false });
    expect(plan({ generations: [generation('old', 1, 0), half, generation('new', 0, 0)] }).weights).toEqual({ half: 1 });
  });

  test('does not count terminating instances, nor one instance that will be stopped, but counts a second one', () => {
    const after = (leaving: number, ending: number) =>
      plan({
        generations: [
          generation('before', leaving, leaving, { present: leaving + ending, ending, created: 0 }),
          generation('old', 1, 1),
          generation('new', 0, 0),
        ],
      }).instances['new'];
    expect([after(0, 3), after(1, 3), after(2, 0)]).toEqual([1, 1, 0]);
  });

  test('does not wait in a step for the requests of the previous step to settle', () => {
    const generations = [generation('old', 3, 3), generation('new', 1, 1)];
    expect(plan({ desired: 3, generations })).toMatchObject({ instances: { old: 3, new: 2 }, weights: { old: 2, new: 1 } });
    const twice = [generation('old', 3, 3), generation('new', 2, 2)];
    expect(plan({ desired: 3, generations: twice })).toMatchObject({ instances: { old: 3, new: 2 }, weights: { old: 1, new: 2 } });
  });

  test('only scales up a version that still serves when it returns to it', () => {
    const generations = [generation('new', 1, 1), generation('half', 1, 0, { created: 3 })];
    expect(plan({ generations }).instances).toEqual({ new: 1, half: 0 });
  });
});

describe('a failed version', () => {
  test('is scaled to 0 and kept, and the old version still serves', () => {
    const generations = [generation('old', 1, 1), generation('new', 1, 0)];
    expect(plan({ failed: true, generations })).toMatchObject({
      instances: { old: 1, new: 0 },
      weights: { old: 1 },
      goal: 'old',
      remove: [],
    });
    const later = plan({ failed: true, generations: [generation('old', 1, 1), generation('new', 0, 0)] });
    expect(later).toMatchObject({ remove: [], goal: 'old', complete: true });
  });

  test('that had part of the requests gives it back before it ends', () => {
    const generations = [generation('old', 2, 2), generation('new', 2, 1)];
    const next = plan({ desired: 3, failed: true, generations });
    expect(next.goal).toBe('old');
    expect(next.weights).toEqual({ old: 2, new: 1 });
    expect(next.instances['new']).toBe(2);
    const after = plan({ desired: 3, failed: true, generations: [generation('old', 3, 3), generation('new', 1, 1)], settled: { old: 3 } });
    expect(after).toMatchObject({ instances: { old: 3, new: 0 }, weights: { old: 3 } });
  });

  test('does not return if the old one is unhealthy for a moment', () => {
    expect(plan({ failed: true, generations: [generation('old', 1, 0), generation('new', 0, 0)] }).instances).toEqual({ old: 1, new: 0 });
  });

  test('is tried again when it no longer counts as failed', () => {
    expect(plan({ generations: [generation('old', 1, 1), generation('new', 0, 0)] }).instances['new']).toBe(1);
  });
});

describe('a process without routes', () => {
  const worker = (generations: Generation[], desired = 2, failed = false) => plan({ routed: false, desired, failed, generations });

  test('starts with all instances if nothing else runs', () => {
    expect(worker([generation('new', 0, 0)]).instances).toEqual({ new: 2 });
  });

  test('tries a new version with one instance while the old one works', () => {
    expect(worker([generation('old', 2, 2), generation('new', 0, 0)]).instances).toEqual({ old: 2, new: 1 });
    expect(worker([generation('old', 2, 2), generation('new', 1, 1, { proven: false })]).instances).toEqual({ old: 2, new: 1 });
  });

  test('ends the old version once the new one is proven, and grows only when the old one is gone', () => {
    expect(worker([generation('old', 2, 2), generation('new', 1, 1)]).instances).toEqual({ old: 0, new: 1 });
    expect(worker([generation('old', 0, 0, { present: 1 }), generation('new', 1, 1)]).instances).toEqual({ old: 0, new: 1 });
    expect(worker([generation('old', 0, 0), generation('new', 1, 1)]).instances).toEqual({ old: 0, new: 2 });
  });

  test('keeps the old version if the new one fails', () => {
    expect(worker([generation('old', 2, 2), generation('new', 1, 0)], 2, true)).toMatchObject({
      instances: { old: 2, new: 0 },
      goal: 'old',
    });
  });
});

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

describe('--strategy recreate', () => {
  test('starts the new version when no instance of the others is left', () => {
    const state = { strategy: 'recreate' as const, desired: 2 };
    const stops = plan({ ...state, generations: [generation('old', 2, 2), generation('new', 0, 0)] });
    expect(stops).toMatchObject({ instances: { old: 0, new: 0 }, weights: { new: 1 } });
    const ending = plan({ ...state, generations: [generation('old', 0, 0, { present: 1, ending: 1 }), generation('new', 0, 0)] });
    expect(ending.instances).toEqual({ old: 0, new: 0 });
    expect(plan({ ...state, generations: [generation('old', 0, 0), generation('new', 0, 0)] }).instances).toEqual({ old: 0, new: 2 });
  });

  test('returns to the version that served when the new one fails, and stops that one first', () => {
    const before = generation('old', 0, 0, { served: true });
    const state = { strategy: 'recreate' as const, failed: true };
    expect(plan({ ...state, generations: [before, generation('new', 1, 0)] }).instances).toEqual({ old: 0, new: 0 });
    expect(plan({ ...state, generations: [before, generation('new', 0, 0)] })).toMatchObject({
      instances: { old: 1, new: 0 },
      goal: 'old',
    });
  });
});

/** Acts as controller, gateway and kubelet until nothing changes any more; `watch` sees every state. */
function play(
  start: Generation[],
  options: { desired: number; maxInFlight: number },
  watch: (generations: Generation[], weights: Record<string, number>) => void,
): Generation[] {
  let generations = start;
  let settled: Record<string, number> | undefined;
  for (let round = 0; round < 200; round += 1) {
    const next = plan({ ...options, generations, settled });
    // The gateway applies weights at once; the instances follow one event at a time.
    settled = next.weights;
    generations = generations
      .filter(({ hash }) => !next.remove.includes(hash))
      .map((item) => {
        const instances = next.instances[item.hash] ?? 0;
        const staying = item.present - item.ending;
        // In each round one terminating instance is gone, and surplus instances start to terminate.
        const ending = Math.max(0, item.ending - 1) + Math.max(0, staying - instances);
        const present = ending + Math.min(instances, staying + 1);
        return {
          ...item,
          instances,
          present,
          ending,
          ready: Math.min(instances, item.ready < item.present ? item.ready + 1 : item.ready),
          proven: item.present > 0,
        };
      });
    watch(generations, next.weights);
    if (next.complete && next.remove.length === 0) return generations;
  }
  throw new Error(`The change does not end: ${JSON.stringify(generations)}`);
}

describe('a whole change', () => {
  test.each([
    [1, 1],
    [2, 1],
    [3, 1],
    [3, 2],
    [5, 3],
    [4, 9],
  ])('of %i instances in steps of %i ends, never serves with fewer and never exceeds the surge', (desired, maxInFlight) => {
    const end = play([generation('old', desired, desired), generation('new', 0, 0)], { desired, maxInFlight }, (generations, weights) => {
      const total = generations.reduce((count, item) => count + item.present - item.ending, 0);
      const ready = generations.reduce((count, item) => count + item.ready, 0);
      expect(total).toBeLessThanOrEqual(desired + 2 * maxInFlight);
      expect(ready).toBeGreaterThanOrEqual(desired);
      for (const [hash, weight] of Object.entries(weights)) {
        if (weight > 0) expect(generations.find((item) => item.hash === hash)?.ready).toBeGreaterThan(0);
      }
    });
    expect(end).toMatchObject([{ hash: 'new', instances: desired, ready: desired }]);
  });
});

test('weights are the same after they were printed and read', () => {
  expect(printWeights({ b: 2, a: 1 })).toBe('a=1,b=2');
  expect(parseWeights('a=1,b=2')).toEqual({ a: 1, b: 2 });
  expect(parseWeights(undefined)).toEqual({});
});
