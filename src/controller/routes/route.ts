// Reconciles CFRoute, an address that leads to processes: one Service per destination and live generation, and one HTTPRoute for them.

import type { KubeObject, Stored } from '../../lib/api/object.ts';
import { findCondition, removeCondition } from '../../lib/api/conditions.ts';
import { configMapType, namespaceType, serviceType, type Service } from '../../lib/api/core.ts';
import {
  httpRouteType,
  httpsListenersOf,
  isRedirected,
  referenceGrantType,
  type HttpRoute,
  type ReferenceGrant,
} from '../../lib/api/gateway.ts';
import { annotations, conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import { isPrivate, isUsableBy } from '../../lib/api/domains.ts';
import { addressOf, appGuidsOf, serviceName } from '../../lib/api/names.ts';
import type { AppWorkload, CFApp, CFBuild, CFDomain, CFProcess, CFRoute, RouteDestination } from '../../lib/api/types.generated.ts';
import { buildDestinationService } from '../../templates/destination-service.ts';
import { buildHttpRoute } from '../../templates/http-route.ts';
import { Remembered } from '../runtime/memory.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { contains } from '../runtime/merge-patch.ts';
import { TerminalError, WaitingError, type Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeMetadata, writeStatus, type Statement, type StatusOf } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { appIndexes, appsByDroplet, routesByApp, spaceOf } from '../relations.ts';
import { refusedClaim } from '../names/leases.ts';
import { markFeature, pathExpressionFeature } from '../rollout/traffic-probe.ts';
import { Programming } from './programming.ts';
import { claimRoute, distrust, routesByHost } from './hosts.ts';
import { ensureSlices, isInternal, removeSlices, sliceTrustMs } from './internal.ts';
import { backendsOf, effectiveDestinations, type Backends } from './backends.ts';
import { ensureGrants, servicesInUse, sharedBackends } from './shares.ts';
import { halvesByOwner, isHalf, lostHalves, withPartners } from '../shared-routes.ts';
import { instancesByProcess, watchInstances } from '../instances/pod-instances.ts';
import { defined } from '../../lib/defined.ts';

const servicesByRoute = index<Service>(serviceType, 'route', (service) => {
  const guid = service.metadata.labels?.[labels.routeGuid];
  return guid === undefined ? [] : [`${service.metadata.namespace}/${guid}`];
});
const routesByDomain = index<CFRoute>(kinds.route, 'domain', (route) => [`${domainNamespace(route)}/${route.spec.domainRef.name ?? ''}`]);

function domainNamespace(route: Stored<CFRoute>): string {
  return route.spec.domainRef.namespace ?? route.metadata.namespace;
}

/**
 * The route's domain, or why there is none. Domains are in the root namespace; a reference to another namespace is refused without a look
 * at it.
 */
async function domainOf(context: Context, route: Stored<CFRoute>): Promise<Stored<CFDomain> | { refusal: string }> {
  const { name = '' } = route.spec.domainRef;
  const { root } = context.info();
  if (domainNamespace(route) !== root) return { refusal: `Domains are in the namespace '${root}', not in '${domainNamespace(route)}'.` };
  const domain = context.stores.of(kinds.domain).get(root, name);
  if (domain === undefined) {
    // The cache alone does not prove that the domain is missing: the domain may be newer than the cache.
    if ((await context.cluster.get(kinds.domain, root, name, context.signal)) === undefined)
      return { refusal: `The domain '${name}' does not exist.` };
    throw new WaitingError(reasons.invalidDomainRef, `The domain '${name}' is not known here yet.`, 200);
  }
  const ready = findCondition(domain, conditionTypes.ready);
  if (ready?.status === 'False') return { refusal: `The domain '${domain.spec.name}' is not to be used: ${ready.message}` };
  return isPrivate(domain) ? ofOrg(context, route, domain) : domain;
}

/** A domain of an org, if the route's space is in this org or in one that the domain is shared with (docs/decisions/0079). */
function ofOrg(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): Stored<CFDomain> | { refusal: string } {
  const space = spaceOf(context.stores, route.metadata.namespace);
  if (space === undefined)
    throw new WaitingError(reasons.invalidDomainRef, `The org of space '${route.metadata.namespace}' is not known here yet.`, 200);
  if (isUsableBy(domain, space.metadata.namespace)) return domain;
  return { refusal: `The domain '${domain.spec.name}' is private, and not to be used by this org: an operator shares it with the org.` };
}

const programming = new Remembered(() => new Programming());
/** Routes to an app, and those that share their address. */
const routeKeys = (appKey: string, stores: Context['stores']): string[] =>
  stores
    .of(kinds.route)
    .by(routesByApp.name, appKey)
    .flatMap((route) => withPartners(route, stores));
const inOwn = (object: { metadata: { namespace?: string } }, name: string | undefined): string =>
  `${object.metadata.namespace ?? ''}/${name ?? ''}`;
/** Routes on internal domains whose names lead to the pod. */
function internalRoutesTo({ metadata }: Pick<KubeObject, 'metadata'>, stores: Context['stores']): string[] {
  const routes = stores.of(kinds.route).by(routesByApp.name, inOwn({ metadata }, metadata.labels?.[labels.appGuid]));
  const isOnInternal = (route: Stored<CFRoute>): boolean =>
    isInternal(stores.of(kinds.domain).get(domainNamespace(route), route.spec.domainRef.name ?? ''));
  return routes.filter(isOnInternal).map(keyOf);
}
/** The route that has made a part, and those that share its address. */
const labelled = (object: Stored<Service> | Stored<HttpRoute> | Stored<ReferenceGrant>, stores: Context['stores']): string[] => {
  const guid = object.metadata.labels?.[labels.routeGuid];
  if (guid === undefined) return [];
  const route = stores.of(kinds.route).get(object.metadata.namespace, guid);
  return route === undefined ? [inOwn(object, guid)] : withPartners(route, stores);
};

export const routeReconciler: Reconciler = {
  name: 'route',
  reads: [kinds.space, namespaceType],
  workers: 8,
  watches: [
    watch<CFRoute>(kinds.route, withPartners),
    watch<CFApp>(kinds.app, (app, stores) => routeKeys(keyOf(app), stores)),
    watch<CFProcess>(kinds.process, (process, stores) => routeKeys(inOwn(process, process.spec.appRef.name), stores)),
    watch<AppWorkload>(kinds.appWorkload, (workload, stores) => routeKeys(inOwn(workload, workload.spec.appGUID), stores)),
    watch<CFBuild>(kinds.build, (build, stores) =>
      stores
        .of(kinds.app)
        .by(appsByDroplet.name, keyOf(build))
        .flatMap((app) => routeKeys(keyOf(app), stores)),
    ),
    watch<CFDomain>(kinds.domain, (domain, stores) => stores.of(kinds.route).by(routesByDomain.name, keyOf(domain)).map(keyOf)),
    watchInstances(internalRoutesTo),
    watch(serviceType, labelled),
    watch(httpRouteType, labelled),
    watch(referenceGrantType, labelled),
    // The installation's settings: the gateway that they name is the parent of every route.
    watch(configMapType, (_info, stores) => stores.of(kinds.route).list().map(keyOf)),
  ],
  indexes: [...appIndexes, instancesByProcess, servicesByRoute, routesByDomain, routesByHost, halvesByOwner],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.route).get(ns, name);
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) {
      // Removes the parts now. If that waited for the garbage collector or for a finalizer, which the route's owner may set, the host would
      // not be free for the next space.
      await removeAll(context, key);
      return undefined;
    }
    const route = await writeMetadata(context, kinds.route, live, { annotations: { [annotations.appGuids]: appGuidsOf(live) } });
    return reconcileRoute(context, route);
  },
};

