// Versions of a process, as the planner of rollouts sees them.

import { planRollout, type Generation, type RolloutPlan, type RolloutState } from '../../../src/controller/rollout/planner.ts';

/** A version that is `old`, or `new` and wanted. */
export const generation = (hash: string, instances: number, ready: number, more: Partial<Generation> = {}): Generation => ({
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

/** The next step of one instance behind a route, unless the state says otherwise. */
export const plan = (state: Partial<RolloutState> & Pick<RolloutState, 'generations'>): RolloutPlan =>
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
