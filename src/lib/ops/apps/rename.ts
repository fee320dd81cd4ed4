// `rename`: another name for an app. Its GUID, its instances and its routes stay; a name that another app has is refused.

import { currentCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { waitForController } from '../controller-wait.ts';
import { renamedAgain } from '../renamed-again.ts';
import { changeApp } from './changes.ts';

function taken(session: SpaceSession, name: string): KfError {
  return new KfError('conflict', `App with the name '${name}' already exists.`, {
    hints: [`${session.bin} app ${name}`],
    details: { name },
  });
}

/** Names that differ only in capitals are the same. @throws KfError `conflict` when another app has the name */
async function assertFree(session: SpaceSession, app: Stored<CFApp>, name: string): Promise<void> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(kinds.app, { ns: space.guid, signal });
  const same = ({ metadata, spec }: Stored<CFApp>): boolean =>
    metadata.name !== app.metadata.name &&
    metadata.deletionTimestamp === undefined &&
    spec.displayName.toLowerCase() === name.toLowerCase();
  const holder = items.find(same);
  if (holder !== undefined) throw taken(session, holder.spec.displayName);
}

/**
 * Gives the app another name, and waits until the app holds it. An app that does not get the name keeps its former one.
 * @throws KfError `conflict` when another app has the name, or the app was renamed again meanwhile, `accepted` without a controller
 */
export async function renameApp(session: SpaceSession, app: Stored<CFApp>, name: string): Promise<Stored<CFApp>> {
  const former = app.spec.displayName;
  if (former === name) return app;
  await assertFree(session, app, name);
  const renamed = await changeApp(session, app, () => ({ spec: { displayName: name } }));
  const claimed = (seen: Stored<CFApp>) => currentCondition(seen, conditionTypes.claimed)?.status ?? 'Unknown';
  const judged = await waitForController(
    session,
    { type: kinds.app, object: renamed, what: `The new name '${name}' of app '${former}'` },
    // Somebody else has renamed the app since then.
    (seen) => seen.spec.displayName !== name || claimed(seen) !== 'Unknown',
    () => ({ type: 'awaiting-controller' }),
  );
  const { displayName } = judged.spec;
  if (displayName !== name) throw renamedAgain(session.bin, 'app', 'app', displayName);
  if (claimed(judged) === 'True') return judged;
  await changeApp(session, judged, (live) => (live.spec.displayName === name ? { spec: { displayName: former } } : undefined));
  throw taken(session, name);
}
