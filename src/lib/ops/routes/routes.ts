// Routes: finding, creating, mapping and unmapping them.

import { randomUUID } from 'node:crypto';
import { currentCondition } from '../../api/conditions.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import { appGuidsOf } from '../../api/names.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFDomain, CFRoute, RouteDestination } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { patchAsRead, type ObjectPatch } from '../../kube/patch-as-read.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildDestination, buildRoute, type RouteInput } from '../../../templates/route.ts';
import { waitForController, waitUntilDeleted } from '../controller-wait.ts';
import type { OpEvent } from '../../events.ts';
import { findDomain } from '../find.ts';
import { assertAddress } from './address.ts';
import { assertPlaceLeft, leadsTo, protocolOf, withDestination, type AppProtocol, type MappedPlace } from './destinations.ts';
import { waitUntilProgrammed } from './programming.ts';
import { assertMayTakeEveryHost, explainRefusal, isAtPlace, isLive, isRefused, type RoutePlace } from './holders.ts';

export interface RouteAddress {
  domain: string;
  host: string;
  /** With its leading slash, or ''. */
  path: string;
}

export const urlOf = ({ host, domain, path }: RouteAddress): string => `${host === '' ? '' : `${host.toLowerCase()}.`}${domain}${path}`;

/** cf's sentence for a missing route. */
export const noRouteText = ({ host, domain, path }: RouteAddress): string =>
  `Route with host '${host}'${path === '' ? ` and domain '${domain}'` : `, domain '${domain}', and path '${path}'`} not found.`;

/** The space's routes with this address; more than one while one is being deleted or refused. */
export async function routesAt(session: SpaceSession, domain: Stored<CFDomain>, { host, path }: RouteAddress): Promise<Stored<CFRoute>[]> {
  const { cluster, space, signal } = session;
  const labelSelector = `${labels.domainGuid}=${domain.metadata.name}`;
  const { items } = await cluster.list(kinds.route, { ns: space.guid, labelSelector, signal });
  return items.filter((route) => isAtPlace(route, { host, domain, path }));
}

/** Waits until the controller has claimed the address. @throws KfError `conflict` when another route has it */
function waitForClaim(session: SpaceSession, route: Stored<CFRoute>, url: string): Promise<Stored<CFRoute>> {
  const isClaimed = (seen: Stored<CFRoute>): boolean => {
    const claimed = currentCondition(seen, 'Claimed');
    if (claimed?.status === 'False') throw new KfError('conflict', claimed.message, { details: { reason: claimed.reason } });
    return claimed?.status === 'True';
  };
  const awaited = (): OpEvent => ({ type: 'awaiting-claim', url });
  return waitForController(session, { type: kinds.route, object: route, what: `Route ${url}` }, isClaimed, awaited);
}

/** Replaces all destinations. @returns undefined when `change` finds nothing to do */
export async function changeDestinations(
  session: SpaceSession,
  route: Stored<CFRoute>,
  change: (destinations: RouteDestination[]) => RouteDestination[] | undefined,
): Promise<Stored<CFRoute> | undefined> {
  const changedBy = await session.changedBy();
  const patchFor = (live: Stored<CFRoute>): ObjectPatch | undefined => {
    const destinations = change(live.spec.destinations ?? []);
    if (destinations === undefined) return undefined;
    const appGuids = appGuidsOf({ ...live, spec: { ...live.spec, destinations } });
    return {
      metadata: {
        labels: { [labels.unmapped]: String(destinations.length === 0) },
        annotations: { [annotations.changedBy]: changedBy, [annotations.appGuids]: appGuids },
      },
      spec: { destinations },
    };
  };
  const gone = (): KfError => new KfError('not-found', `Route '${route.status?.uri ?? route.metadata.name}' was deleted meanwhile.`);
  const { object, isWritten } = await patchAsRead(session.cluster, { type: kinds.route, object: route, gone }, patchFor, session.signal);
  return isWritten ? object : undefined;
}

export interface MapOptions extends RouteAddress {
  /** The app's port; if left out, the port that its image exposes. */
  port?: number | undefined;
  /** Default: http1. */
  protocol?: AppProtocol | undefined;
}

