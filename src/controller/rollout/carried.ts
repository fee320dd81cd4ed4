// The weights by which the routes of a process spread its requests now, as far as its gateway has taken them.

import type { HttpRoute } from '../../lib/api/gateway.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFRoute } from '../../lib/api/types.generated.ts';
import { servingAnnotation } from '../../templates/http-route.ts';
import { routesTo } from '../relations.ts';
import type { Context } from '../runtime/reconciler.ts';
import { httpRouteOf } from '../shared-routes.ts';
import type { View } from './assessment.ts';
import { parseWeights } from './planner.ts';
import { refusalOf } from './route-refusal.ts';
import { acceptance, isSettled, refusalPatienceMs, turnedDownAt } from './traffic-probe.ts';

interface Mapped {
  route: Stored<CFRoute>;
  live: Stored<HttpRoute> | undefined;
}

/** Without a route that leads nobody anywhere: one that the gateway has turned down, or that the cluster has not let be made, and not only a moment ago. */
function leadingRoutes(view: View): Mapped[] {
  const { process, context } = view;
  const leads = ({ route, live }: Mapped): boolean => {
    const since = live === undefined ? refusalOf(route)?.since : turnedDownAt(live);
    if (since === undefined) return true;
    const left = since + refusalPatienceMs - context.now();
    if (left > 0) view.lookAgain.push(left);
    return left > 0;
  };
  return routesTo(process, context.stores)
    .map(({ route }) => ({ route, live: httpRouteOf(route, context.stores) }))
    .filter(leads);
}

/**
 * The weights that every HTTPRoute of the process has and its gateway has accepted, as `status.serving` has them; undefined while they differ. When none
 * leads anywhere there is nothing to wait for.
 */
export function carriedBy(view: View): string | undefined {
  const { uid } = view.process.metadata;
  const routes = leadingRoutes(view);
  if (view.routed && routes.length === 0) return view.process.status?.serving;
  const texts = routes.map(({ live }) =>
    live === undefined || acceptance(live)?.accepted !== true ? undefined : live.metadata.annotations?.[servingAnnotation(uid)],
  );
  const [first] = texts;
  return texts.every((text) => text === first) ? first : undefined;
}

/** True when the gateway has loaded the present form of every route of the process, or cannot be asked. */
export const isLoadedBy = (view: View): boolean => leadingRoutes(view).every(({ route, live }) => isSettled(route, live));

/** The time that the gateway needs to load a change, plus a second before pods stop answering. */
export function settleMs(context: Context): number {
  return Math.max(1, context.info().drainSeconds - 1) * 1_000;
}

/** Only this generation has requests. @param text as `printWeights` prints weights */
export function onlyTarget(text: string | undefined, hash: string): boolean {
  if (text === undefined) return false;
  return Object.entries(parseWeights(text)).every(([generation, weight]) => generation === hash || weight === 0);
}
