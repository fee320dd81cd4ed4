// Changes what the gateway speaks to an app behind one route.

import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { findDomain } from '../find.ts';
import { leadsTo, protocolOf, withProtocol, type AppProtocol } from './destinations.ts';
import { isLive } from './holders.ts';
import { waitUntilProgrammed } from './programming.ts';
import { changeDestinations, noRouteText, routesAt, urlOf, type RouteAddress } from './routes.ts';

export interface UpdateOptions extends RouteAddress {
  protocol: AppProtocol;
}

/**
 * Changes the protocol between gateway and app, and waits until the gateway speaks it.
 * @param onChange called before the change with the URL and the protocol so far
 * @returns false when the destination has the protocol already
 * @throws KfError `not-found` when the route does not exist or does not lead to the app
 */
export async function updateDestination(
  session: SpaceSession,
  app: Stored<CFApp>,
  { protocol, ...address }: UpdateOptions,
  onChange: (url: string, before: AppProtocol) => void,
): Promise<{ url: string; updated: boolean }> {
  const domain = await findDomain(session, address.domain);
  const named = { ...address, domain: domain.spec.name };
  const url = urlOf(named);
  const route = (await routesAt(session, domain, address)).find(isLive);
  if (route === undefined) throw new KfError('not-found', noRouteText(named), { hints: [`${session.bin} routes`] });
  const destination = route.spec.destinations?.find((one) => leadsTo(one, app));
  if (destination === undefined) {
    const flags = [...(named.host === '' ? [] : [`-n ${named.host}`]), ...(named.path === '' ? [] : [`--path ${named.path}`])].join(' ');
    throw new KfError('not-found', `Route '${url}' does not lead to app '${app.spec.displayName}'.`, {
      hints: [`${session.bin} map-route ${app.spec.displayName} ${named.domain} ${flags} --app-protocol ${protocol}`],
    });
  }
  const before = protocolOf(destination);
  if (before === protocol) return { url, updated: false };
  onChange(url, before);
  const changed = await changeDestinations(session, route, (present) => withProtocol(present, app, protocol));
  await waitUntilProgrammed(session, changed ?? route, url);
  return { url, updated: changed !== undefined };
}