export interface Mapped {
  url: string;
  created: boolean;
  mapped: boolean;
  /** What the gateway speaks to the app now: an earlier mapping keeps its protocol, as in cf. */
  protocol: AppProtocol;
}

/**
 * Creates a route that has its destinations from the start. If its address is taken, the route is deleted again.
 * @param at the space that gets it, and the GUID of the route; default: the targeted space, and a new GUID
 * @throws KfError `conflict` when the address is taken
 */
export async function createClaimed(
  session: SpaceSession,
  { host, domain, path }: RoutePlace,
  destinations: RouteDestination[],
  at: Pick<RouteInput, 'namespace' | 'guid' | 'sharedFrom'> = { namespace: session.space.guid, guid: randomUUID() },
): Promise<Stored<CFRoute>> {
  const { cluster, signal } = session;
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const place = { host: host.toLowerCase(), path, domain };
  const org = at.namespace === session.space.guid ? session.org.guid : undefined;
  const wanted = buildRoute({ ...at, ...place, destinations, org }, author);
  const route = await cluster.create(kinds.route, wanted, { signal });
  try {
    return await waitForClaim(session, route, urlOf({ host, domain: domain.spec.name, path }));
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'conflict') throw error;
    await cluster.delete(kinds.route, at.namespace, at.guid);
    throw await explainRefusal(session, { host, domain, path }, error);
  }
}

/**
 * Creates a route as {@link createClaimed} does, or takes the one that another command of this space creates at the same moment.
 * @throws KfError `conflict` when another space has the address
 */
export async function createOrJoin(
  session: SpaceSession,
  place: RoutePlace,
  destinations: RouteDestination[],
): Promise<{ route: Stored<CFRoute>; created: boolean }> {
  const isLost = (error: unknown): boolean => error instanceof KfError && (error.code === 'conflict' || error.code === 'not-found');
  try {
    return { route: await createClaimed(session, place, destinations), created: true };
  } catch (error) {
    if (!isLost(error)) throw error;
    const address = { ...place, domain: place.domain.spec.name };
    for (const theirs of (await routesAt(session, place.domain, address)).filter(isLive)) {
      // Its claim is told only when its parts are made, which can be later than the refusal.
      const claimed = await waitForClaim(session, theirs, urlOf(address)).catch((refusal: unknown) => {
        if (isLost(refusal)) return undefined;
        throw refusal;
      });
      if (claimed !== undefined) return { route: claimed, created: false };
    }
    throw error;
  }
}

/**
 * The live route of those at an address. Refused routes are deleted, because only a new route asks for the address again. A route that is being
 * deleted keeps its address until it is gone, so this waits for that.
 * @returns undefined when a new route can be made
 * @throws KfError `conflict` when the end of an earlier route takes too long
 */
export async function liveRoute(
  session: SpaceSession,
  present: readonly Stored<CFRoute>[],
  url: string,
): Promise<Stored<CFRoute> | undefined> {
  const live = present.find(isLive);
  if (live !== undefined) return live;
  const { cluster, space, signal } = session;
  for (const route of present) {
    const { name, uid, deletionTimestamp } = route.metadata;
    if (deletionTimestamp === undefined) await cluster.delete(kinds.route, space.guid, name, { signal, uid });
    else if (!isRefused(route) && !(await waitUntilDeleted(session, { type: kinds.route, object: route, what: url })))
      throw new KfError('conflict', `Route '${url}' is still being deleted; its address is free when it is gone.`, {
        hints: [`kubectl get cfroute -n ${space.guid} ${name} -o yaml`],
      });
  }
  return undefined;
}

/**
 * One step for a push, which has already read the space's routes: creates a missing route with its destination, or adds the destination to an
 * existing one.
 * @returns the route as it is now
 * @throws KfError `conflict` when a route of another space has the address
 */
