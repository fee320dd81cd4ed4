// delete-org, delete-space: the controller deletes everything in them; this waits until they are gone.

import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import type { ResourceType, Stored } from '../../api/object.ts';
import type { CFOrg, CFSpace } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { byClaim, readOrgs, readSpaces } from '../../session/places.ts';
import type { OrgSession, Session } from '../../session/session.ts';
import { asyncTimeoutMs } from '../async-timeout.ts';
import { unlessLate } from '../../wait.ts';
import { unlessAbsent, whereControllerIs } from '../controller-wait.ts';
import { changeTargetOf } from './target.ts';

/** Longer than it takes to stop all apps of a full space, so that only something that blocks the deletion exceeds it. */
const usualPatienceMinutes = 15;

type Place = CFOrg | CFSpace;

/** The place of that name: the oldest one that is not being deleted, otherwise one that is. */
function named<T extends Place>(places: readonly Stored<T>[], name: string): Stored<T> | undefined {
  const same = places.filter(({ spec }) => spec.displayName === name).toSorted(byClaim);
  return same.find(({ metadata }) => metadata.deletionTimestamp === undefined) ?? same[0];
}

interface Leaving<T extends Place> {
  type: ResourceType<T>;
  object: Stored<T>;
  /** `Org 'x'`. */
  what: string;
  /** The command that lists what still exists. */
  list: string;
}

/** Why it still exists, in the controller's words; empty until the controller has said it. */
function reasonOf(place: Place): string {
  const ready = findCondition(place, conditionTypes.ready);
  return ready?.reason === 'Deleting' ? ready.message : '';
}

/** @throws KfError `accepted` when it still exists after the longest time, with what blocks it */
async function untilGone<T extends Place>(session: Session, { type, object, what, list }: Leaving<T>): Promise<void> {
  const { cluster, report } = session;
  const { namespace, name, uid } = object.metadata;
  let reason = '';
  const isGone = await unlessAbsent(session, (signal, alive) => {
    const check = (seen: Stored<T> | undefined): true | undefined => {
      if (seen?.metadata.uid !== uid) return true;
      reason = reasonOf(seen);
      if (reason !== '') alive();
      report(reason === '' ? { type: 'awaiting-deletion', name: object.spec.displayName } : { type: 'waiting', reason });
      return undefined;
    };
    const options = { timeoutMs: asyncTimeoutMs(session.env, usualPatienceMinutes), signal, describe: `the deletion of ${what}` };
    return unlessLate(watchObject(cluster, type, { ns: namespace, name, known: object }, check, options));
  })
    .catch((error: unknown) => {
      if (error instanceof KfError && error.code === 'interrupted') error.hints.push(`The deletion goes on in the cluster: ${list}`);
      throw error;
    })
    .finally(() => report({ type: 'done' }));
  if (isGone === true) return;
  if (reason === '')
    throw new KfError('accepted', `${what} is marked for deletion, but no controller has taken it up.`, { hints: [whereControllerIs] });
  throw new KfError('accepted', `${what} is still being deleted: ${reason}`, { hints: [list] });
}

async function remove<T extends Place>(session: Session, leaving: Leaving<T>): Promise<void> {
  const { namespace, name, uid, deletionTimestamp } = leaving.object.metadata;
  const { cluster, signal } = session;
  await session.changedBy();
  if (deletionTimestamp === undefined) await cluster.delete(leaving.type, namespace, name, { uid, propagation: 'Background', signal });
  await untilGone(session, leaving);
}

export interface PlaceDeleted {
  deleted: boolean;
  /** It was the targeted one, so the target is cleared. */
  wasTargeted: boolean;
}

const nothing: PlaceDeleted = { deleted: false, wasTargeted: false };

/** Deletes an org with everything in it, and waits until it is gone. */
export async function deleteOrg(session: Session, name: string): Promise<PlaceDeleted> {
  const object = named(await readOrgs(session), name);
  if (object === undefined) return nothing;
  await remove(session, { type: kinds.org, object, what: `Org '${name}'`, list: `${session.bin} orgs` });
  const wasTargeted = changeTargetOf(session, 'org', object.metadata.name, ({ org: _org, space: _space, ...rest }) => rest);
  return { deleted: true, wasTargeted };
}

/** Deletes a space with everything in it, and waits until it is gone. */
export async function deleteSpace(session: OrgSession, name: string): Promise<PlaceDeleted> {
  const object = named(await readSpaces(session, session.org), name);
  if (object === undefined) return nothing;
  await remove(session, { type: kinds.space, object, what: `Space '${name}'`, list: `${session.bin} spaces --org ${session.org.name}` });
  const wasTargeted = changeTargetOf(session, 'space', object.metadata.name, ({ space: _space, ...rest }) => rest);
  return { deleted: true, wasTargeted };
}
