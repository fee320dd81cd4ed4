// Domains whose requests are redirected from http to https: the HTTPRoute that does it.

import { httpRouteType, isRedirected } from '../../lib/api/gateway.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFDomain } from '../../lib/api/types.generated.ts';
import { buildDomainRedirect, redirectName } from '../../templates/domain-redirect.ts';
import { contains } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';

/**
 * Makes, changes or removes the HTTPRoute that redirects the domain. The cache has only HTTPRoutes of CFRoutes, so the API server is asked, unless nobody
 * ever wanted a redirection of this domain.
 */
export async function ensureRedirect(context: Context, domain: Stored<CFDomain>, isReady: boolean): Promise<void> {
  if (domain.spec.httpRedirect === undefined) return;
  const { gateway } = context.info();
  const { namespace } = domain.metadata;
  const { cluster, signal } = context;
  const live = await cluster.get(httpRouteType, namespace, redirectName(domain), signal);
  if (!isReady || !isRedirected(domain, gateway.https)) {
    if (live !== undefined) await cluster.delete(httpRouteType, namespace, live.metadata.name, { uid: live.metadata.uid, signal });
    return;
  }
  const wanted = buildDomainRedirect(domain, gateway, gateway.https);
  if (live === undefined) {
    await cluster.create(httpRouteType, wanted, { signal });
    return;
  }
  if (contains(live, { spec: wanted.spec })) return;
  const metadata = { resourceVersion: live.metadata.resourceVersion };
  await cluster.mergePatch(httpRouteType, namespace, live.metadata.name, { metadata, spec: wanted.spec }, { signal });
}
