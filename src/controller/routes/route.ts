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
import { addressOf, appGuidsOf } from '../../lib/api/names.ts';
import type { AppWorkload, CFApp, CFBuild, CFDomain, CFProcess, CFRoute, RouteDestination } from '../../lib/api/types.generated.ts';
import { buildHttpRoute } from '../../templates/http-route.ts';
import { Remembered } from '../runtime/memory.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { contains } from '../runtime/merge-patch.ts';
import { WaitingError, type Result } from '../runtime/result.ts';
import { conditionsWith, notReady, readyStatement, writeMetadata, writeStatus, type Statement, type StatusOf } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { appIndexes, appsByDroplet, gatewayAddress, routesByApp, spaceOf } from '../relations.ts';
import { refusedClaim } from '../names/leases.ts';
import { markFeature, pathExpressionFeature } from '../rollout/traffic-probe.ts';
import { isFollowed, isNewlyMapped, Programming } from './programming.ts';
import { claimRoute, distrust, routesByHost } from './hosts.ts';
import { ensureSlices, isInternal, removeSlices, routeLookMs } from './internal.ts';
import { backendsOf, effectiveDestinations, type Backends } from './backends.ts';
import { present, type Present } from './presence.ts';
import { ensureServicesInRoom } from './room.ts';
import { removeServices, servicesByRoute, servicesOf } from './services.ts';
import { ensureGrants, lackOfRoom, servicesInUse, sharedBackends } from './shares.ts';
import { halvesByOwner, httpRouteOf, isHalf, lostHalves, withPartners } from '../shared-routes.ts';
import { instancesByProcess, watchInstances } from '../instances/pod-instances.ts';
import { defined } from '../../lib/defined.ts';

/** Routes of all spaces by the domain that they name. */
export const routesByDomain = index<CFRoute>(kinds.route, 'domain', (route) => [
  `${domainNamespace(route)}/${route.spec.domainRef.name ?? ''}`,
]);

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
/** Routes whose names, or whose shares of requests, depend on whether the instance is ready: internal ones, and those with several destinations. */
function routesOfInstance({ metadata }: Pick<KubeObject, 'metadata'>, stores: Context['stores']): string[] {
  const routes = stores.of(kinds.route).by(routesByApp.name, inOwn({ metadata }, metadata.labels?.[labels.appGuid]));
  const isOnInternal = (route: Stored<CFRoute>): boolean =>
    isInternal(stores.of(kinds.domain).get(domainNamespace(route), route.spec.domainRef.name ?? ''));
  return routes.flatMap((route) => {
    const keys = withPartners(route, stores);
    const hasOthers = keys.length > 1 || (route.spec.destinations ?? []).length > 1;
    return hasOthers || isOnInternal(route) ? keys : [];
  });
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
    watchInstances(routesOfInstance),
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
    const { changesInMs, entering, awaited, ...status } = isHalf(route)
      ? await ensureHalf(context, route, domain)
      : await ensureParts(context, route, domain);
    const { statement, requeueAfterMs } = context.memory.of(programming).look(context, route, entering);
    // Whoever maps an app waits until it gets requests, also an app that was started a moment ago.
    const isEntering = awaited?.has(route.metadata.uid) === true && isNewlyMapped(route) && statement?.status === 'True';
    const [ready, programmed] = withRoom(context, route, isEntering ? undefined : statement);
    await write(context, route, status, claim.claimed, ready, ...(programmed === undefined ? [] : [programmed]));
    const next = Math.min(requeueAfterMs ?? Infinity, changesInMs ?? Infinity);
    return Number.isFinite(next) ? { requeueAfterMs: next } : undefined;
  } catch (error) {
    await write(context, route, { ...route.status }, claim.claimed, notReady(error), ...programmedBefore(context, route));
    throw error;
  }
}

/**
 * Programmed of a route whose change is refused: the gateway may load the form before the change only now, and Services that this form does not name make
 * room then. The generation stays that of the condition before, because the gateway has not loaded the present one.
 */
function programmedBefore(context: Context, route: Stored<CFRoute>): Statement[] {
  const live = httpRouteOf(route, context.stores);
  if (isHalf(route) || live === undefined || isFollowed(route, live)) return [];
  const { statement } = context.memory.of(programming).look(context, route);
  const observedGeneration = findCondition(route, conditionTypes.programmed)?.observedGeneration ?? 0;
  return statement === undefined ? [] : [{ ...statement, observedGeneration }];
}