async function reconcileRoute(context: Context, live: Stored<CFRoute>): Promise<Result | undefined> {
  const route = await withoutVanishedApps(context, live);
  const domain = await domainOf(context, route);
  const claim = 'refusal' in domain ? refusedClaim(reasons.invalidDomainRef, domain.refusal) : await claimRoute(context, route, domain);
  if ('refusal' in domain || claim.notReady !== undefined) {
    if ('refusal' in domain) distrust(context, route);
    await removeAll(context, keyOf(route));
    // The route leads nowhere now, so its address, its destinations and its Programmed condition are no longer true.
    const conditions = conditionsWith(route, claim.claimed, claim.notReady ?? readyStatement);
    await writeStatus(context, kinds.route, route, { conditions: removeCondition(conditions, conditionTypes.programmed) });
    return undefined;
  }
  try {
    if (isInternal(domain)) return await reconcileInternal(context, route, domain, claim.claimed);
    const status = isHalf(route) ? await ensureHalf(context, route, domain) : await ensureParts(context, route, domain);
    const { statement, requeueAfterMs } = context.memory.of(programming).look(context, route);
    await write(context, route, status, claim.claimed, readyStatement, ...(statement === undefined ? [] : [statement]));
    return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
  } catch (error) {
    await write(context, route, { ...route.status }, claim.claimed, notReady(error));
    throw error;
  }
}

