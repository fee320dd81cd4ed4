// Frees names whose owner is gone and that the garbage collector cannot free: those of routes, and Leases of other installations.

import type { Stored } from '../../lib/api/object.ts';
import { leaseType, namespaceType } from '../../lib/api/core.ts';
import type { Lease } from '../../lib/api/core.ts';
import { annotations, kinds, labels } from '../../lib/api/group.ts';
import type { CFOrg, CFRoute } from '../../lib/api/types.generated.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import { routeHostEntity } from '../../lib/api/names.ts';
import { splitKey } from '../runtime/store.ts';
import { claimedKinds, currentClaim, freeLease, leaseOwner } from '../names/leases.ts';
import { hostsOfSpace } from './hosts.ts';

const sweepMs = 10 * 60_000;

/** Keys are `/namespace`: one sweep per namespace that can hold Leases. */
export const claimsReconciler: Reconciler = {
  name: 'claims',
  workers: 1,
  watches: [
    watch<CFOrg>(kinds.org, (org) => [`/${org.metadata.namespace}`]),
    watch(namespaceType, (namespace) => [`/${namespace.metadata.name}`]),
    // Only when the route is gone; any other change of a route costs no request.
    watch<CFRoute>(kinds.route, (route, stores) => {
      const isThere = stores.of(kinds.route).get(route.metadata.namespace, route.metadata.name) !== undefined;
      return isThere ? [] : [`/${route.spec.domainRef.namespace ?? ''}`];
    }),
  ],
  reads: [...Object.values(claimedKinds), kinds.domain],
  reconcile: async (key, context) => {
    const ns = splitKey(key).name;
    const namespace = context.stores.of(namespaceType).get(undefined, ns);
    if (namespace?.metadata.deletionTimestamp !== undefined) return undefined;
    const isRoot = context.stores.of(kinds.org).list(ns).length > 0;
    if (namespace === undefined && !isRoot) return undefined;
    // Namespaces of the installation itself hold no names, and the controller has no rights there.
    if (!isRoot && namespace?.metadata.labels?.[labels.partOf] !== undefined && ns !== context.info().root) return undefined;
    const { items } = await context.cluster.list(leaseType, { ns, signal: context.signal });
    const hosts = hostsInUse(context);
    for (const lease of items)
      if ((await isFree(context, lease)) || (await isFreeHost(context, lease, hosts))) await freeLease(context, lease);
    return { requeueAfterMs: sweepMs };
  },
};

async function isFree(context: Context, lease: Stored<Lease>): Promise<boolean> {
  const { type, namespace, name } = leaseOwner(lease);
  if (type === undefined || lease.metadata.annotations?.[annotations.leaseName] === undefined || name === '') return false;
  if (context.stores.of(type).get(namespace, name) !== undefined) return false;
  // The cache may be behind, so only an answer of the API server frees a name.
  const owner = await context.cluster.get(type, namespace, name, context.signal);
  return owner === undefined || (currentClaim(type, owner)?.leaseName ?? lease.metadata.name) !== lease.metadata.name;
}

type HostsInUse = (space: string) => Promise<ReadonlySet<string>>;

/**
 * The hosts that a space uses, for one sweep. A space that is being deleted gets no new routes, so it is asked once: with 1,000 routes it would be asked
 * 1,000 times for all of them.
 */
function hostsInUse(context: Context): HostsInUse {
  const leaving = new Map<string, ReadonlySet<string>>();
  return async (space) => {
    const known = leaving.get(space);
    if (known !== undefined) return known;
    const namespace = context.stores.of(namespaceType).get(undefined, space);
    const hosts = await hostsOfSpace(context, space);
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) leaving.set(space, hosts);
    return hosts;
  };
}

/** True for a host that no route of its space uses any more. */
async function isFreeHost(context: Context, lease: Stored<Lease>, hosts: HostsInUse): Promise<boolean> {
  const notes = lease.metadata.annotations ?? {};
  if (notes[annotations.leaseEntityType] !== routeHostEntity) return false;
  const { namespace, name } = leaseOwner(lease);
  if (context.stores.of(kinds.route).get(namespace, name) !== undefined) return false;
  return !(await hosts(namespace)).has(notes[annotations.leaseName] ?? '');
}
