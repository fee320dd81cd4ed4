// The mark of a started app whose variables or services are no longer those of its instances (docs/decisions/0051).

import { annotations, kinds } from '../api/group.ts';
import { changeOf, isUnapplied } from '../api/held.ts';
import { requireCompatible } from '../api/kf-info.ts';
import type { Stored } from '../api/object.ts';
import type { CFApp } from '../api/types.generated.ts';
import { KfError } from '../errors.ts';
import { patchAsRead, type ObjectPatch } from '../kube/patch-as-read.ts';
import type { SpaceSession } from '../session/session.ts';
import { kfVersion } from '../version.ts';

/**
 * Notes that the variables or services of a started app are about to change, so that its next push starts it again. Written before them: a command that
 * is killed in between causes a restart too many. (A restart in between makes the mark void.) It is no change of the app by this user. Nothing for an app
 * that is deleted meanwhile.
 */
export async function markUnapplied(session: SpaceSession, app: Stored<CFApp>): Promise<void> {
  requireCompatible(await session.info(), kfVersion());
  const mark = (live: Stored<CFApp>): ObjectPatch | undefined => {
    if (live.spec.desiredState !== 'STARTED' || isUnapplied(live)) return undefined;
    return { metadata: { annotations: { [annotations.unapplied]: changeOf(live) } } };
  };
  const deleted = new KfError('not-found', `App '${app.spec.displayName}' was deleted meanwhile.`);
  const read = { type: kinds.app, object: app, gone: () => deleted };
  await patchAsRead(session.cluster, read, mark, session.signal).catch((error: unknown) => {
    if (error !== deleted) throw error;
  });
}
