// Orgs and spaces: the CLI creates them; the controller creates their namespaces.

import { randomUUID } from 'node:crypto';
import { findCondition, isReady } from '../../api/conditions.ts';
import { roleBindingType } from '../../api/core.ts';
import { kinds } from '../../api/group.ts';
import type { ResourceType, Stored } from '../../api/object.ts';
import { cfRoles, subjectOf, type CfRole } from '../../api/roles.ts';
import type { CFOrg, CFSpace } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import { byClaim, readOrgs, readSpaces } from '../../session/places.ts';
import type { Session } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { waitForController, waitUntilDeleted, whereControllerIs } from '../controller-wait.ts';
import type { OpEvent } from '../../events.ts';
import { buildOrg, buildRoleBinding, buildSpace } from '../../../templates/tenancy.ts';

export { listOrgs, listSpaces } from '../../session/places.ts';

/** Longer than the usual time for a reaction of the controller: a busy cluster takes longer to create and empty namespaces. */
const readyPatienceMs = 30_000;

type Place = CFOrg | CFSpace;

const reasonOf = (place: Place): string => findCondition(place, 'Ready')?.message ?? '';

/** What is awaited of a place that the controller works on. */
export function awaitedOf(seen: Place): OpEvent {
  const reason = reasonOf(seen);
  return reason === '' ? { type: 'awaiting-controller' } : { type: 'waiting', reason };
}

/** The error for a place that is not ready, with the controller's reason; undefined when it gives none. */
export function notReady(seen: Place): KfError | undefined {
  const reason = reasonOf(seen);
  if (isReady(seen) || reason === '') return undefined;
  const message = `'${seen.spec.displayName}' is accepted, but not ready: ${reason}`;
  return new KfError('accepted', message, { hints: [whereControllerIs] });
}

/** Waits until its namespace exists. @throws KfError `conflict` when the name is taken, `accepted` when it is not ready in time */
async function waitUntilReady<T extends Place>(session: Session, type: ResourceType<T>, place: Stored<T>): Promise<void> {
  const isMade = (seen: Stored<T>): boolean => {
    const claimed = findCondition(seen, 'Claimed');
    if (claimed?.status === 'False') throw new KfError('conflict', claimed.message, { details: { reason: claimed.reason } });
    return isReady(seen);
  };
  const written = { type, object: place, what: `'${place.spec.displayName}'`, patienceMs: readyPatienceMs, late: notReady };
  await waitForController(session, written, isMade, awaitedOf);
}

/**
 * The object that has the name already; as in cf, capitals make no difference. If it is being deleted, this waits until it is gone and the name is
 * free.
 * @throws KfError `conflict` when that takes too long
 */
async function holderOf<T extends Place>(
  session: Session,
  type: ResourceType<T>,
  places: readonly Stored<T>[],
  name: string,
): Promise<NameAndGuid | undefined> {
  const same = places.filter(({ spec }) => spec.displayName.toLowerCase() === name.toLowerCase()).toSorted(byClaim);
  const holder = same.find(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (holder !== undefined) return named(holder.spec.displayName, holder.metadata.name);
  for (const object of same) {
    const what = object.spec.displayName;
    if (await waitUntilDeleted(session, { type, object, what, patienceMs: readyPatienceMs })) continue;
    throw new KfError('conflict', `'${what}' is still being deleted; its name is free when it is gone.`, {
      hints: [type.kind === kinds.org.kind ? `${session.bin} orgs` : `${session.bin} spaces`],
    });
  }
  return undefined;
}

const named = (name: string, guid: string): NameAndGuid => ({ name, guid });

export interface Made {
  place: NameAndGuid;
  created: boolean;
}

/**
 * Waits until a new org or space is ready. If another one got the name at the same moment, the new one is deleted: it would get the name as soon as
 * the other one is gone.
 * @param readAll those among which the other one is
 */
async function keepIfNamed<T extends Place>(
  session: Session,
  type: ResourceType<T>,
  place: Stored<T>,
  readAll: () => Promise<Stored<T>[]>,
): Promise<Made> {
  const { displayName } = place.spec;
  const { name, namespace, uid } = place.metadata;
  try {
    await waitUntilReady(session, type, place);
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'conflict') throw error;
    await session.cluster.delete(type, namespace, name, { uid });
    const holder = await holderOf(session, type, await readAll(), displayName);
    if (holder === undefined) throw error;
    return { place: holder, created: false };
  }
  return { place: named(displayName, name), created: true };
}

/** Creates an org, and waits until it is ready. @returns the present one, not created, when another one has the name */
export async function createOrg(session: Session, name: string): Promise<Made> {
  const readAll = () => readOrgs(session);
  const taken = await holderOf(session, kinds.org, await readAll(), name);
  if (taken !== undefined) return { place: taken, created: false };
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const guid = randomUUID();
  const { cluster, signal, root } = session;
  const org = await cluster.create(kinds.org, buildOrg({ guid, rootNamespace: root, displayName: name }, author), {
    signal,
  });
  return keepIfNamed(session, kinds.org, org, readAll);
}

/** Creates a space, and waits until it is ready. @returns the present one, not created, when another one has the name */
export async function createSpace(session: Session, org: NameAndGuid, name: string): Promise<Made> {
  const readAll = () => readSpaces(session, org);
  const taken = await holderOf(session, kinds.space, await readAll(), name);
  if (taken !== undefined) return { place: taken, created: false };
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const guid = randomUUID();
  const { cluster, signal } = session;
  const space = await cluster.create(kinds.space, buildSpace({ guid, orgGuid: org.guid, displayName: name }, author), {
    signal,
  });
  return keepIfNamed(session, kinds.space, space, readAll);
}

/** Gives a role to the caller. A caller without the right to give roles gets none: users who may create orgs and spaces can see them anyway. */
export async function assignOwnRole(session: Session, role: keyof typeof cfRoles, namespace: string): Promise<boolean> {
  const { cluster, signal } = session;
  const wanted: CfRole = cfRoles[role];
  const binding = buildRoleBinding({ role: wanted, subject: subjectOf(await session.changedBy()), namespace, guid: randomUUID() });
  try {
    await cluster.create(roleBindingType, binding, { signal });
    return true;
  } catch (error) {
    if (isAlreadyExists(error)) return true;
    if (error instanceof KfError && error.code === 'forbidden') return false;
    throw error;
  }
}
