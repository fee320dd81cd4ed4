// Rules for CFApp, CFProcess and CFRoute, independent of any output layout.

import type { Stored } from './object.ts';
import { annotations } from './group.ts';
import { isCanceled } from './rollout.ts';
import type { CFApp, CFProcess, CFRoute, Droplet, GenerationStatus, InstanceCounts, InstanceStatus, Sidecar } from './types.generated.ts';

export const webProcess = 'web';

/** Defaults that the contract sets by admission (4.6); in kf, CLI and controller set them. */
export const processDefaults = {
  healthCheckTimeoutSeconds: 60,
  instances: (processType: string): number => (processType === webProcess ? 1 : 0),
  healthCheckType: (processType: string): 'port' | 'process' => (processType === webProcess ? 'port' : 'process'),
} as const;

/** True when the app runs a droplet that was built from source, not an image that the user named. */
export const isBuilt = ({ spec }: CFApp): boolean => spec.lifecycle.type !== 'docker';

/** Its last change has failed, and instances of the version before serve. */
export function servesVersionBefore({ spec, status }: CFApp): boolean {
  const { phase, canceled, generations = [] } = status?.deployment ?? {};
  const hasFailed = spec.desiredState === 'STARTED' && phase === 'Failed' && canceled !== true;
  return hasFailed && generations.some(({ state, ready }) => state === 'Old' && ready > 0);
}

/** Instances of the version that served last are ready. */
export function lastStillServes(app: CFApp): boolean {
  const { phase, reason, generations = [] } = app.status?.deployment ?? {};
  // Until the controller looks at a change, its generations are those of the change before; a canceled one aims at the version that served.
  const isCurrentLast = phase === 'Serving' || reason === 'Reconciling' || isCanceled(app);
  const isLast = ({ state, served }: GenerationStatus): boolean => {
    return (isCurrentLast && state === 'Current') || (phase !== 'Serving' && state === 'Old' && served === true);
  };
  return app.spec.desiredState === 'STARTED' && generations.some((generation) => isLast(generation) && generation.ready > 0);
}

/**
 * True for the app of a first push that has nothing but its name yet, and never held that. The controller observes only an app that holds its name, so one
 * that it has observed was renamed, and people have put things into it.
 */
export function isUnnamedFirstPush({ metadata, spec, status }: CFApp): boolean {
  const isFirstPush = metadata.annotations?.[annotations.pushId] !== undefined && (spec.currentDropletRef?.name ?? '') === '';
  return isFirstPush && status?.observedDesiredState === undefined;
}

/** A version of it has served. */
export const hasServed = ({ status }: CFApp): boolean => status?.revision?.deployed !== undefined;

/** Addresses (host.domain/path) of an app in alphabetical order: routes of one push are of the same second. A route that is not reconciled yet has none. */
export function addressesOf(app: CFApp, routes: readonly Stored<CFRoute>[]): string[] {
  return routesOf(app, routes)
    .flatMap((route) => route.status?.uri ?? [])
    .toSorted(compare);
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

/** True when the droplet names processes, but not `web`. A droplet without processes runs by its image's own entry point. */
export function lacksWeb({ processTypes = [] }: Pick<Droplet, 'processTypes'>): boolean {
  return processTypes.length > 0 && !processTypes.some(({ type }) => type === webProcess);
}

export function desiredInstances(process: CFProcess): number {
  return process.spec.desiredInstances ?? processDefaults.instances(process.spec.processType);
}

/** Limits that keep an app's objects small, whatever its users request; the schemas in tools/crds have the same ones. */
export const instanceLimits = {
  /** Instances of one process. */
  most: 1000,
  /** How many of these a status describes in detail. */
  listed: 100,
  /** Characters of an instance's `details`. */
  detailCharacters: 500,
} as const;

/** Seconds that an instance may take to start: a day. Cloud Foundry's default limit is 180. */
export const mostStartSeconds = 86_400;

/** Memory of a sidecar that names none: this part of its process's. */
const sidecarPart = 8;

/** Memory limit of a sidecar, in MiB. */
export const sidecarMemoryMB = ({ memoryMB }: Pick<Sidecar, 'memoryMB'>, processMB: number): number =>
  memoryMB ?? Math.max(1, Math.floor(processMB / sidecarPart));

/** What the sidecars of a process leave for its own program, in MiB; the memory of a process is that of all its programs, as in cf. */
export function ownMemoryMB(processMB: number, sidecars: readonly Pick<Sidecar, 'memoryMB'>[]): number {
  return processMB - sidecars.reduce((sum, sidecar) => sum + sidecarMemoryMB(sidecar, processMB), 0);
}

/** Number of instances of a process by state, including those that its status does not list. */
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

/** Instances by index; expected instances without an entry are `DOWN`. A stopped app has none. */
export function instancesOf(app: CFApp, process: CFProcess): IndexedInstance[] {
  const known = Object.entries(process.status?.instancesStatus ?? {}).map(([index, status]) => ({ ...status, index: Number(index) }));
  const wanted = app.spec.desiredState === 'STARTED' ? desiredInstances(process) : 0;
  const indexes = new Set(known.map(({ index }) => index));
  // Single instances beyond those listed in the status are unknown.
  for (let index = 0; index < Math.min(wanted, instanceLimits.listed); index += 1) {
    if (!indexes.has(index)) known.push({ index, state: 'DOWN' });
  }
  return known.toSorted((a, b) => a.index - b.index);
}

/** Revision number of annotation app-rev; 0 when it is missing or not a number. */
export function appRevOf(app: CFApp): number {
  const rev = Number(app.metadata.annotations?.[annotations.appRev] ?? '0');
  return Number.isInteger(rev) && rev >= 0 ? rev : 0;
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);
const created = (object: CFRoute): number => Date.parse(object.metadata.creationTimestamp ?? '') || 0;
/** By code unit: the same order on every machine. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The app was started with a Secret of variables: one that is missing was deleted. Before, or if its first build failed, it may have none yet. */
export const hadVariables = ({ spec }: CFApp): boolean => (spec.envSecretName ?? '') !== '' && (spec.currentDropletRef?.name ?? '') !== '';
