// Moves the only instance of a process off a node that is being emptied, without a gap: a second one starts elsewhere before the first may be evicted.
// Says too when instances may be evicted although too few of the others serve.

import type { Stored } from '../../lib/api/object.ts';
import type { AppWorkload, InstanceStatus } from '../../lib/api/types.generated.ts';
import { generationOf, leastServing } from '../../templates/stateful-set.ts';
import type { Instance } from '../instances/instances.ts';
import type { View } from './assessment.ts';
import type { RolloutPlan } from './planner.ts';
import { hasSpare } from './spare.ts';

const lookAgainMs = 2_000;

export interface Evacuation {
  /** Instances beyond those that the user wants. */
  spare: 0 | 1;
  /** Evictions must leave instances of the process, so a PodDisruptionBudget is kept. */
  guarded: boolean;
}

export interface Alone {
  /** Instances that the user wants. */
  desired: number;
  /** Requests reach the process. Without them a gap is a restart, and two instances at once may be one too many. */
  routed: boolean;
  /** No change is under way: one generation has all instances. */
  settled: boolean;
  /** It has a spare instance already. */
  hasSpare: boolean;
  /** Instances of the generation that serves. */
  instances: readonly Instance[];
  /** Instances of all generations. */
  all: readonly Instance[];
  /** How many instances all generations shall have. */
  wanted: number;
  /** Kubernetes refuses to make an instance that is missing: a quota, a policy. */
  refused: boolean;
}

/** An instance that serves would have to be evicted, and the budget does not allow it: too few of the others serve. */
export function isHeldUp(instances: readonly Instance[], wanted: number): boolean {
  const serving = instances.filter(({ ready, ending }) => ready && !ending);
  return serving.some(({ leaving }) => leaving === true) && serving.length <= leastServing(wanted);
}

/** None of the instances that do not serve will: they fail for good, or cannot be made. */
function areOthersHopeless({ all, wanted, refused }: Pick<Alone, 'all' | 'wanted' | 'refused'>): boolean {
  const others = all.filter(({ ready, ending }) => !ready || ending);
  const isAbsent = all.length < wanted;
  if (others.length === 0 && !isAbsent) return false;
  return others.every(({ problem, ending }) => !ending && problem?.final === true) && (!isAbsent || refused);
}

/**
 * Kubernetes has no word for "start the new one first": a budget of one instance allows no eviction at all. So the budget stays until a second
 * instance is ready, which makes one eviction possible. If no second one can run, the budget goes: an operator must be able to empty a node. The same
 * holds for more instances of which so many fail that none may be evicted.
 */
export function evacuationOf(state: Alone): Evacuation {
  const { desired, routed, settled, hasSpare, instances, refused } = state;
  const isStuck = isHeldUp(state.all, state.wanted) && areOthersHopeless(state);
  if (desired !== 1 || !routed) return { spare: 0, guarded: desired > 1 && !isStuck };
  const isLeaving = instances.some(({ leaving, ending }) => leaving === true && !ending);
  const isMoved = instances.some(({ index, ready }) => index < desired && ready);
  // A change does not end an instance that serves while the other one moves.
  if (!(settled && isLeaving) && !(hasSpare && !isMoved)) return { spare: 0, guarded: !isStuck };
  const spares = instances.filter(({ index, ending }) => index >= desired && !ending);
  const isHopeless = spares.some(({ problem }) => problem?.final === true) || (hasSpare && spares.length === 0 && refused);
  return { spare: 1, guarded: !isHopeless };
}

/** As Kubernetes counts for a budget: what each generation shall have of which there is an instance. */
function wantedOf(workloads: readonly Stored<AppWorkload>[], instances: readonly Instance[]): number {
  const present = new Set(instances.map(({ generation }) => generation));
  return workloads.filter((workload) => present.has(generationOf(workload))).reduce((sum, { spec }) => sum + spec.instances, 0);
}

/** @param refused Kubernetes refuses to make an instance that is missing */
export function evacuationIn(view: View, plan: RolloutPlan, refused: boolean): Evacuation {
  const { workloads, instances, desired, routed, canary } = view;
  const goal = workloads.find((workload) => generationOf(workload) === plan.goal);
  const wanted = wantedOf(workloads, instances);
  const evacuation = evacuationOf({
    desired,
    routed,
    settled:
      canary === undefined && Object.entries(plan.instances).every(([hash, number]) => number === (hash === plan.goal ? desired : 0)),
    hasSpare: goal !== undefined && hasSpare(goal, desired),
    instances: instances.filter(({ generation }) => generation === plan.goal),
    all: instances,
    wanted,
    refused,
  });
  // That other instances cannot start is a matter of time, which no event reports.
  if (evacuation.guarded && (evacuation.spare > 0 || isHeldUp(instances, wanted))) view.lookAgain.push(lookAgainMs);
  // The plan of a process that is left as it is has the second one already.
  return (plan.instances[plan.goal] ?? 0) > desired ? { ...evacuation, spare: 0 } : evacuation;
}

/** While an instance moves, that one of the two is shown which serves: there are as many as the user wants. */
export function withoutSpare(present: Record<string, InstanceStatus>, { workloads, desired }: View): Record<string, InstanceStatus> {
  if (!workloads.some((workload) => hasSpare(workload, desired))) return present;
  const first = Object.entries(present).toSorted(([, a], [, b]) => Number(b.ready) - Number(a.ready));
  return Object.fromEntries(first.slice(0, desired));
}
