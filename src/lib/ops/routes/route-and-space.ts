// A route of the targeted space and another space, which it is shared with or moves to.

import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { findOrg, findSpace } from '../../session/places.ts';
import type { SpaceSession } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { findDomain } from '../find.ts';
import { isLive, type RoutePlace } from './holders.ts';
import { noRouteText, routesAt, urlOf, type RouteAddress } from './routes.ts';

export interface NamedRouteAndSpace extends RouteAddress {
  /** Default: the targeted org. */
  otherOrg?: string | undefined;
  otherSpace: string;
}

export interface RouteAndSpace {
  route: Stored<CFRoute>;
  place: RoutePlace;
  url: string;
  /** The other space. */
  to: NameAndGuid;
}

/** @throws KfError `not-found` for a domain, route, org or space that is not there */
export async function findRouteAndSpace(
  session: SpaceSession,
  { otherOrg, otherSpace, ...address }: NamedRouteAndSpace,
): Promise<RouteAndSpace> {
  const domain = await findDomain(session, address.domain);
  const place = { ...address, domain };
  const named = { ...address, domain: domain.spec.name };
  const route = (await routesAt(session, domain, address)).find(isLive);
  if (route === undefined) throw new KfError('not-found', noRouteText(named), { hints: [`${session.bin} routes`] });
  const org = otherOrg === undefined || otherOrg === session.org.name ? session.org : await findOrg(session, otherOrg);
  return { route, place, url: urlOf(named), to: await findSpace(session, org, otherSpace) };
}

/** @throws KfError `conflict` for a route of another space, which only that space changes */
export function assertOwned({ bin }: SpaceSession, { route, url }: Pick<RouteAndSpace, 'route' | 'url'>): void {
  if (route.spec.sharedFrom === undefined) return;
  throw new KfError('conflict', `Route '${url}' belongs to another space, which shares it with this one. Only there it can be changed.`, {
    hints: [`${bin} unmap-route APP DOMAIN -n HOST`],
  });
}
