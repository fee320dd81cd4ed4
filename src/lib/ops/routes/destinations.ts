// The destination of a route that leads to an app's web process, and what the gateway speaks to it: HTTP/1.1, or HTTP/2 without TLS.

import { webProcess } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFDomain, CFRoute, RouteDestination } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { isAtPlace, isLive, type RoutePlace } from './holders.ts';

/**
 * The most destinations that kf gives a route. The gateway takes 16 versions of apps for one address, and an app that is updated needs two of these places
 * (docs/decisions/0086).
 */
export const mostDestinations = 14;

export type AppProtocol = NonNullable<RouteDestination['protocol']>;

/** Where an app is to be mapped. */
export interface MappedPlace extends RoutePlace {
  /** Left out: http1 for a new destination, and as it is for a present one. */
  protocol?: AppProtocol;
}

/** True for the destination of the app's web process. */
export const leadsTo = ({ appRef, processType }: RouteDestination, app: Stored<CFApp>): boolean =>
  appRef.name === app.metadata.name && processType === webProcess;

export const protocolOf = ({ protocol = 'http1' }: RouteDestination): AppProtocol => protocol;

const speaks = (destination: RouteDestination, app: Stored<CFApp>, protocol: AppProtocol | undefined): boolean =>
  !leadsTo(destination, app) || protocol === undefined || protocolOf(destination) === protocol;

/** True when the route, which leads to the app, is at the place and has the protocol that the place names. */
export function isMapped(route: Stored<CFRoute>, app: Stored<CFApp>, place: MappedPlace): boolean {
  return isAtPlace(route, place) && (route.spec.destinations ?? []).every((one) => speaks(one, app, place.protocol));
}

/** The destinations with one to the app that has the protocol. @returns undefined when they are so already */
export function withDestination(
  present: readonly RouteDestination[],
  app: Stored<CFApp>,
  wanted: RouteDestination,
  protocol: AppProtocol | undefined,
): RouteDestination[] | undefined {
  if (!present.some((one) => leadsTo(one, app))) return [...present, wanted];
  return withProtocol(present, app, protocol);
}

/** The destinations with this protocol of those to the app. @returns undefined when they have it already */
export function withProtocol(
  present: readonly RouteDestination[],
  app: Stored<CFApp>,
  protocol: AppProtocol | undefined,
): RouteDestination[] | undefined {
  if (protocol === undefined || present.every((one) => speaks(one, app, protocol))) return undefined;
  return present.map((one) => (leadsTo(one, app) ? { ...one, protocol } : one));
}

/**
 * Checks that a route can get another destination. Routes on internal domains have no such limit.
 * @throws KfError `quota` when it has too many
 */
export function assertPlaceLeft(present: readonly RouteDestination[], domain: Stored<CFDomain>, url: string): void {
  if (present.length < mostDestinations || domain.spec.internal === true) return;
  const message = `Route ${url} leads to ${present.length} apps already; the gateway could not update more of them without a loss of requests.`;
  throw new KfError('quota', message, { hints: ['Map the app to another route, or unmap one that is not needed.'] });
}

/** As {@link assertPlaceLeft}, for the routes of a push that have not the app yet. @param url the URL of a place */
export function assertPlacesLeft(
  places: readonly MappedPlace[],
  app: Stored<CFApp> | undefined,
  known: readonly Stored<CFRoute>[],
  url: (place: MappedPlace) => string,
): void {
  for (const place of places) {
    const { destinations = [] } = known.find((route) => isLive(route) && isAtPlace(route, place))?.spec ?? {};
    if (app !== undefined && destinations.some((one) => leadsTo(one, app))) continue;
    assertPlaceLeft(destinations, place.domain, url(place));
  }
}
