// Shares a route with another space, whose developers then lead it to apps of theirs (docs/decisions/0083). Each space has a half: the owner's route
// names the space, and a route of that space names the owner's.

import { randomUUID } from 'node:crypto';
import { annotations, kinds, labels, reasons } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { assertAccess } from '../../kube/access.ts';
import { isForbidden } from '../../kube/errors.ts';
import { patchAsRead, type ObjectPatch } from '../../kube/patch-as-read.ts';
import type { SpaceSession } from '../../session/session.ts';
import { waitUntilProgrammed } from './programming.ts';
import { isLive } from './holders.ts';
import { assertOwned, findRouteAndSpace, type NamedRouteAndSpace, type RouteAndSpace } from './route-and-space.ts';
import { createClaimed } from './routes.ts';

async function findShare(session: SpaceSession, named: NamedRouteAndSpace): Promise<RouteAndSpace> {
  const found = await findRouteAndSpace(session, named);
  assertOwned(session, found);
  return found;
}

/**
 * The caller writes in both spaces: whoever may write only in one of them cannot lead requests to the other.
 * @throws KfError `conflict` in cf's words for the route's own space
 */
export async function assertMayShare(session: SpaceSession, { url, to }: Pick<RouteAndSpace, 'url' | 'to'>): Promise<void> {
  if (to.guid === session.space.guid) {
    const text = `Unable to share route '${url}' with space '${to.name}'.`;
    throw new KfError('conflict', `${text} Routes cannot be shared into the space where they were created.`);
  }
  const { group, plural } = kinds.route;
  await assertAccess(session.cluster, [{ verb: 'create', group, resource: plural, ns: to.guid }], session.signal);
}

/** The routes of the other space that belong to this one. */
async function halvesIn({ cluster, signal }: SpaceSession, { metadata, spec }: Stored<CFRoute>, ns: string): Promise<Stored<CFRoute>[]> {
  const labelSelector = `${labels.domainGuid}=${spec.domainRef.name ?? ''}`;
  const { items } = await cluster.list(kinds.route, { ns, labelSelector, signal });
  return items.filter((one) => one.spec.sharedFrom?.uid === metadata.uid && one.metadata.deletionTimestamp === undefined);
}

/** @returns undefined when the spaces were those already */
async function changeSpaces(
  session: SpaceSession,
  { route, url }: Pick<RouteAndSpace, 'route' | 'url'>,
  change: (spaces: string[]) => string[],
): Promise<Stored<CFRoute> | undefined> {
  const changedBy = await session.changedBy();
  const patchFor = ({ spec: { sharedWith = [] } }: Stored<CFRoute>): ObjectPatch | undefined => {
    const wanted = change(sharedWith);
    if (wanted.length === sharedWith.length) return undefined;
    return { metadata: { annotations: { [annotations.changedBy]: changedBy } }, spec: { sharedWith: wanted } };
  };
  const gone = (): KfError => new KfError('not-found', `Route '${url}' was deleted meanwhile.`);
  const { object, isWritten } = await patchAsRead(session.cluster, { type: kinds.route, object: route, gone }, patchFor, session.signal);
  return isWritten ? object : undefined;
}

/**
 * Shares a route with another space.
 * @param onShare called with the URL when everything is checked
 * @returns false when the route was shared with that space already
 * @throws KfError `conflict` when the route cannot be shared
 */
export async function shareRoute(session: SpaceSession, options: NamedRouteAndSpace, onShare: (url: string) => void): Promise<boolean> {
  const share = await findShare(session, options);
  await assertMayShare(session, share);
  onShare(share.url);
  return shareKnownRoute(session, share);
}

/** Shares a route that {@link assertMayShare} has checked. @returns false when it was shared with that space already */
export async function shareKnownRoute(session: SpaceSession, share: RouteAndSpace): Promise<boolean> {
  const { route, place, to } = share;
  const halves = await halvesIn(session, route, to.guid);
  const changed = await changeSpaces(session, share, (spaces) => (spaces.includes(to.guid) ? spaces : [...spaces, to.guid]));
  if (halves.length > 0) return changed !== undefined;
  const { name, uid } = route.metadata;
  const sharedFrom = { space: session.space.guid, route: name, uid };
  try {
    await createClaimed(session, place, [], { namespace: to.guid, guid: randomUUID(), sharedFrom });
  } catch (error) {
    // Another command has made the half at the same moment, so the route is shared.
    const isTaken = error instanceof KfError && error.details?.['reason'] === reasons.duplicateName;
    if (isTaken && (await halvesIn(session, route, to.guid)).some(isLive)) return changed !== undefined;
    if (changed !== undefined)
      await changeSpaces(session, { ...share, route: changed }, (spaces) => spaces.filter((guid) => guid !== to.guid));
    throw error;
  }
  return true;
}

/** Deletes the halves of a route in other spaces, where the caller may. Without the owner's half they have no effect. */
export async function removeHalves(session: SpaceSession, route: Stored<CFRoute>, spaces: readonly string[]): Promise<void> {
  const { cluster, signal } = session;
  for (const space of spaces) {
    try {
      for (const { metadata } of await halvesIn(session, route, space))
        await cluster.delete(kinds.route, space, metadata.name, { uid: metadata.uid, signal });
    } catch (error) {
      if (!isForbidden(error)) throw error;
    }
  }
}

/**
 * Ends the sharing of a route with another space. When it returns, no requests of this route get to apps of that space.
 * @param onUnshare called with the URL when everything is found
 * @returns false when the route was not shared with that space
 */
export async function unshareRoute(session: SpaceSession, options: NamedRouteAndSpace, onUnshare: (url: string) => void): Promise<boolean> {
  const share = await findShare(session, options);
  onUnshare(share.url);
  return unshareKnownRoute(session, share);
}

/** The same for a route that the caller has read. */
export async function unshareKnownRoute(session: SpaceSession, share: Omit<RouteAndSpace, 'place'>): Promise<boolean> {
  const { route, url, to } = share;
  const changed = await changeSpaces(session, share, (spaces) => spaces.filter((guid) => guid !== to.guid));
  if (changed !== undefined) await waitUntilProgrammed(session, changed, url);
  await removeHalves(session, route, [to.guid]);
  return changed !== undefined;
}
