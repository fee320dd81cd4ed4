// Which objects belong to an app or a process: indexes that the reconcilers of apps, processes, workloads and routes share.

import type { Stored } from '../lib/api/object.ts';
import { desiredInstances } from '../lib/api/app.ts';
import { findCondition } from '../lib/api/conditions.ts';
import { namespaceType } from '../lib/api/core.ts';
import { httpRouteType, isRedirected } from '../lib/api/gateway.ts';
import { conditionTypes, kinds, reasons } from '../lib/api/group.ts';
import type {
  AppWorkload,
  CFApp,
  CFBuild,
  CFPackage,
  CFProcess,
  CFRoute,
  CFServiceBinding,
  CFSpace,
  Droplet,
  RouteDestination,
} from '../lib/api/types.generated.ts';
import { servingAnnotation } from '../templates/http-route.ts';
import { index, type Context, type Index, type Stores } from './runtime/reconciler.ts';
import { keyOf } from './runtime/store.ts';
import { isNamespaceOf } from './tenancy/ownership.ts';

/** The key of the object with that name in the namespace of another one; none without a name. */
export const inNamespace = (object: { metadata: { namespace?: string } }, name: string | undefined): string[] =>
  name === undefined || name === '' ? [] : [`${object.metadata.namespace ?? ''}/${name}`];

export const processesByApp: Index = index<CFProcess>(kinds.process, 'app', (process) => inNamespace(process, process.spec.appRef.name));
export const workloadsByProcess: Index = index<AppWorkload>(kinds.appWorkload, 'process', (workload) =>
  inNamespace(workload, workload.spec.GUID),
);
export const bindingsByApp: Index = index<CFServiceBinding>(kinds.serviceBinding, 'app', (binding) =>
  inNamespace(binding, binding.spec.appRef.name),
);
export const routesByApp: Index = index<CFRoute>(kinds.route, 'app', (route) => [
  ...new Set((route.spec.destinations ?? []).flatMap(({ appRef }) => inNamespace(route, appRef.name))),
]);
export const buildsByApp: Index = index<CFBuild>(kinds.build, 'app', (build) => inNamespace(build, build.spec.appRef.name));
export const packagesByApp: Index = index<CFPackage>(kinds.package, 'app', (owned) => inNamespace(owned, owned.spec.appRef.name));
export const appsByDroplet: Index = index<CFApp>(kinds.app, 'droplet', (app) => inNamespace(app, app.spec.currentDropletRef?.name));

export const appsBySpace: Index = index<CFApp>(kinds.app, 'space', ({ metadata }) =>
  metadata.namespace === undefined ? [] : [metadata.namespace],
);

const spacesByName: Index = index<CFSpace>(kinds.space, 'name', ({ metadata }) => (metadata.name === undefined ? [] : [metadata.name]));

export const appIndexes: readonly Index[] = [
  processesByApp,
  workloadsByProcess,
  bindingsByApp,
  routesByApp,
  buildsByApp,
  appsByDroplet,
  appsBySpace,
  spacesByName,
];

/** The space that a namespace belongs to. If several spaces have its name (the names of all but one are refused), only the owner counts. */
export function spaceOf(stores: Stores, guid: string): Stored<CFSpace> | undefined {
  const named = stores.of(kinds.space).by(spacesByName.name, guid);
  if (named.length < 2) return named[0];
  const namespace = stores.of(namespaceType).get(undefined, guid);
  return named.find((object) => namespace !== undefined && isNamespaceOf(namespace, { entity: 'space', object }));
}

/** False when another object holds the name; true also before the name is claimed for the first time. */
const mayHoldName = (object: CFRoute | CFServiceBinding): boolean => findCondition(object, conditionTypes.claimed)?.status !== 'False';

/**
 * Compares two objects: the older one comes first, and of two from the same second the one whose name comes first. A store returns the object that changed
 * last at the end, so without the names a change would give an environment another order, and pods would be replaced for nothing.
 */
export const byAge = (a: Stored, b: Stored): number =>
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '') || a.metadata.name.localeCompare(b.metadata.name);

/** Bindings to the app, oldest first, without those that are being deleted or whose name another one holds. */
export function bindingsOf(stores: Stores, app: Stored<CFApp>): Stored<CFServiceBinding>[] {
  return stores
    .of(kinds.serviceBinding)
    .by(bindingsByApp.name, keyOf(app))
    .filter((binding) => binding.metadata.deletionTimestamp === undefined && binding.spec.type === 'app')
    .filter(mayHoldName)
    .toSorted(byAge);
}

