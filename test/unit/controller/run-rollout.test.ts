import { describe, expect, test } from 'vitest';
import { canaryStep, parseWeights, printWeights, type Generation } from '../../../src/controller/rollout/planner.ts';
import { generation, plan } from './rollout-scene.ts';

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

  test('that served before is not left for one that was canceled, while some of its instances serve', () => {
    const before = (ready: number): Generation => generation('new', 4, ready, { served: true });
    const canceled = generation('old', 1, 1, { created: 3 });
    const lacks = { desired: 4, failed: true, canceled: true, carried: { new: 3, old: 1 } };
    const back = plan({ ...lacks, generations: [canceled, before(3)] });
    expect(back).toMatchObject({ goal: 'new', weights: { new: 3 }, instances: { new: 4, old: 1 } });
    expect(plan({ ...lacks, generations: [canceled, before(3)], settled: { new: 3 } }).instances).toEqual({ new: 4, old: 0 });
    // Also when all wanted instances of the canceled one were ready, and only another process of the app was not.
    const whole = generation('old', 4, 4, { created: 3, served: true });
    expect(plan({ ...lacks, decided: false, generations: [whole, before(1)] })).toMatchObject({ goal: 'new', weights: { new: 1 } });
    // It goes no faster than the version before comes.
    const few = generation('new', 2, 1, { served: true });
    const many = plan({ ...lacks, generations: [generation('old', 3, 3, { created: 3 }), few], settled: { old: 2, new: 1 } });
    expect(many).toMatchObject({ goal: 'new', instances: { old: 2 } });
    // A canary that has reached 100 %, and that nobody has canceled, is taken back.
    const before100 = generation('old', 0, 0, { served: true });
    const taken = plan({ ...lacks, canceled: false, decided: false, canary: canaryStep(4, 100), generations: [before100, before(3)] });
    expect(taken).toMatchObject({ goal: 'old' });
    // Better one that answers than none.
    expect(plan({ ...lacks, generations: [canceled, before(0)] })).toMatchObject({ goal: 'old', weights: { old: 1 } });
    const worker = plan({ ...lacks, routed: false, generations: [canceled, generation('new', 4, 3, { served: true, proven: false })] });
    expect(worker).toMatchObject({ goal: 'new', instances: { new: 4, old: 0 } });
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

  test('ends ready instances of a failed version only once the version before has a ready one', () => {
    const failed = generation('new', 2, 2);
    const before = (instances: number, ready: number) => generation('old', instances, ready, { served: true });
    expect(worker([before(0, 0), failed], 2, true)).toMatchObject({ instances: { old: 1, new: 2 }, goal: 'old' });
    expect(worker([before(1, 0), failed], 2, true).instances).toEqual({ old: 1, new: 2 });
    expect(worker([before(1, 1), failed], 2, true).instances).toEqual({ old: 1, new: 0 });
    expect(worker([before(1, 1), generation('new', 0, 0)], 2, true).instances).toEqual({ old: 2, new: 0 });
  });

  describe('with a change that was interrupted before it was proven', () => {
    const old = (instances: number) => generation('old', instances, instances, { served: true, created: 0 });
    const half = (instances: number, ready = instances) => generation('half', instances, ready, { proven: false });

    test('has one trial instance only, and keeps the version that served', () => {
      const next = worker([old(1), half(1), generation('new', 0, 0)], 1);
      expect(next.instances).toEqual({ old: 1, half: 0, new: 1 });
    });

    test('keeps what runs if no version has served', () => {
      expect(worker([half(1), generation('new', 0, 0)], 1).instances).toEqual({ half: 1, new: 1 });
      expect(worker([old(0), half(1), generation('new', 0, 0)], 1).instances).toEqual({ old: 0, half: 1, new: 1 });
    });

    test('keeps its ready instance while none of the version that served is ready', () => {
      const crashing = generation('old', 2, 0, { served: true, created: 0 });
      expect(worker([crashing, half(1), generation('new', 0, 0)], 2).instances).toEqual({ old: 2, half: 1, new: 1 });
    });

    test('keeps serving with what had replaced the version before it', () => {
      const growing = generation('half', 2, 1, { proven: true });
      expect(worker([old(0), growing, generation('new', 1, 0)], 2, true)).toMatchObject({
        goal: 'half',
        instances: { old: 0, half: 2, new: 0 },
      });
    });

    test('returns to the version that served, with or without instances', () => {
      expect(worker([old(1), half(1), generation('new', 1, 0)], 1, true)).toMatchObject({ goal: 'old', instances: { old: 1, half: 0 } });
      expect(worker([old(0), half(1, 0), generation('new', 0, 0)], 1, true)).toMatchObject({ goal: 'old', instances: { half: 0 } });
      expect(worker([half(1), generation('new', 1, 0)], 1, true)).toMatchObject({ goal: 'half', instances: { half: 1, new: 0 } });
    });
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

test('of two instances, of which one moves to another node, none is stopped before the new version serves', () => {
  const moving = generation('old', 2, 1, { served: true, spare: true, moving: true });
  expect(plan({ settled: { old: 1 }, generations: [moving, generation('new', 0, 0)] })).toMatchObject({
    instances: { old: 2, new: 1 },
    weights: { old: 1 },
  });
  expect(plan({ settled: { new: 1 }, generations: [moving, generation('new', 1, 1)] }).instances).toEqual({ old: 0, new: 1 });
  // The first one runs elsewhere.
  const moved = generation('old', 2, 2, { served: true, spare: true, moving: false });
  expect(plan({ settled: { old: 1 }, generations: [moved, generation('new', 0, 0)] }).instances).toEqual({ old: 1, new: 1 });
});
