// Routes on an internal domain: the name leads to the instances themselves, and the gateway does not know it (docs/decisions/0063).

import type { Stored } from '../../lib/api/object.ts';
import { endpointSliceType, type EndpointSlice } from '../../lib/api/core.ts';
import { kinds, labels } from '../../lib/api/group.ts';
import type { CFDomain, CFRoute, RouteDestination } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { addressFamilies, buildSlice, internalNamespace, sliceName } from '../../templates/internal-domain.ts';
import { readyAddresses } from '../instances/pod-instances.ts';
import { processesByApp } from '../relations.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { contains } from '../runtime/merge-patch.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';

/** How often a route is looked at whose slices {@link known} may have lost. */
export const routeLookMs = 60_000;
/** How often the slices are compared with {@link known}: a slice that somebody deletes comes back after this time. */
export const slicesLookMs = 4_000;
/** How often slices of deleted routes are looked for while {@link known} has none. */
const sweepMs = 600_000;

interface Written {
  text: string;
  at: number;
}

/** The last content of each slice. */
const known = new Remembered(() => new BoundedMap<string, Written>(5_000));
/** The text of a slice that is not wanted. */
const none = 'null';

export const isInternal = (domain: CFDomain | undefined): boolean => domain?.spec.internal === true;

/** Addresses of the ready instances of a route's processes. */
function addressesOf(route: Stored<CFRoute>, stores: Stores): string[] {
  const { namespace } = route.metadata;
  return (route.spec.destinations ?? []).flatMap(({ appRef, processType }) =>
    stores
      .of(kinds.process)
      .by(processesByApp.name, `${namespace}/${appRef.name}`)
      .filter(({ spec }) => spec.processType === processType)
      .flatMap(({ metadata }) => readyAddresses(stores, namespace, metadata.name)),
  );
}

async function ensureSlice(context: Context, name: string, wanted: EndpointSlice | undefined): Promise<void> {
  const memory = context.memory.of(known);
  const text = wanted === undefined ? none : JSON.stringify(wanted);
  if (memory.get(name)?.text === text) return;
  memory.delete(name);
  const live = await context.cluster.get(endpointSliceType, internalNamespace, name, context.signal);
  await bring(context, name, wanted, live);
  memory.set(name, { text, at: context.now() });
}

async function bring(
  context: Context,
  name: string,
  wanted: EndpointSlice | undefined,
  live: Stored<EndpointSlice> | undefined,
): Promise<void> {
  if (wanted === undefined) {
    const uid = live?.metadata.uid;
    if (uid !== undefined) await context.cluster.delete(endpointSliceType, internalNamespace, name, { uid, signal: context.signal });
  } else if (live === undefined) await createSlice(context, wanted);
  else if (!contains(live, { metadata: { labels: wanted.metadata.labels }, endpoints: wanted.endpoints, ports: wanted.ports })) {
    const metadata = { resourceVersion: live.metadata.resourceVersion, labels: wanted.metadata.labels };
    const patch = { metadata, endpoints: wanted.endpoints, ports: wanted.ports };
    await context.cluster.mergePatch(endpointSliceType, internalNamespace, name, patch, { signal: context.signal });
  }
}

async function createSlice(context: Context, wanted: EndpointSlice): Promise<void> {
  await context.cluster.create(endpointSliceType, wanted, { signal: context.signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

/** Writes the addresses that the route's name leads to. */
export async function ensureSlices(context: Context, route: Stored<CFRoute>, destinations: readonly RouteDestination[]): Promise<void> {
  const content = { addresses: addressesOf(route, context.stores), port: destinations[0]?.port ?? 8080 };
  for (const family of addressFamilies) await ensureSlice(context, sliceName(route.metadata, family), buildSlice(route, family, content));
}

/** How long a list of the slices is used. A slice that was written since is in {@link known}. */
const listTrustMs = 2_000;
const listed = new Remembered(() => ({ at: -Infinity, names: Promise.resolve<ReadonlySet<string>>(new Set()) }));

/** The names of the slices. One list serves all routes of a space that is deleted. */
function sliceNames(context: Context): Promise<ReadonlySet<string>> {
  const last = context.memory.of(listed);
  if (context.now() - last.at < listTrustMs) return last.names;
  last.at = context.now();
  last.names = context.cluster
    .list(endpointSliceType, { ns: internalNamespace, signal: context.signal })
    .then(({ items }) => new Set(items.map(({ metadata }) => metadata.name)));
  last.names.catch(() => {
    last.at = -Infinity;
  });
  return last.names;
}

/** Removes them. Does nothing in an installation without an internal domain. */
export async function removeSlices(context: Context, route: { namespace: string; name: string }): Promise<void> {
  if (!context.stores.of(kinds.domain).list().some(isInternal)) return;
  for (const family of addressFamilies) {
    const name = sliceName(route, family);
    const isThere = context.memory.of(known).has(name) || (await sliceNames(context)).has(name);
    if (isThere) await ensureSlice(context, name, undefined);
  }
}

const looked = new Remembered(() => ({ at: -Infinity }));

/**
 * Restores the slices that somebody deleted or changed, and removes those of routes that were deleted while no controller ran. One list serves all
 * routes.
 */
export async function lookAfterSlices(context: Context): Promise<void> {
  const started = context.now();
  const last = context.memory.of(looked);
  const written = context.memory.of(known);
  if (![...written.values()].some(({ text }) => text !== none) && started - last.at < sweepMs) return;
  const { items } = await context.cluster.list(endpointSliceType, { ns: internalNamespace, signal: context.signal });
  last.at = started;
  const live = new Map(items.map((slice) => [slice.metadata.name, slice]));
  for (const [name, entry] of [...written]) {
    // The list may not have what was written since, or is being written.
    if (entry.at >= started || written.get(name) !== entry) continue;
    await bring(context, name, entry.text === none ? undefined : (JSON.parse(entry.text) as EndpointSlice), live.get(name));
  }
  await sweep(context, items);
}

async function sweep(context: Context, slices: readonly Stored<EndpointSlice>[]): Promise<void> {
  for (const { metadata } of slices) {
    const { [labels.spaceGuid]: ns, [labels.routeGuid]: name, [labels.managedBy]: manager } = metadata.labels ?? {};
    if (manager !== 'kf' || ns === undefined || name === undefined) continue;
    if (context.stores.of(kinds.route).get(ns, name) !== undefined) continue;
    if ((await context.cluster.get(kinds.route, ns, name, context.signal)) !== undefined) continue;
    await context.cluster.delete(endpointSliceType, internalNamespace, metadata.name, { uid: metadata.uid, signal: context.signal });
  }
}
