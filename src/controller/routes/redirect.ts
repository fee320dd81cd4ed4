// Domains whose requests are redirected from http to https: the HTTPRoute that does it.

import { httpRouteType, isRedirected, listeners, type HttpRoute } from '../../lib/api/gateway.ts';
import { kinds } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFDomain, CFRoute } from '../../lib/api/types.generated.ts';
import { buildDomainRedirect, redirectName } from '../../templates/domain-redirect.ts';
import { contains } from '../runtime/merge-patch.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';
import { keyOf } from '../runtime/store.ts';
import { routesByDomain } from './route.ts';

function answersHttp(live: HttpRoute | undefined): boolean {
  const parents = live?.spec?.parentRefs ?? [];
  return parents.length === 0 || parents.some(({ sectionName }) => sectionName === undefined || sectionName === listeners.http);
}

/** The domain's routes that answer https alone, as all do while it is redirected. */
const routesWithoutHttp = (domain: Stored<CFDomain>, stores: Stores): Stored<CFRoute>[] =>
  stores
    .of(kinds.route)
    .by(routesByDomain.name, keyOf(domain))
    .filter(({ metadata }) => !answersHttp(stores.of(httpRouteType).get(metadata.namespace, metadata.name)));

/**
 * Makes, changes or removes the HTTPRoute that redirects the domain. The cache has only HTTPRoutes of CFRoutes, so the API server is asked, unless nobody
 * ever wanted a redirection of this domain.
 * @returns the routes for which a redirection stays that is to be removed: until they answer http, their requests would be answered with 404
 */
export async function ensureRedirect(context: Context, domain: Stored<CFDomain>, isReady: boolean): Promise<Stored<CFRoute>[]> {
  if (domain.spec.httpRedirect === undefined) return [];
  const { gateway } = context.info();
  const { namespace } = domain.metadata;
  const { cluster, signal } = context;
  const live = await cluster.get(httpRouteType, namespace, redirectName(domain), signal);
  if (!isReady || !isRedirected(domain, gateway.https)) {
    if (live === undefined) return [];
    // The routes of a domain that is refused do not come back.
    const awaited = isReady ? routesWithoutHttp(domain, context.stores) : [];
    if (awaited.length === 0) await cluster.delete(httpRouteType, namespace, live.metadata.name, { uid: live.metadata.uid, signal });
    return awaited;
  }
  const wanted = buildDomainRedirect(domain, gateway, gateway.https);
  if (live === undefined) {
    await cluster.create(httpRouteType, wanted, { signal });
    return [];
  }
  if (contains(live, { spec: wanted.spec })) return [];
  const metadata = { resourceVersion: live.metadata.resourceVersion };
  await cluster.mergePatch(httpRouteType, namespace, live.metadata.name, { metadata, spec: wanted.spec }, { signal });
  return [];
}
