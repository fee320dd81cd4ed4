// What a push leaves when a later one has overtaken it: no package that is newer than that of the later one.

import { annotations, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFPackage } from '../../api/types.generated.ts';
import type { SpaceSession } from '../../session/session.ts';
import { isOvertaken } from '../apps/rollout-wait.ts';
import { readPackages } from './app-snapshot.ts';

/** After the error of a push: see {@link removeLatePackage}. That error says why; a package that cannot be looked for is replaced by the next push. */
export async function tidyUpIfOvertaken(error: unknown, session: SpaceSession, app: Stored<CFApp>, pushId: string): Promise<void> {
  if (isOvertaken(error)) await removeLatePackage(session, app, pushId).catch(() => undefined);
}

/**
 * Deletes the package of an overtaken push if it came after that of the push that has the app now: restage, start and copy-source take the newest one.
 * A push that has no package of its own may build this one, so it stays then.
 * @param app as the overtaken push had it
 */
async function removeLatePackage(session: SpaceSession, app: Stored<CFApp>, pushId: string): Promise<void> {
  const { cluster, space, signal } = session;
  const [live, newestFirst] = await Promise.all([
    cluster.get(kinds.app, space.guid, app.metadata.name, signal),
    readPackages(session, app),
  ]);
  const madeBy = ({ metadata }: Stored<CFPackage>): string | undefined => metadata.annotations?.[annotations.pushId];
  const holder = live?.metadata.annotations?.[annotations.pushId];
  const later = newestFirst.findIndex((one) => madeBy(one) === holder);
  const own = newestFirst.findIndex((one) => madeBy(one) === pushId);
  const late = holder === pushId || own === -1 || later < own ? undefined : newestFirst[own];
  if (late === undefined) return;
  const { namespace, name, uid } = late.metadata;
  await cluster.delete(kinds.package, namespace, name, { uid, propagation: 'Background', signal });
}
