// Deletes an app and waits until it is gone; owner references delete its parts. It is stopped first, so that the gateway sends it no more requests when
// it is gone. Its routes are deleted only on request, and never one that another app uses too.

import { routesOf } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import { requireCompatible } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
import { withParts } from '../../session/overlay.ts';
import type { SpaceSession } from '../../session/session.ts';
import { asyncTimeoutMs } from '../async-timeout.ts';
import { kfVersion } from '../../version.ts';
import { waitUntilGone, type Leaving } from './leaving.ts';
import { stopApp, waitWhileRouted } from './lifecycle.ts';
import { isOvertaken } from './rollout-wait.ts';

const urlOf = (route: CFRoute): string => route.status?.uri ?? route.spec.host ?? '';

/** @throws KfError `conflict` in cf's words when the route is also mapped to another app */
function assertNotShared(app: Stored<CFApp>, route: CFRoute): void {
  if ((route.spec.destinations ?? []).every(({ appRef }) => appRef.name === app.metadata.name)) return;
  const name = app.spec.displayName;
  throw new KfError('conflict', `App '${name}' was not deleted because route '${urlOf(route)}' is mapped to more than one app.`, {
    hints: [`kf delete ${name}`],
  });
}

/** Deletes the route in the version that was checked, because another app may be mapped to it at any time. */
async function deleteRoute({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>, found: Stored<CFRoute>): Promise<void> {
  const { name } = found.metadata;
  const remove = async (route: Stored<CFRoute> | undefined): Promise<void> => {
    if (route === undefined) return;
    assertNotShared(app, route);
    const { uid, resourceVersion } = route.metadata;
    await cluster.delete(kinds.route, space.guid, name, { uid, resourceVersion, signal });
  };
  await retryOnConflict<Stored<CFRoute> | undefined, void>(found, remove, () => cluster.get(kinds.route, space.guid, name, signal), signal);
}

export interface DeleteOptions {
  /** Delete the routes of the app too. */
  routes: boolean;
  /** Wait until the app and these routes are gone. */
  wait: boolean;
}

export interface Deleted {
  /** URLs of the deleted routes. */
  routes: string[];
}

/** How long a deletion waits in all, if the user has not set another time. */
const usualPatienceMinutes = 1;

/**
 * Waits until no route leads to the app. A gateway or a controller that does not confirm it delays the deletion, but does not prevent it: after
 * `timeoutMs` this reports it. An app that an interrupted deletion has stopped is waited for too.
 */
async function takeOffRoutes(session: SpaceSession, app: Stored<CFApp>, timeoutMs: number): Promise<void> {
  const limited = withParts(session, { signal: AbortSignal.any([session.signal, AbortSignal.timeout(timeoutMs)]) });
  try {
    const { changed } = await stopApp(limited, app);
    if (!changed) await waitWhileRouted(limited, app);
  } catch (error) {
    // Somebody has started the app meanwhile: it is deleted as it is.
    if (isOvertaken(error)) return;
    if (!(error instanceof KfError) || !['accepted', 'timeout', 'not-found'].includes(error.code)) throw error;
    if (error.code === 'timeout') session.report({ type: 'still-routed', app: app.spec.displayName });
  }
}

/**
 * Deletes the app, or waits for the end of one that is already being deleted.
 * @throws KfError `conflict` when a route to delete is also mapped to another app; the app stays
 * @throws KfError `accepted` with what keeps the app, or one of the routes, longer than the deletion waits
 */
export async function deleteApp(session: SpaceSession, app: Stored<CFApp>, options: DeleteOptions): Promise<Deleted> {
  const { cluster, space, signal, bin } = session;
  const limitMs = asyncTimeoutMs(session.env, usualPatienceMinutes);
  const from = performance.now();
  const [{ items }, info] = await Promise.all([cluster.list(kinds.route, { ns: space.guid, signal }), session.info()]);
  requireCompatible(info, kfVersion());
  const mapped = routesOf(app, items);
  // A route that another space shares stays: the controller takes the app from it.
  const routes = options.routes ? mapped.filter(({ spec }) => spec.sharedFrom === undefined) : [];
  for (const route of routes) assertNotShared(app, route);
  const { name, uid, deletionTimestamp } = app.metadata;
  // The controller does not stop an app that is being deleted.
  if (mapped.length > 0 && deletionTimestamp === undefined) await takeOffRoutes(session, app, Math.round(limitMs / 2));
  // Before the app: if the command is interrupted, the next one still finds the app, and by it the other routes.
  await Promise.all(routes.map((route) => deleteRoute(session, app, route)));
  if (deletionTimestamp === undefined) await cluster.delete(kinds.app, space.guid, name, { propagation: 'Background', signal, uid });
  if (options.wait) {
    const ofApp: Leaving = {
      type: kinds.app,
      object: app,
      what: `App '${app.spec.displayName}'`,
      next: `${bin} delete ${app.spec.displayName}`,
    };
    const ofRoutes = routes.map((route): Leaving => ({
      type: kinds.route,
      object: route,
      what: `Route '${urlOf(route)}'`,
      next: `${bin} routes`,
    }));
    await waitUntilGone(session, [ofApp, ...ofRoutes], limitMs - (performance.now() - from));
  }
  return { routes: routes.map(urlOf) };
}
