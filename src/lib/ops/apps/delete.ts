// Deletes an app; owner references delete its parts. Its routes are deleted only on request, and never one that another app uses too.

import { routesOf } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';

/** Routes to delete with the app. @throws KfError `conflict` in cf's words when one is also mapped to another app */
async function routesToDelete(session: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFRoute>[]> {
  const { cluster, space, signal } = session;
  const routes = routesOf(app, (await cluster.list(kinds.route, { ns: space.guid, signal })).items);
  const shared = routes.find((route) => (route.spec.destinations ?? []).some(({ appRef }) => appRef.name !== app.metadata.name));
  if (shared === undefined) return routes;
  const name = app.spec.displayName;
  const url = shared.status?.uri ?? shared.spec.host ?? '';
  throw new KfError('conflict', `App '${name}' was not deleted because route '${url}' is mapped to more than one app.`, {
    hints: [`${session.bin} delete ${name}`],
  });
}

export interface Deleted {
  /** URLs of the deleted routes. */
  routes: string[];
}

export async function deleteApp(session: SpaceSession, app: Stored<CFApp>, options: { routes: boolean }): Promise<Deleted> {
  const { cluster, space, signal } = session;
  const routes = options.routes ? await routesToDelete(session, app) : [];
  const { name, uid } = app.metadata;
  await cluster.delete(kinds.app, space.guid, name, { propagation: 'Background', signal, uid });
  await Promise.all(
    routes.map((route) => {
      const own = route.metadata.uid;
      return cluster.delete(kinds.route, space.guid, route.metadata.name, { signal, uid: own });
    }),
  );
  return { routes: routes.map((route) => route.status?.uri ?? route.spec.host ?? '') };
}