/** That a binding is not ready, and why. Most bindings have no name of their own, so people know them by the service instance. */
export function notReadyText(stores: Stores, binding: Stored<CFServiceBinding>): string {
  const { displayName = '', service } = binding.spec;
  const { name: guid = '' } = service;
  const instance = stores.of(kinds.serviceInstance).get(binding.metadata.namespace, guid)?.spec.displayName ?? guid;
  const own = displayName === '' ? '' : ` '${displayName}'`;
  const why = findCondition(binding, conditionTypes.ready)?.message ?? '';
  return `The app's binding${own} to service instance '${instance}' is not ready${why === '' ? '.' : `: ${why}`}`;
}

/** Keys of an app's processes. */
export function processKeys(appKey: string, stores: Stores): string[] {
  return stores.of(kinds.process).by(processesByApp.name, appKey).map(keyOf);
}

export interface MappedDestination {
  route: Stored<CFRoute>;
  destination: RouteDestination;
}

/** False for a route on an internal domain, which does not go through the gateway. */
const isPublic = ({ route: { metadata, spec } }: MappedDestination, stores: Stores): boolean =>
  stores.of(kinds.domain).get(spec.domainRef.namespace ?? metadata.namespace, spec.domainRef.name ?? '')?.spec.internal !== true;

/**
 * False for a half of a shared route whose destinations do not fit beside those of other spaces: they are not in the HTTPRoute, and an update that waited for
 * them there would wait for the other spaces.
 */
function hasRoom({ route }: MappedDestination, stores: Stores): boolean {
  const { sharedFrom } = route.spec;
  if (sharedFrom === undefined || findCondition(route, conditionTypes.ready)?.reason !== reasons.tooManyDestinations) return true;
  // The condition may be older than the HTTPRoute, which has the half again.
  const live = stores.of(httpRouteType).get(sharedFrom.space, sharedFrom.route);
  return live?.metadata.annotations?.[servingAnnotation(route.metadata.uid)] !== undefined;
}

/** Routes by which the gateway leads to a process; otherwise as {@link allRoutesTo}. */
export function routesTo(process: Stored<CFProcess>, stores: Stores): MappedDestination[] {
  return allRoutesTo(process, stores).filter((mapped) => isPublic(mapped, stores) && hasRoom(mapped, stores));
}

/** Routes to a process, oldest first, each with the destination that names the process; without those whose name another route holds. */
export function allRoutesTo(process: Stored<CFProcess>, stores: Stores): MappedDestination[] {
  const { namespace } = process.metadata;
  const app = process.spec.appRef.name;
  return stores
    .of(kinds.route)
    .by(routesByApp.name, `${namespace}/${app}`)
    .filter((route) => route.metadata.deletionTimestamp === undefined)
    .filter(mayHoldName)
    .toSorted(byAge)
    .flatMap((route) => {
      const destination = (route.spec.destinations ?? []).find(
        ({ appRef, processType }) => appRef.name === app && processType === process.spec.processType,
      );
      return destination === undefined ? [] : [{ route, destination }];
    });
}

/** The droplet of a build of the app. Builds of other apps are none of its droplets, also because they are deleted without it. */
export function dropletOf({ metadata }: Stored<CFApp>, build: string | undefined, stores: Stores): Droplet | undefined {
  const found = stores.of(kinds.build).get(metadata.namespace, build ?? '');
  return found?.spec.appRef.name === metadata.name ? found.status?.droplet : undefined;
}

/** The droplet of the app with that image: its current one, or an earlier one whose build is still there. */
export function dropletOfImage(app: Stored<CFApp>, image: string, stores: Stores): Droplet | undefined {
  const current = dropletOf(app, app.spec.currentDropletRef?.name, stores);
  const builds = stores.of(kinds.build).by(buildsByApp.name, keyOf(app));
  return [current, ...builds.map(({ status }) => status?.droplet)].find((droplet) => droplet?.registry.image === image);
}

/** A sentence if the build is one of another app. */
export function foreignBuild({ metadata }: Stored<CFApp>, build: string, stores: Stores): string | undefined {
  const found = stores.of(kinds.build).get(metadata.namespace, build);
  if (found === undefined || found.spec.appRef.name === metadata.name) return undefined;
  return `The build '${build}' belongs to another app; 'kf droplets' shows those of this one.`;
}

/** How many instances of a process are to run. */
export function wantedInstances(app: Stored<CFApp>, process: Stored<CFProcess>): number {
  return app.spec.desiredState === 'STARTED' ? desiredInstances(process) : 0;
}

/**
 * Where the gateway answers requests for a route from inside the cluster: with https if those with http are redirected.
 * @returns undefined when the controller cannot ask
 */
export function gatewayAddress(context: Context, route: Stored<CFRoute>): string | undefined {
  const { gateway } = context.info();
  const { namespace = route.metadata.namespace, name = '' } = route.spec.domainRef;
  const domain = context.stores.of(kinds.domain).get(namespace, name);
  const address = isRedirected(domain, gateway.https) ? gateway.https.internalAddress : gateway.internalAddress;
  return address === '' ? undefined : address;
}
