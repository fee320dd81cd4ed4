// After a stop: waits until the gateway sends the app no more requests. Loaded only then, because of the limiter.

import pLimit from 'p-limit';
import { routesOf } from '../../api/app.ts';
import { findCondition } from '../../api/conditions.ts';
import { httpRouteType, isLoaded, mainBackends, revisionOf } from '../../api/gateway.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { isTransient } from '../../kube/errors.ts';
import { unlessLate, waitFor } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';

/** How long a stop waits for the gateway to send the app no more requests. */
const unroutedTimeoutMs = 20_000;

/** Each needs two requests. */
const parallelRoutes = 5;

/** True when the gateway has loaded a form of the route that sends no request to the app. The controller has asked the gateway. */
async function isUnrouted(session: SpaceSession, app: Stored<CFApp>, route: Stored<CFRoute>): Promise<boolean> {
  const { cluster, space, signal } = session;
  const name = route.metadata.name;
  const [fresh, live] = await Promise.all([
    cluster.get(kinds.route, space.guid, name, signal),
    cluster.get(httpRouteType, space.guid, name, signal),
  ]);
  if (fresh === undefined || live === undefined) return true;
  const own = (fresh.spec.destinations ?? []).filter(({ appRef }) => appRef.name === app.metadata.name);
  const reachesApp = mainBackends(live).some((backend) => own.some(({ guid }) => backend.name.startsWith(`s-${guid}-`)));
  const revision = revisionOf(live);
  return !reachesApp && revision !== undefined && isLoaded(findCondition(fresh, conditionTypes.programmed), revision);
}

/** Those of the routes over which the gateway may still send requests to the app. */
async function stillRouted(session: SpaceSession, app: Stored<CFApp>, routes: readonly Stored<CFRoute>[]): Promise<Stored<CFRoute>[]> {
  const unrouted = await pLimit(parallelRoutes).map(routes, (route) => isUnrouted(session, app, route));
  return routes.filter((_, index) => unrouted[index] !== true);
}

/**
 * After a stop: waits until no route leads to the app any more. An API server that does not answer for a moment is asked again. If the gateway
 * takes too long, this reports it and does not fail: the instances end in any case.
 * @param check gets the app whenever a route still leads to it; what it throws ends the wait
 */
export async function waitUntilUnrouted(
  session: SpaceSession,
  app: Stored<CFApp>,
  check: (live: Stored<CFApp> | undefined) => void = () => undefined,
): Promise<void> {
  const { cluster, space, signal, report } = session;
  let routes: Stored<CFRoute>[] | undefined;
  const look = async (): Promise<true | undefined> => {
    try {
      routes ??= routesOf(app, (await cluster.list(kinds.route, { ns: space.guid, signal })).items);
      if (routes.length > 0) routes = await stillRouted(session, app, routes);
      if (routes.length > 0) check(await cluster.get(kinds.app, space.guid, app.metadata.name, signal));
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
    if (routes?.length === 0) return true;
    report({ type: 'awaiting-unrouted' });
    return undefined;
  };
  const options = { timeoutMs: unroutedTimeoutMs, intervalMs: 150, describe: 'the gateway to send no more requests', signal };
  const isDone = await unlessLate(waitFor(look, options)).finally(() => report({ type: 'done' }));
  if (isDone === undefined) report({ type: 'still-routed', app: app.spec.displayName });
}
