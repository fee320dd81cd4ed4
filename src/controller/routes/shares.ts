// The parts of a route that spaces share: what the owner's HTTPRoute leads to in other spaces, and what lets it do so there.

import type { Stored } from '../../lib/api/object.ts';
import { serviceType, type Service } from '../../lib/api/core.ts';
import { kinds } from '../../lib/api/group.ts';
import { backendsIn, httpRouteType, referenceGrantType, type HttpRoute, type ReferenceGrant } from '../../lib/api/gateway.ts';
import type { CFRoute, RouteDestination } from '../../lib/api/types.generated.ts';
import { buildReferenceGrant } from '../../templates/reference-grant.ts';
import { contains } from '../runtime/merge-patch.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';
import { keyOf } from '../runtime/store.ts';
import { mostBackends } from '../../templates/route-room.ts';
import { acceptedHalves, isHalf, ownerOf } from '../shared-routes.ts';
import { backendsOf, effectiveDestinations, type Backends } from './backends.ts';
import { isFollowed } from './programming.ts';
import { servicesByRoute } from './services.ts';

/** The Services of a namespace that the HTTPRoute names. */
export const namedIn = (live: Stored<HttpRoute> | undefined, namespace: string): string[] =>
  backendsIn(live)
    .filter((reference) => (reference.namespace ?? live?.metadata.namespace) === namespace)
    .map(({ name }) => name);

/**
 * Services of a route, or of a half, that the gateway may still lead to: those that the HTTPRoute names, and all of them until the gateway has loaded its
 * present form.
 */
export function servicesReached({ metadata, spec }: Stored<CFRoute>, stores: Stores): string[] {
  const { space, route } = spec.sharedFrom ?? { space: metadata.namespace, route: metadata.name };
  if (space === undefined || route === undefined) return [];
  const [live, owner] = [stores.of(httpRouteType).get(space, route), stores.of(kinds.route).get(space, route)];
  if (live === undefined || owner === undefined || isFollowed(owner, live)) return namedIn(live, metadata.namespace);
  return stores
    .of<Service>(serviceType)
    .by(servicesByRoute.name, keyOf({ metadata }))
    .map((service) => service.metadata.name);
}

/** Services of a half that the gateway may still lead to. They are removed later. A route that is no half has its own HTTPRoute, which goes first. */
export const servicesInUse = (route: Stored<CFRoute>, stores: Stores): string[] => (isHalf(route) ? servicesReached(route, stores) : []);

/** True when the gateway may be led to the Service: it is there, and so is the grant. */
function isReady(stores: Stores, namespace: string, service: string): boolean {
  const parts = [stores.of(serviceType).get(namespace, service), stores.of(referenceGrantType).get(namespace, service)];
  return parts.every((part) => part !== undefined && part.metadata.deletionTimestamp === undefined);
}

interface Half {
  half: Stored<CFRoute>;
  destinations: RouteDestination[];
}

/** The halves whose destinations fit beside those of the owner, and those that do not. Each destination needs one backend. */
function halvesWithRoom(route: Stored<CFRoute>, own: readonly RouteDestination[], stores: Stores): { fit: Half[]; left: Half[] } {
  let count = own.length;
  const [fit, left]: [Half[], Half[]] = [[], []];
  for (const half of acceptedHalves(route, stores)) {
    const destinations = effectiveDestinations(half, stores);
    if (count + destinations.length > mostBackends) left.push({ half, destinations });
    else {
      fit.push({ half, destinations });
      count += destinations.length;
    }
  }
  return { fit, left };
}

/** Why a route, or a half, has destinations that get no requests; undefined when all have room. */
export function lackOfRoom(route: Stored<CFRoute>, stores: Stores): string | undefined {
  const count = effectiveDestinations(route, stores).length;
  if (count > mostBackends)
    return `A route leads to at most ${mostBackends} apps: ${count - mostBackends} of its destinations get no requests.`;
  const owner = ownerOf(route, stores);
  if (owner === undefined) return undefined;
  const { left } = halvesWithRoom(owner, effectiveDestinations(owner, stores), stores);
  const isLeft = left.some(({ half }) => half.metadata.uid === route.metadata.uid);
  return isLeft ? `A route leads to at most ${mostBackends} apps of all spaces together, and these are more.` : undefined;
}

/**
 * The backends of a route and of all halves that share it. A half counts as taken over when all its Services are there: until then its processes
 * see no weights of theirs in the HTTPRoute. A half that does not fit in the HTTPRoute any more is left out.
 */
export function sharedBackends(route: Stored<CFRoute>, own: readonly RouteDestination[], stores: Stores): Backends {
  const { fit } = halvesWithRoom(route, own, stores);
  const count = fit.reduce((sum, { destinations }) => sum + destinations.length, own.length);
  const all = backendsOf(route, own, stores, count === 1);
  for (const { half, destinations } of fit) {
    const { namespace, uid, generation } = half.metadata;
    const theirs = backendsOf(half, destinations, stores, count === 1);
    const ready = theirs.backends.filter(({ service }) => isReady(stores, namespace, service));
    all.backends.push(...ready.map((backend) => ({ ...backend, namespace })));
    all.serves ||= theirs.serves;
    if (ready.length === theirs.backends.length) Object.assign(all.serving, theirs.serving, { [uid]: String(generation) });
  }
  return all;
}

/** Lets the owner's HTTPRoutes lead to these Services of the half, and to no others. */
export async function ensureGrants(context: Context, half: Stored<CFRoute>, services: readonly string[]): Promise<void> {
  const { namespace } = half.metadata;
  const from = half.spec.sharedFrom?.space ?? '';
  await Promise.all(
    services.map(async (name) => {
      const service = context.stores.of<Service>(serviceType).get(namespace, name);
      if (service === undefined) return;
      const wanted = buildReferenceGrant({ route: half, service, from });
      const live = context.stores.of<ReferenceGrant>(referenceGrantType).get(namespace, name);
      if (live === undefined) await context.cluster.create(referenceGrantType, wanted, { signal: context.signal });
      else if (!contains(live, { metadata: { labels: wanted.metadata.labels }, spec: wanted.spec })) {
        const metadata = { resourceVersion: live.metadata.resourceVersion, labels: wanted.metadata.labels };
        await context.cluster.mergePatch(referenceGrantType, namespace, name, { metadata, spec: wanted.spec }, { signal: context.signal });
      }
    }),
  );
}
