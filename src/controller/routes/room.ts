// Makes the Services of a route in a space whose quota may have no place for one more: those that nothing leads to any more make room.

import { causeOfRefusal } from '../../lib/api/causes.ts';
import { serviceType } from '../../lib/api/core.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFRoute } from '../../lib/api/types.generated.ts';
import type { Context } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { keyOf } from '../runtime/store.ts';
import { httpRouteOf } from '../shared-routes.ts';
import type { Backends } from './backends.ts';
import { ensureServices, removeServices, servicesByRoute, servicesOf } from './services.ts';
import { namedIn, servicesReached } from './shares.ts';

/** How soon a Service that a quota refuses is tried again while the route has Services that will make room for it. */
const roomLookMs = 2_000;

/**
 * Makes the Services, and changes those that are not as they should be. If a quota refuses one, the route's unused Services are removed: at once, or when the
 * gateway has loaded the HTTPRoute that does not name them.
 * @throws WaitingError while the route has unused Services that take the place of a refused one
 */
export async function ensureServicesInRoom(context: Context, route: Stored<CFRoute>, backends: Backends): Promise<void> {
  const { stores } = context;
  try {
    await ensureServices(context, route, backends);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const wanted = servicesOf(backends);
    const named = new Set([...wanted, ...namedIn(httpRouteOf(route, stores), route.metadata.namespace)]);
    const own = stores.of(serviceType).by(servicesByRoute.name, keyOf(route));
    if (causeOfRefusal(message) !== 'quota' || own.every(({ metadata }) => named.has(metadata.name))) throw error;
    await removeServices(context, keyOf(route), new Set([...wanted, ...servicesReached(route, stores)]));
    // The reason of other refusals: one of its own would change when the last unused Service is gone.
    throw new WaitingError('Unknown', message, roomLookMs);
  }
}