async function reconcileInternal(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>, claimed: Statement): Promise<Result> {
  const destinations = effectiveDestinations(route, context.stores);
  await ensureSlices(context, route, destinations);
  // When the owner's route is programmed, a space that it is no longer shared with has no address behind the name.
  for (const { metadata } of lostHalves(route, context.stores)) await removeSlices(context, metadata);
  const status = { ...route.status, ...addressOf(route, domain), destinations: destinations.map(withDefaults) };
  const message = 'The name service of the cluster has the addresses of the ready instances.';
  const loaded: Statement = { type: conditionTypes.programmed, status: 'True', reason: reasons.loaded, message };
  await write(context, route, status, claimed, readyStatement, loaded);
  return { requeueAfterMs: sliceTrustMs };
}

async function write(context: Context, route: Stored<CFRoute>, status: StatusOf<CFRoute>, ...statements: Statement[]): Promise<void> {
  await writeStatus(context, kinds.route, route, { ...status, conditions: conditionsWith(route, ...statements) });
}

/** Removes destinations of apps that are gone. The cache alone does not prove that: an app may be newer than the cache. */
async function withoutVanishedApps(context: Context, route: Stored<CFRoute>): Promise<Stored<CFRoute>> {
  const { namespace, name, resourceVersion } = route.metadata;
  const destinations = route.spec.destinations ?? [];
  const unknown = [...new Set(destinations.map(({ appRef }) => appRef.name))].filter(
    (app) => context.stores.of(kinds.app).get(namespace, app) === undefined,
  );
  const gone = new Set<string>();
  for (const app of unknown) {
    if ((await context.cluster.get(kinds.app, namespace, app, context.signal)) === undefined) gone.add(app);
  }
  if (gone.size === 0) return route;
  const left = destinations.filter(({ appRef }) => !gone.has(appRef.name));
  const patched = await context.cluster.mergePatch(
    kinds.route,
    namespace,
    name,
    { metadata: { resourceVersion }, spec: { destinations: left } },
    { signal: context.signal },
  );
  return writeMetadata(context, kinds.route, patched, { annotations: { [annotations.appGuids]: appGuidsOf(patched) } });
}

async function ensureParts(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): Promise<StatusOf<CFRoute>> {
  const { fqdn, uri } = addressOf(route, domain);
  const destinations = effectiveDestinations(route, context.stores);
  const backends = sharedBackends(route, destinations, context.stores);
  await ensureServices(context, route, backends);
  await ensureHttpRoute(context, route, fqdn, backends, sectionsOf(context, domain));
  await removeServices(context, keyOf(route), new Set(servicesOf(backends)));
  return { ...route.status, fqdn, uri, destinations: destinations.map(withDefaults) };
}

