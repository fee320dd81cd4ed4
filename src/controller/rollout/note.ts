// Notes of a successful rollout.

import { findCondition } from '../../lib/api/conditions.ts';
import { conditionTypes, reasons } from '../../lib/api/group.ts';
import type { DeploymentStatus } from '../../lib/api/types.generated.ts';
import type { View } from './assessment.ts';
import type { Proof } from './traffic-probe.ts';

export interface Note {
  reason: string;
  message: string;
}

const routeNotVerified = 'RouteNotVerified';

/** The status that already has this note for the same change. */
function notedBefore({ process, deployId }: View): DeploymentStatus | undefined {
  const before = process.status?.rollout;
  return before?.id === deployId && before.phase === 'Serving' && before.reason === routeNotVerified ? before : undefined;
}

const otherWays = {
  instance: 'The gateway could not be asked from inside the cluster; an instance answered.',
  unnamed: 'The answers of the gateway do not say which version sent them; an instance answered.',
  unanswered: 'The answers of the gateway do not say which version sent them, and no instance can be asked from where the controller runs.',
  nothing: 'Neither the gateway nor an instance can be asked from where the controller runs.',
} as const;

/** The note of a success; undefined when there is none. */
export function noteOf(view: View, proof: Proof): Note | undefined {
  if (findCondition(view.target, conditionTypes.whole)?.status === 'False') {
    const message =
      "The environment of the running version was deleted, and the app's variables or services are missing too: an instance that ends " +
      "cannot start again. Mend the app's variables and services, then 'kf restart' it.";
    return { reason: reasons.environmentLost, message };
  }
  if (proof.state !== 'proven' || proof.through === 'gateway' || !view.routed) return undefined;
  if (proof.through === 'earlier') {
    const before = notedBefore(view);
    return before === undefined ? undefined : { reason: routeNotVerified, message: before.message ?? '' };
  }
  return { reason: routeNotVerified, message: otherWays[proof.through] };
}
