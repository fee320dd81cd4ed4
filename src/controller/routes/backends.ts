// Computes the backends of a route: its effective destinations, the live generations of each, and their shares. Reads only the caches.

import type { Stored } from '../../lib/api/object.ts';
import { kinds } from '../../lib/api/group.ts';
import { serviceName } from '../../lib/api/names.ts';
import type { AppWorkload, CFApp, CFRoute, RouteDestination } from '../../lib/api/types.generated.ts';
import type { DestinationServiceInput } from '../../templates/destination-service.ts';
import type { RouteBackend } from '../../templates/route-room.ts';
import { generationOf } from '../../templates/stateful-set.ts';
import { defaultPort } from '../../templates/pod-env.ts';
import type { Stores } from '../runtime/reconciler.ts';
import { dropletOf, dropletOfImage, processesByApp, wantedInstances, workloadsByProcess } from '../relations.ts';
import { parseWeights } from '../rollout/planner.ts';
import { readyGenerations } from '../instances/pod-instances.ts';
import { defined } from '../../lib/defined.ts';

/** The shares of each destination are scaled to this sum, so that every destination gets the same part whatever its number of instances. */
const wholeShare = 1_000;

export interface DestinationBackend extends RouteBackend {
  /** `uid` of the process. */
  process: string;
  /** `uid` of the route, or of the half of a shared route, that has the destination. */
  route: string;
  /** Since when an instance has been ready, in milliseconds. */
  readySince?: number;
}

export interface Backends {
  backends: DestinationBackend[];
  services: Omit<DestinationServiceInput, 'route'>[];
  /** `status.serving` of each process, by its `uid`. */
  serving: Record<string, string>;
  /** Some process behind the route wants instances. Without one, the route must not answer. */
  serves: boolean;
}

const mostPort = 65_535;

/**
 * Destinations with port and protocol filled in; an app without a droplet is left out, unless the port is given. So is a destination with a port that does
 * not exist, which the schema of earlier releases allowed: an HTTPRoute with it would be refused, with the destinations of all other spaces.
 */
export function effectiveDestinations(route: Stored<CFRoute>, stores: Stores): RouteDestination[] {
  const { namespace } = route.metadata;
  return (route.spec.destinations ?? []).flatMap((destination) => {
    const app = stores.of(kinds.app).get(namespace, destination.appRef.name);
    if (app === undefined) return [];
    const droplet = dropletOf(app, app.spec.currentDropletRef?.name, stores);
    // A running version stays reachable without the build that it came from.
    const ports = droplet === undefined ? runningPorts(destination, namespace, stores) : (droplet.ports ?? []);
    if (ports === undefined) return [];
    const port = destination.port ?? ports[0] ?? defaultPort;
    return port < 1 || port > mostPort ? [] : [{ ...destination, protocol: destination.protocol ?? 'http1', port }];
  });
}

/** Ports of the running version behind a destination; undefined when none runs. */
function runningPorts({ appRef, processType }: RouteDestination, ns: string, stores: Stores): readonly number[] | undefined {
  return stores
    .of(kinds.process)
    .by(processesByApp.name, `${ns}/${appRef.name}`)
    .filter(({ spec }) => spec.processType === processType)
    .flatMap(({ metadata }) => stores.of(kinds.appWorkload).by(workloadsByProcess.name, `${ns}/${metadata.name}`))
    .find(({ spec, metadata }) => spec.instances > 0 && metadata.deletionTimestamp === undefined)?.spec.ports;
}

/**
 * Where a version listens for a destination without a port: on the first port of its own droplet. The app's droplet can be a newer one, with another port.
 * @param port the one of the app's droplet
 */
function ownPort(app: Stored<CFApp>, { spec: { image, ports = [] } }: Stored<AppWorkload>, port: number, stores: Stores): number {
  const own = dropletOfImage(app, image, stores);
  if (own !== undefined) return own.ports?.[0] ?? defaultPort;
  // Its build was deleted. Its ports are those of all routes, so the first one can belong to another.
  return ports.includes(port) ? port : (ports[0] ?? port);
}

function sharesOf(workloads: readonly Stored<AppWorkload>[], serving: string, isOnly: boolean): Map<string, number> {
  const weights = parseWeights(serving);
  const known = workloads.map((workload) => generationOf(workload));
  // Until the process reconciler has written weights, every generation gets requests.
  const raw = new Map(known.map((hash) => [hash, serving === '' ? 1 : (weights[hash] ?? 0)]));
  if (isOnly) return raw;
  const total = [...raw.values()].reduce((sum, weight) => sum + weight, 0);
  return new Map([...raw].map(([hash, weight]) => [hash, total === 0 ? 0 : Math.round((wholeShare * weight) / total)]));
}

/** @param isOnly no other destination of the address gets requests, so the numbers of instances need no common scale */
export function backendsOf(
  route: Stored<CFRoute>,
  destinations: readonly RouteDestination[],
  stores: Stores,
  isOnly = destinations.length === 1,
): Backends {
  const { namespace } = route.metadata;
  const result: Backends = { backends: [], services: [], serving: {}, serves: false };
  const withPort = new Set((route.spec.destinations ?? []).flatMap(({ guid, port }) => (port === undefined ? [] : [guid])));
  for (const destination of destinations) {
    const appGuid = destination.appRef.name;
    const found = stores
      .of(kinds.process)
      .by(processesByApp.name, `${namespace}/${appGuid}`)
      .find(({ spec }) => spec.processType === destination.processType);
    if (found === undefined) continue;
    const { name: processGuid, uid: process } = found.metadata;
    const text = found.status?.serving ?? '';
    const workloads = stores
      .of(kinds.appWorkload)
      .by(workloadsByProcess.name, `${namespace}/${processGuid}`)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted((a, b) => (generationOf(a) < generationOf(b) ? -1 : 1));
    if (workloads.length > 0) result.serving[process] = text;
    const { port: usual = defaultPort, protocol = 'http1' } = destination;
    const app = stores.of(kinds.app).get(namespace, appGuid);
    const isGiven = app === undefined || withPort.has(destination.guid);
    const ports = new Map(workloads.map((one) => [generationOf(one), isGiven ? usual : ownPort(app, one, usual, stores)]));
    const isWanted = app !== undefined && wantedInstances(app, found) > 0;
    if (isWanted) result.serves = true;
    const ready = readyGenerations(stores, namespace, processGuid);
    for (const [generation, share] of sharesOf(workloads, text, isOnly)) {
      // A stopped app gets no share of the requests.
      const weight = isWanted ? share : 0;
      const readySince = ready.get(generation);
      const service = serviceName(destination.guid, generation, protocol);
      const port = ports.get(generation) ?? usual;
      const part = {
        service,
        port,
        destination: destination.guid,
        generation,
        weight,
        process,
        route: route.metadata.uid,
        isReady: readySince !== undefined,
      };
      result.backends.push({ ...part, ...defined({ readySince }) });
      result.services.push({ destinationGuid: destination.guid, appGuid, processGuid, generation, port, protocol });
    }
  }
  return result;
}