export async function ensureRoute(
  session: SpaceSession,
  app: Stored<CFApp>,
  place: MappedPlace,
  known: readonly Stored<CFRoute>[],
): Promise<Stored<CFRoute>> {
  const { domain } = place;
  const address = { ...place, domain: domain.spec.name };
  const atPlace = known.filter((route) => isAtPlace(route, place));
  const found = await liveRoute(session, atPlace, urlOf(address));
  const destination = buildDestination({ guid: randomUUID(), appGuid: app.metadata.name, ...defined({ protocol: place.protocol }) });
  const addTo = (present: readonly RouteDestination[]): RouteDestination[] | undefined => {
    if (!present.some((one) => leadsTo(one, app))) assertPlaceLeft(present, domain, urlOf(address));
    return withDestination(present, app, destination, place.protocol);
  };
  const add = async (route: Stored<CFRoute>): Promise<Stored<CFRoute>> => (await changeDestinations(session, route, addTo)) ?? route;
  if (found !== undefined) return add(found);
  // Another app of this space, perhaps of the same manifest, may create the route first.
  const { route, created } = await createOrJoin(session, place, [destination]);
  return created ? route : add(route);
}

/** Removes the app from all its routes. */
export async function unmapAll(session: SpaceSession, app: Stored<CFApp>, routes: readonly Stored<CFRoute>[]): Promise<void> {
  const isOther = ({ appRef }: RouteDestination): boolean => appRef.name !== app.metadata.name;
  await Promise.all(
    routes.map((route) => changeDestinations(session, route, (present) => (present.every(isOther) ? undefined : present.filter(isOther)))),
  );
}

/** Creates the route if it does not exist and maps it to the app. `onStep` is called at the start of each of the two steps. */
export async function mapRoute(
  session: SpaceSession,
  app: Stored<CFApp>,
  options: MapOptions,
  onStep: (step: 'create' | 'created' | 'map', url: string) => void,
): Promise<Mapped> {
  const domain = await findDomain(session, options.domain);
  assertAddress({ ...options, domain }, '-n HOSTNAME gives one.');
  const url = urlOf({ ...options, domain: domain.spec.name });
  const destination = buildDestination({
    guid: randomUUID(),
    appGuid: app.metadata.name,
    port: options.port,
    ...defined({ protocol: options.protocol }),
  });
  const found = await liveRoute(session, await routesAt(session, domain, options), url);
  const create = async (): ReturnType<typeof createOrJoin> => {
    await assertMayTakeEveryHost(session, { ...options, domain });
    onStep('create', url);
    const made = await createOrJoin(session, { ...options, domain }, [destination]);
    onStep('created', url);
    return made;
  };
  const { route, created } = found === undefined ? await create() : { route: found, created: false };
  onStep('map', url);
  const isSame = (one: RouteDestination): boolean => leadsTo(one, app) && (options.port === undefined || one.port === options.port);
  const add = (present: RouteDestination[]): RouteDestination[] | undefined => {
    if (present.some(isSame)) return undefined;
    assertPlaceLeft(present, domain, url);
    return [...present, destination];
  };
  const changed = created ? route : await changeDestinations(session, route, add);
  await waitUntilProgrammed(session, changed ?? route, url);
  const own = (changed ?? route).spec.destinations?.findLast((one) => isSame(one)) ?? destination;
  return { url, created, mapped: changed !== undefined, protocol: protocolOf(own) };
}

/** Returns false when the route was not mapped to the app. @throws KfError `not-found` in cf's words when the route does not exist */
export async function unmapRoute(session: SpaceSession, app: Stored<CFApp>, address: RouteAddress): Promise<boolean> {
  const domain = await findDomain(session, address.domain);
  const route = (await routesAt(session, domain, address)).find(isLive);
  if (route === undefined)
    throw new KfError('not-found', noRouteText({ ...address, domain: domain.spec.name }), { hints: [`${session.bin} routes`] });
  const isOther = ({ appRef }: RouteDestination): boolean => appRef.name !== app.metadata.name;
  const changed = await changeDestinations(session, route, (present) => (present.every(isOther) ? undefined : present.filter(isOther)));
  if (changed === undefined) return false;
  try {
    await waitUntilProgrammed(session, changed, urlOf({ ...address, domain: domain.spec.name }));
  } catch (error) {
    // A route without destinations may be deleted by anybody's delete-orphaned-routes; it is unmapped all the same.
    if (!(error instanceof KfError) || error.code !== 'not-found') throw error;
  }
  return true;
}
