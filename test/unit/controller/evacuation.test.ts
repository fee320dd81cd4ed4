// When the only instance of a process gets a second one, and when it may be evicted without.

import { describe, expect, test } from 'vitest';
import type { Instance, Problem } from '../../../src/controller/instances/instances.ts';
import { evacuationOf, type Alone } from '../../../src/controller/rollout/evacuation.ts';

const instance = (more: Partial<Instance> = {}): Instance => ({
  index: 0, generation: 'a', pod: 'pod-0', uid: 'u', state: 'RUNNING', ready: true, ending: false, created: 0, restarts: 0, ...more,
}); // prettier-ignore
const problem = (final: boolean): Problem => ({ reason: 'Unschedulable', cause: 'no-room', message: 'no node', final });
const leaving = instance({ leaving: true });
const spare = (more: Partial<Instance> = {}): Instance => instance({ index: 1, pod: 'pod-1', ...more });
const alone = (more: Partial<Alone>): Alone => ({
  desired: 1,
  routed: true,
  settled: true,
  hasSpare: false,
  instances: [instance()],
  refused: false,
  ...more,
});

const stays = { spare: 0, guarded: true };
const moves = { spare: 1, guarded: true };

describe('the only instance behind a route', () => {
  test.each<[string, Partial<Alone>, object]>([
    ['stays on a node that takes pods', {}, stays],
    ['gets a second one when its node is emptied', { instances: [leaving] }, moves],
    ['waits during a change of the app', { instances: [leaving], settled: false }, stays],
    ['keeps the second one until it is ready elsewhere', { hasSpare: true, instances: [instance({ ready: false }), spare()] }, moves],
    ['keeps the second one while it is gone', { hasSpare: true, instances: [spare()] }, moves],
    ['gives the second one back when it runs elsewhere', { hasSpare: true, instances: [instance(), spare()] }, stays],
    ['has no second one for an instance that is not ready on a node that takes pods', { instances: [instance({ ready: false })] }, stays],
  ])('%s', (_, given, expected) => {
    expect(evacuationOf(alone(given))).toEqual(expected);
  });

  test.each<[string, Partial<Alone>, boolean]>([
    ['no node has room for a second one', { instances: [leaving, spare({ ready: false, problem: problem(true) })] }, false],
    ['that may still change', { instances: [leaving, spare({ ready: false, problem: problem(false) })] }, true],
    ['Kubernetes refuses to make a second one', { instances: [leaving], refused: true }, false],
    ['a second one was not asked for yet', { instances: [leaving], refused: true, hasSpare: false }, true],
  ])('may be evicted or not when %s', (_, given, guarded) => {
    expect(evacuationOf(alone({ hasSpare: true, ...given }))).toEqual({ spare: 1, guarded });
  });
});

test('a process without routes, or with another number of instances, has no second one', () => {
  expect(evacuationOf(alone({ routed: false, instances: [leaving] }))).toEqual({ spare: 0, guarded: false });
  expect(evacuationOf(alone({ desired: 0, instances: [] }))).toEqual({ spare: 0, guarded: false });
  expect(evacuationOf(alone({ desired: 2, instances: [leaving, spare({ leaving: true })] }))).toEqual({ spare: 0, guarded: true });
});
