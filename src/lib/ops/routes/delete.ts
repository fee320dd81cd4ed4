// Deletes routes: one by its address, or all without an app.

import pLimit from 'p-limit';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { readSame } from '../../kube/patch-as-read.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
import type { SpaceSession } from '../../session/session.ts';
import { findDomain, listDomainObjects } from '../find.ts';
import { isRefused, otherHolder } from './holders.ts';
import { waitUntilProgrammed } from './programming.ts';
import { assertOwned } from './route-and-space.ts';
import { removeHalves } from './share.ts';
import { changeDestinations, noRouteText, routesAt, urlOf, type RouteAddress } from './routes.ts';

/** Requests at the same time. */
const parallelDeletions = 5;

/**
 * Takes all apps from the route first, because only a route that exists can tell that the gateway has loaded the change. A gateway or a controller
 * that does not confirm it delays the deletion, but does not prevent it: what the route has made is deleted with it.
 */
async function unmapBefore(session: SpaceSession, route: Stored<CFRoute>, url: string): Promise<void> {
  if (isRefused(route)) return;
  try {
    const unmapped = await changeDestinations(session, route, (present) => (present.length === 0 ? undefined : []));
    if (unmapped !== undefined) await waitUntilProgrammed(session, unmapped, url);
  } catch (error) {
    if (!(error instanceof KfError)) throw error;
    if (error.code === 'accepted' || error.code === 'timeout') session.report({ type: 'still-loaded', url });
    else if (error.code !== 'not-found' && error.code !== 'failed') throw error;
  }
}

export interface DeletedRoute {
  url: string;
  deleted: boolean;
  /** Why nothing was deleted, in cf's words. */
  reason?: string;
  /** Another space that has the host, as the subject of a sentence. */
  holder?: string;
}

/** Deletes the route with this address in the targeted space. When it ends, the gateway sends no more requests for it to apps. */
export async function deleteRoute(session: SpaceSession, address: RouteAddress): Promise<DeletedRoute> {
  const domain = await findDomain(session, address.domain);
  const url = urlOf({ ...address, domain: domain.spec.name });
  const present = (await routesAt(session, domain, address)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (present.length === 0) {
    const holder = await otherHolder(session, { ...address, domain });
    return { url, deleted: false, reason: noRouteText({ ...address, domain: domain.spec.name }), ...defined({ holder }) };
  }
  for (const route of present) await deleteKnownRoute(session, route, url);
  return { url, deleted: true };
}

/** Deletes this route, which the caller has read. When it ends, the gateway sends no more requests for it to apps. */
export async function deleteKnownRoute(session: SpaceSession, route: Stored<CFRoute>, url: string): Promise<void> {
  const { cluster, signal } = session;
  const { namespace, name, uid } = route.metadata;
  if (!isRefused(route)) assertOwned(session, { route, url });
  await unmapBefore(session, route, url);
  await cluster.delete(kinds.route, namespace, name, { signal, uid });
  await removeHalves(session, route, route.spec.sharedWith ?? []);
}

/** False also for a route that is shared: it may lead to apps of the other space, or belong to it. */
const isOrphaned = (route: Stored<CFRoute>): boolean => {
  const { destinations = [], sharedFrom, sharedWith = [] } = route.spec;
  const isShared = sharedWith.length > 0 || (sharedFrom !== undefined && !isRefused(route));
  return route.metadata.deletionTimestamp === undefined && destinations.length === 0 && !isShared;
};

/** Deletes the route unless somebody has mapped it since it was read. @returns whether it was deleted */
function deleteUnmapped({ cluster, signal }: SpaceSession, route: Stored<CFRoute>): Promise<boolean> {
  const gone = (): KfError => new KfError('not-found', 'The route was deleted meanwhile.');
  const change = async (live: Stored<CFRoute>): Promise<boolean> => {
    if (!isOrphaned(live)) return false;
    const { namespace, name, uid, resourceVersion } = live.metadata;
    return cluster.delete(kinds.route, namespace, name, { uid, resourceVersion, signal });
  };
  const readAgain = (): Promise<Stored<CFRoute>> => readSame(cluster, { type: kinds.route, object: route, gone }, signal);
  return retryOnConflict(route, change, readAgain, signal).catch((error: unknown) => {
    if (error instanceof KfError && error.code === 'not-found') return false;
    throw error;
  });
}

/** Deletes the routes of the targeted space that lead to no app. @returns their URLs */
export async function deleteOrphanedRoutes(session: SpaceSession): Promise<string[]> {
  const { cluster, space, signal } = session;
  const [{ items }, domains] = await Promise.all([cluster.list(kinds.route, { ns: space.guid, signal }), listDomainObjects(session)]);
  const orphans = items.filter(isOrphaned);
  const deleted = await pLimit(parallelDeletions).map(orphans, (route) => deleteUnmapped(session, route));
  const urlOfRoute = ({ spec: { host = '', path = '', domainRef } }: Stored<CFRoute>): string =>
    urlOf({ host, path, domain: domains.find(({ metadata }) => metadata.name === domainRef.name)?.spec.name ?? '' });
  return orphans
    .filter((_, index) => deleted[index] === true)
    .map(urlOfRoute)
    .toSorted();
}
