// When the only instance of a process gets a second one, when instances may be evicted although too few serve, and how long they hold up a drain.

import { describe, expect, test } from 'vitest';
import type { Instance, Problem } from '../../../src/controller/instances/instances.ts';
import { evacuationOf, type Alone } from '../../../src/controller/rollout/evacuation.ts';
import { isMoving } from '../../../src/controller/rollout/spare.ts';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import type { AppWorkload } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';
import { heldDrain, isOverdue, type HeldDrain } from '../../../src/controller/rollout/held-drain.ts';

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
  all: more.all ?? more.instances ?? [instance()],
  wanted: more.wanted ?? more.desired ?? 1,
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
    [
      'keeps the one that serves when a change begins or is undone meanwhile',
      { hasSpare: true, settled: false, instances: [instance({ ready: false }), spare()] },
      moves,
    ],
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

test('a process moves while none of its wanted instances serves on a node that keeps it', () => {
  const marked = (instances: number) =>
    asStored({ metadata: { name: 'p-a', namespace: 's', labels: { [labels.generation]: 'a' }, annotations: { [annotations.spare]: 'true' } }, spec: { instances } } as unknown as AppWorkload); // prettier-ignore
  const moves = (all: Instance[], instances = 2) => isMoving(marked(instances), all, 1);
  expect(moves([spare()])).toBe(true);
  expect(moves([leaving, spare()])).toBe(true);
  expect(moves([instance({ ready: false }), spare()])).toBe(true);
  expect(moves([instance(), spare()])).toBe(false);
  expect(moves([leaving], 1)).toBe(false);
});

test('a process without routes, or with another number of instances, has no second one', () => {
  expect(evacuationOf(alone({ routed: false, instances: [leaving] }))).toEqual({ spare: 0, guarded: false });
  expect(evacuationOf(alone({ desired: 0, instances: [] }))).toEqual({ spare: 0, guarded: false });
  expect(evacuationOf(alone({ desired: 2, instances: [leaving, spare({ leaving: true })] }))).toEqual({ spare: 0, guarded: true });
});

const crashed = (index: number, final = true): Instance =>
  instance({ index, pod: `pod-${String(index)}`, ready: false, problem: problem(final) });
const two = (...all: Instance[]): Alone => alone({ desired: 2, instances: all });

describe('one of several instances on a node that is emptied, while too few serve to evict it,', () => {
  test.each<[string, Alone, boolean]>([
    ['may be evicted when the other one never becomes ready', two(leaving, crashed(1)), false],
    ['stays while the other one may still become ready', two(leaving, crashed(1, false)), true],
    ['stays while the other one ends, since it is made again', two(leaving, instance({ index: 1, ready: false, ending: true })), true],
    ['stays while the other one is not made yet', two(leaving), true],
    ['may be evicted when Kubernetes refuses to make the other one', { ...two(leaving), refused: true }, false],
    ['stays when nothing is missing, since the budget allows it', two(leaving, spare()), true],
    ['stays when its node takes pods', two(instance(), crashed(1)), true],
    ['stays when the other one is not ready on that node', two(instance(), { ...crashed(1), leaving: true }), true],
    ['stays when a third of three may still come', alone({ desired: 3, instances: [leaving, crashed(1), crashed(2, false)] }), true],
    ['may be evicted when half of three can never be kept', alone({ desired: 3, instances: [leaving, spare(), crashed(2)] }), false],
    ['stays when enough serve without it', alone({ desired: 4, instances: [leaving, spare(), instance({ index: 2 }), crashed(3)] }), true],
    ['may be evicted when the new version of a change fails', alone({ settled: false, wanted: 2, all: [leaving, crashed(0)] }), false],
  ])('%s', (_, given, guarded) => {
    expect(evacuationOf(given)).toEqual({ spare: 0, guarded });
  });
});

describe('a drain that is held up', () => {
  const minute = 60_000;
  const [held, free] = [true, false];
  /** What the process may do at the end of looks at these minutes. */
  const after = (looks: readonly (readonly [at: number, isHeldUp: boolean])[]): boolean => {
    let known: HeldDrain | undefined;
    for (const [at, isHeldUp] of looks) known = heldDrain(known, isHeldUp, at * minute);
    return isOverdue(known, (looks.at(-1)?.[0] ?? 0) * minute);
  };
  test.each<[string, (readonly [number, boolean])[], boolean]>([
    ['is let through after ten minutes, whatever the app does', [[0, held], [10, held]], true],
    ['is not let through before', [[0, held], [9.9, held]], false],
    ['begins anew after it could go on for a minute', [[0, held], [5, free], [6, free], [6.1, held], [10, held]], false],
    ['does not begin anew because an instance was ready for a moment', [[0, held], [5, free], [5.5, held], [10, held]], true],
    ['is none when instances can be evicted', [[0, free], [10, free]], false],
  ])('%s', (_, looks, expected) => {
    expect(after(looks)).toBe(expected);
  }); // prettier-ignore
});