const servicesOf = ({ services }: Backends): string[] =>
  services.map(({ destinationGuid, generation, protocol }) => serviceName(destinationGuid, generation, protocol));

/** A half has no HTTPRoute: the owner's leads to its Services, as soon as they and their grants are there. */
async function ensureHalf(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): Promise<StatusOf<CFRoute>> {
  const destinations = effectiveDestinations(route, context.stores);
  const backends = backendsOf(route, destinations, context.stores);
  await ensureServices(context, route, backends);
  await ensureGrants(context, route, servicesOf(backends));
  await removeServices(context, keyOf(route), new Set([...servicesOf(backends), ...servicesInUse(route, context.stores)]));
  return { ...route.status, ...addressOf(route, domain), destinations: destinations.map(withDefaults) };
}

function withDefaults({ port, ...destination }: RouteDestination): RouteDestination {
  return { ...destination, protocol: destination.protocol ?? 'http1', ...defined({ port }) };
}

async function ensureServices(context: Context, route: Stored<CFRoute>, { services }: Backends): Promise<void> {
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

/** The listeners for https alone, if another route redirects requests with http. */
function sectionsOf(context: Context, domain: Stored<CFDomain>): string[] | undefined {
  const { https } = context.info().gateway;
  return isRedirected(domain, https) ? httpsListenersOf(domain, https) : undefined;
}

async function ensureHttpRoute(
  context: Context,
  route: Stored<CFRoute>,
  fqdn: string,
  { backends, serving, serves }: Backends,
  sections: readonly string[] | undefined,
): Promise<void> {
  const { namespace, name } = route.metadata;
  const live = context.stores.of(httpRouteType).get(namespace, name);
  const { gateway } = context.info();
  const wanted = buildHttpRoute({
    route,
    fqdn,
    gateway,
    ...defined({ sections }),
    backends,
    serving,
    serves,
    marks: gateway.features.includes(markFeature),
    pathExpressions: gateway.features.includes(pathExpressionFeature),
    live,
  });
  if (live === undefined) {
    await context.cluster.create(httpRouteType, wanted, { signal: context.signal });
    return;
  }
  const { annotations: marks = {}, labels: marked, ownerReferences } = wanted.metadata;
  const stale = Object.keys(live.metadata.annotations ?? {}).filter((key) => key.startsWith('serving.kf.') && !(key in marks));
  if (stale.length === 0 && contains(live, { metadata: { annotations: marks, labels: marked }, spec: wanted.spec })) return;
  const removed = Object.fromEntries(stale.map((key) => [key, null]));
  const metadata = {
    resourceVersion: live.metadata.resourceVersion,
    annotations: { ...marks, ...removed },
    labels: marked,
    ownerReferences,
  };
  await context.cluster.mergePatch(httpRouteType, namespace, name, { metadata, spec: wanted.spec }, { signal: context.signal });
}

/** Removes Services that no backend names any more. The HTTPRoute has been updated before, so it does not refer to them. */
async function removeServices(context: Context, routeKey: string, kept: ReadonlySet<string>): Promise<void> {
  const orphans = context.stores
    .of(serviceType)
    .by(servicesByRoute.name, routeKey)
    .filter(({ metadata }) => !kept.has(metadata.name) && metadata.deletionTimestamp === undefined);
  for (const { metadata } of orphans)
    await context.cluster.delete(serviceType, metadata.namespace, metadata.name, { uid: metadata.uid, signal: context.signal });
}

async function removeAll(context: Context, routeKey: string): Promise<void> {
  const { ns, name } = splitKey(routeKey);
  const uid = context.stores.of(httpRouteType).get(ns, name)?.metadata.uid;
  if (uid !== undefined) await context.cluster.delete(httpRouteType, ns, name, { uid, signal: context.signal });
  const route = context.stores.of(kinds.route).get(ns, name);
  await removeServices(context, routeKey, new Set(route === undefined ? [] : servicesInUse(route, context.stores)));
  await removeSlices(context, { namespace: ns, name });
}
