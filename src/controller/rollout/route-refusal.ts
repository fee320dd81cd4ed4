// Why a route cannot lead to a generation: the cluster refuses what it needs, for example its Services.

import { causeOfRefusal, type CauseCode } from '../../lib/api/causes.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { conditionTypes, type DeploymentFailure } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFRoute } from '../../lib/api/types.generated.ts';

export interface RouteRefusal {
  /** Since when the route has not been ready. */
  since: number;
  reason: DeploymentFailure;
  cause: CauseCode;
  message: string;
}

/** Undefined for a route that is ready, or of which nothing is known yet. */
export function refusalOf(route: Stored<CFRoute>): RouteRefusal | undefined {
  const { status, spec } = route;
  const ready = findCondition(route, conditionTypes.ready);
  if (ready?.status !== 'False') return undefined;
  const isQuota = causeOfRefusal(ready.message) === 'quota';
  return {
    since: Date.parse(ready.lastTransitionTime) || 0,
    reason: isQuota ? 'QuotaExceeded' : 'RouteNotAccepted',
    cause: isQuota ? 'quota' : 'route-not-programmed',
    message: `The route ${status?.uri ?? spec.host ?? ''} is not ready: ${ready.message}`,
  };
}
