// Deletes an app; owner references delete its parts. Its routes are deleted only on request, and never one that another app uses too.

import { routesOf } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
import type { SpaceSession } from '../../session/session.ts';

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
}

export interface Deleted {
  /** URLs of the deleted routes. */
  routes: string[];
}

/** @throws KfError `conflict` when a route to delete is also mapped to another app; the app stays */
export async function deleteApp(session: SpaceSession, app: Stored<CFApp>, options: DeleteOptions): Promise<Deleted> {
  const { cluster, space, signal } = session;
  const routes = options.routes ? routesOf(app, (await cluster.list(kinds.route, { ns: space.guid, signal })).items) : [];
  for (const route of routes) assertNotShared(app, route);
  // Before the app: if the command is interrupted, the next one still finds the app, and by it the other routes.
  await Promise.all(routes.map((route) => deleteRoute(session, app, route)));
  const { name, uid } = app.metadata;
  await cluster.delete(kinds.app, space.guid, name, { propagation: 'Background', signal, uid });
  return { routes: routes.map(urlOf) };
}