/** Ready and Programmed of a route, some of whose destinations may have no room in the HTTPRoute. */
function withRoom(context: Context, route: Stored<CFRoute>, programmed: Statement | undefined): [Statement, Statement | undefined] {
  const message = lackOfRoom(route, context.stores);
  if (message === undefined) return [readyStatement, programmed];
  const lacking: Statement = { type: conditionTypes.ready, status: 'False', reason: reasons.tooManyDestinations, message };
  // Of a half nothing is in the HTTPRoute, and it would wait for that.
  return [lacking, isHalf(route) ? { ...lacking, type: conditionTypes.programmed } : programmed];
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
  return { requeueAfterMs: routeLookMs };
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

/** What of a route's parts changes by itself (see {@link present}). */
type Changes = Partial<Pick<Present, 'changesInMs' | 'entering' | 'awaited'>>;

async function ensureParts(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): Promise<StatusOf<CFRoute> & Changes> {
  const { fqdn, uri } = addressOf(route, domain);
  const destinations = effectiveDestinations(route, context.stores);
  const live = httpRouteOf(route, context.stores);
  const answered = gatewayAddress(context, route) === undefined ? undefined : context.memory.of(programming).answeredOf(route);
  const all = sharedBackends(route, destinations, context.stores);
  const { changesInMs, entering, awaited, ...backends } = present(context, all, live, answered);
  await ensureServicesInRoom(context, route, backends);
  const isPresent = await ensureHttpRoute(context, route, fqdn, backends, sectionsOf(context, domain));
  if (isPresent && live !== undefined && isFollowed(route, live))
    await removeServices(context, keyOf(route), new Set(servicesOf(backends)));
  return { ...route.status, fqdn, uri, destinations: destinations.map(withDefaults), entering, awaited, ...defined({ changesInMs }) };
}

/** A half has no HTTPRoute: the owner's leads to its Services, as soon as they and their grants are there. */
async function ensureHalf(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): Promise<StatusOf<CFRoute> & Changes> {
  const destinations = effectiveDestinations(route, context.stores);
  const backends = backendsOf(route, destinations, context.stores);
  await ensureServicesInRoom(context, route, backends);
  await ensureGrants(context, route, servicesOf(backends));
  await removeServices(context, keyOf(route), new Set([...servicesOf(backends), ...servicesInUse(route, context.stores)]));
  return { ...route.status, ...addressOf(route, domain), destinations: destinations.map(withDefaults) };
}

function withDefaults({ port, ...destination }: RouteDestination): RouteDestination {
  return { ...destination, protocol: destination.protocol ?? 'http1', ...defined({ port }) };
}

/** The listeners for https alone, if another route redirects requests with http. */
function sectionsOf(context: Context, domain: Stored<CFDomain>): string[] | undefined {
  const { https } = context.info().gateway;
  return isRedirected(domain, https) ? httpsListenersOf(domain, https) : undefined;
}

/** @returns true when the HTTPRoute has been so before */
async function ensureHttpRoute(
  context: Context,
  route: Stored<CFRoute>,
  fqdn: string,
  { backends, serving, serves }: Backends,
  sections: readonly string[] | undefined,
): Promise<boolean> {
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
    return false;
  }
  const { annotations: marks = {}, labels: marked, ownerReferences } = wanted.metadata;
  const stale = Object.keys(live.metadata.annotations ?? {}).filter((key) => key.startsWith('serving.kf.') && !(key in marks));
  if (stale.length === 0 && contains(live, { metadata: { annotations: marks, labels: marked }, spec: wanted.spec })) return true;
  const removed = Object.fromEntries(stale.map((key) => [key, null]));
  const metadata = {
    resourceVersion: live.metadata.resourceVersion,
    annotations: { ...marks, ...removed },
    labels: marked,
    ownerReferences,
  };
  await context.cluster.mergePatch(httpRouteType, namespace, name, { metadata, spec: wanted.spec }, { signal: context.signal });
  return false;
}

async function removeAll(context: Context, routeKey: string): Promise<void> {
  const { ns, name } = splitKey(routeKey);
  const uid = context.stores.of(httpRouteType).get(ns, name)?.metadata.uid;
  if (uid !== undefined) await context.cluster.delete(httpRouteType, ns, name, { uid, signal: context.signal });
  const route = context.stores.of(kinds.route).get(ns, name);
  await removeServices(context, routeKey, new Set(route === undefined ? [] : servicesInUse(route, context.stores)));
  await removeSlices(context, { namespace: ns, name });
}
