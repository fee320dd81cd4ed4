// The Services of a route: one for each destination and live generation.

import type { Stored } from '../../lib/api/object.ts';
import { serviceType, type Service } from '../../lib/api/core.ts';
import { kinds, labels } from '../../lib/api/group.ts';
import { serviceName } from '../../lib/api/names.ts';
import type { CFRoute } from '../../lib/api/types.generated.ts';
import { buildDestinationService } from '../../templates/destination-service.ts';
import { contains } from '../runtime/merge-patch.ts';
import { index, type Context } from '../runtime/reconciler.ts';
import { TerminalError } from '../runtime/result.ts';
import type { Backends } from './backends.ts';

/** Services by the route that they were made for. */
export const servicesByRoute = index<Service>(serviceType, 'route', (service) => {
  const guid = service.metadata.labels?.[labels.routeGuid];
  return guid === undefined ? [] : [`${service.metadata.namespace}/${guid}`];
});

/** Names of the Services of these backends. */
export const servicesOf = ({ services }: Backends): string[] =>
  services.map(({ destinationGuid, generation, protocol }) => serviceName(destinationGuid, generation, protocol));

/** Makes the Services, and changes those that are not as they should be. */
export async function ensureServices(context: Context, route: Stored<CFRoute>, { services }: Backends): Promise<void> {
  const store = context.stores.of(serviceType);
  await Promise.all(
    services.map(async (input) => {
      const wanted = buildDestinationService({ route, ...input });
      const live = store.get(wanted.metadata.namespace, wanted.metadata.name ?? '');
      if (live === undefined) await context.cluster.create(serviceType, wanted, { signal: context.signal });
      else if (isOfOther(live, route, context)) {
        // Two routes with one destination GUID would take the Service from each other again and again.
        throw new TerminalError('CreatePatchServices', `The destination GUID '${input.destinationGuid}' is another route's.`);
      } else if (!contains(live, { metadata: { labels: wanted.metadata.labels }, spec: wanted.spec })) await reapply(context, live, wanted);
    }),
  );
}

function isOfOther(service: Stored<Service>, route: Stored<CFRoute>, context: Context): boolean {
  const owner = service.metadata.labels?.[labels.routeGuid];
  const { namespace, name } = route.metadata;
  return owner !== undefined && owner !== name && context.stores.of(kinds.route).get(namespace, owner) !== undefined;
}

async function reapply(context: Context, live: Stored<Service>, wanted: Service): Promise<void> {
  const { namespace, name, resourceVersion } = live.metadata;
  const patch = { metadata: { resourceVersion, labels: wanted.metadata.labels }, spec: wanted.spec };
  await context.cluster.mergePatch(serviceType, namespace, name, patch, { signal: context.signal });
}

/** Removes Services that no backend names any more. The gateway has loaded an HTTPRoute without them before, or the route is gone. */
export async function removeServices(context: Context, routeKey: string, kept: ReadonlySet<string>): Promise<void> {
  const orphans = context.stores
    .of(serviceType)
    .by(servicesByRoute.name, routeKey)
    .filter(({ metadata }) => !kept.has(metadata.name) && metadata.deletionTimestamp === undefined);
  for (const { metadata } of orphans)
    await context.cluster.delete(serviceType, metadata.namespace, metadata.name, { uid: metadata.uid, signal: context.signal });
}
