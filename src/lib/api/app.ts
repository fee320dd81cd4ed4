// Rules over CFApp, CFProcess and CFRoute: what an app's objects mean, free of any layout.

import type { Stored } from './object.ts';
import { annotations } from './group.ts';
import type { CFApp, CFProcess, CFRoute, Droplet, InstanceCounts, InstanceStatus } from './types.generated.ts';

export const webProcess = 'web';

/** Defaults that the contract gives by admission (4.6); ours are given by CLI and controller. */
export const processDefaults = {
  healthCheckTimeoutSeconds: 60,
  instances: (processType: string): number => (processType === webProcess ? 1 : 0),
  healthCheckType: (processType: string): 'port' | 'process' => (processType === webProcess ? 'port' : 'process'),
} as const;

/** Addresses (host.domain/path) of an app, oldest route first; a route that is not reconciled yet has none. */
export function addressesOf(app: CFApp, routes: readonly Stored<CFRoute>[]): string[] {
  return routesOf(app, routes).flatMap((route) => route.status?.uri ?? []);
}

/** Routes with a destination of the app, oldest first. */
export function routesOf<R extends Stored<CFRoute>>(app: CFApp, routes: readonly R[]): R[] {
  return routes
    .filter((route) => (route.spec.destinations ?? []).some((destination) => destination.appRef.name === app.metadata.name))
    .toSorted((a, b) => created(a) - created(b) || compare(a.metadata.name, b.metadata.name));
}

/** Processes of an app, web first, then by type. */
export function processesOf<P extends CFProcess>(app: CFApp, processes: readonly P[]): P[] {
  const rank = (process: CFProcess) => (process.spec.processType === webProcess ? 0 : 1);
  return processes
    .filter((process) => process.spec.appRef.name === app.metadata.name)
    .toSorted((a, b) => rank(a) - rank(b) || compare(a.spec.processType, b.spec.processType));
}

export function effectiveCommand(process: CFProcess): string | undefined {
  return nonEmpty(process.spec.command) ?? nonEmpty(process.spec.detectedCommand);
}

/** The droplet names processes, and `web` is none of them. One that names none runs by its image's own entry point. */
export function lacksWeb({ processTypes = [] }: Pick<Droplet, 'processTypes'>): boolean {
  return processTypes.length > 0 && !processTypes.some(({ type }) => type === webProcess);
}

export function desiredInstances(process: CFProcess): number {
  return process.spec.desiredInstances ?? processDefaults.instances(process.spec.processType);
}

/** Bounds that keep an app's objects small, whatever its users ask for; the schemas in tools/crds say the same. */
export const instanceLimits = {
  /** Instances of one process. */
  most: 1000,
  /** Of these, how many are described one by one in a status. */
  listed: 100,
  /** Characters of an instance's `details`. */
  detailCharacters: 500,
} as const;

/** Seconds that an instance may take to start: a day. Cloud Foundry allows 180 where its operator has not raised it. */
export const mostStartSeconds = 86_400;

/** How many instances of a process are in which state, those that its status does not list included. */
export function instanceCountsOf({ status }: CFProcess): InstanceCounts {
  return status?.instanceCounts ?? countInstances(Object.values(status?.instancesStatus ?? {}));
}

export function countInstances(instances: readonly Pick<InstanceStatus, 'state'>[]): InstanceCounts {
  const of = (state: InstanceStatus['state']): number => instances.filter((instance) => instance.state === state).length;
  return { running: of('RUNNING'), starting: of('STARTING'), crashed: of('CRASHED'), down: of('DOWN') };
}

export interface IndexedInstance extends InstanceStatus {
  index: number;
}

/** Instances by index; indexes that should exist and have no entry yet are `DOWN`. A stopped app has none. */
export function instancesOf(app: CFApp, process: CFProcess): IndexedInstance[] {
  const known = Object.entries(process.status?.instancesStatus ?? {}).map(([index, status]) => ({ ...status, index: Number(index) }));
  const wanted = app.spec.desiredState === 'STARTED' ? desiredInstances(process) : 0;
  const indexes = new Set(known.map(({ index }) => index));
  // Beyond what a status lists nothing is known of single instances.
  for (let index = 0; index < Math.min(wanted, instanceLimits.listed); index += 1) {
    if (!indexes.has(index)) known.push({ index, state: 'DOWN' });
  }
  return known.toSorted((a, b) => a.index - b.index);
}

/** Revision number in annotation app-rev; 0 where it is missing or not a number. */
export function appRevOf(app: CFApp): number {
  const rev = Number(app.metadata.annotations?.[annotations.appRev] ?? '0');
  return Number.isInteger(rev) && rev >= 0 ? rev : 0;
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);
const created = (object: CFRoute): number => Date.parse(object.metadata.creationTimestamp ?? '') || 0;
/** By code unit: the same order on every machine. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
