// What happened to an app (docs/decisions/0069): the controller compares what it sees of the app with what it saw before, and keeps the differences
// as events in a ConfigMap of the app. Pure; `kf events` makes the same comparison for what is not written yet.

import { desiredInstances } from './app.ts';
import { findCondition } from './conditions.ts';
import { changedAt, isSigned } from './changed-at.ts';
import { deploymentEvent, rolloutSeen } from './deployment-events.ts';
import type { Seen } from './event-log.ts';
import { annotations, conditionTypes, labels } from './group.ts';
import { endingOf, type Ending } from './instance-ends.ts';
import type { KubeObject, Stored } from './object.ts';
import type { Pod } from './pod-kind.ts';
import type { AppEvent } from './results.ts';
import { servingText } from './rollout.ts';
import { cutText } from './text.ts';
import type { CFApp, CFBuild, CFPackage, CFProcess, CFRoute, CFServiceBinding, CFTask } from './types.generated.ts';

/** At most so many objects of a kind are compared: an app with more is not followed completely, and the record stays small. */
const mostObjects = 300;
const longestDescription = 240;
const longestName = 120;
/** Objects that are older when the controller first looks have no event, except those that tell their own time. */
const newMs = 60_000;

/** The objects of an app that events tell of. */
export interface AppObjects {
  app: Stored<CFApp>;
  processes: readonly Stored<CFProcess>[];
  packages: readonly Stored<CFPackage>[];
  builds: readonly Stored<CFBuild>[];
  bindings: readonly Stored<CFServiceBinding>[];
  /** Who deleted a binding, by {@link seenKey}; empty when it is not known. */
  unbinder?: (key: string) => string;
  /** Those with a destination of the app. */
  routes: readonly Stored<CFRoute>[];
  tasks: readonly Stored<CFTask>[];
  /** Instances, with or without pods of builds and tasks. */
  pods: readonly Stored<Pod>[];
}

/** By what a record knows an object. */
export const seenKey = ({ metadata }: Stored<KubeObject>): string => metadata.uid.slice(0, 8);
const byName = (a: Stored<KubeObject>, b: Stored<KubeObject>): number => (a.metadata.name < b.metadata.name ? -1 : 1);
/** In a fixed order, so that a surplus is always the same objects. */
const some = <T extends Stored<KubeObject>>(objects: readonly T[]): T[] => objects.toSorted(byName).slice(0, mostObjects);
const authorOf = ({ metadata }: KubeObject): string => metadata.annotations?.[annotations.changedBy] ?? '';
const isStaged = ({ status }: CFBuild): boolean => status?.state === 'STAGED';
/** Until its address is written, a route leads nowhere, and nothing here names its domain. */
const hasAddress = ({ status }: CFRoute): boolean => (status?.uri ?? '') !== '';
const routeText = ({ spec, status }: CFRoute): string => cutText(status?.uri ?? `${spec.host ?? ''}${spec.path ?? ''}`, longestName);

function endingsOf({ processes, pods }: AppObjects): Ending[] {
  const known = new Map(processes.map((process) => [process.metadata.name, process]));
  return some(pods).flatMap((pod) => {
    const process = known.get(pod.metadata.labels?.[labels.guid] ?? '');
    return process === undefined ? [] : (endingOf(pod, process) ?? []);
  });
}

const outcomes = ['Serving', 'Stopped', 'Failed'];

function outcomeOf({ status }: CFApp): string {
  const { id = '', phase = '' } = status?.deployment ?? {};
  return outcomes.includes(phase) ? `${phase} ${id}` : '';
}

/** What is to be remembered of an app. @param begun when the record began */
export function seenOf(objects: AppObjects, begun: string): Seen {
  const { app, processes, packages, builds, bindings, routes, tasks } = objects;
  return {
    begun,
    name: app.spec.displayName,
    state: app.spec.desiredState,
    deployId: app.metadata.annotations?.[annotations.deployId] ?? '',
    rollout: rolloutSeen(app),
    droplet: app.spec.currentDropletRef?.name ?? '',
    outcome: outcomeOf(app),
    revision: app.status?.revision?.version ?? 0,
    processes: Object.fromEntries(
      some(processes).map((process) => [
        process.spec.processType,
        [desiredInstances(process), process.spec.memoryMB, process.spec.diskQuotaMB] as const,
      ]),
    ),
    packages: some(packages).map(seenKey),
    builds: some(builds).map(seenKey),
    droplets: some(builds).filter(isStaged).map(seenKey),
    bindings: Object.fromEntries(
      some(bindings).map((binding) => [seenKey(binding), cutText(binding.spec.service.name ?? '', longestName)]),
    ),
    routes: Object.fromEntries(some(routes.filter(hasAddress)).map((route) => [seenKey(route), routeText(route)])),
    tasks: some(tasks).map(seenKey),
    ended: Object.fromEntries(endingsOf(objects).map(({ pod, id }) => [seenKey(pod), id])),
  };
}

/** Makes the events of one comparison. */
class Comparison {
  readonly #objects: AppObjects;
  readonly #before: Seen;
  readonly #after: Seen;
  readonly #untimed: string;

  /** @param untimed the time of what has none of its own; empty: such events are left out */
  constructor(objects: AppObjects, before: Seen, after: Seen, untimed: string) {
    this.#objects = objects;
    this.#before = before;
    this.#after = after;
    this.#untimed = untimed;
  }

  events(): AppEvent[] {
    // What an app is started with comes first: of the same second, a droplet is made before it is mapped.
    return [
      ...this.#ofBindings(),
      ...this.#ofRoutes(),
      ...this.#ofSources(),
      ...this.#ofApp(),
      ...this.#ofProcesses(),
      ...this.#ofTasks(),
      ...this.#ofInstances(),
      ...this.#ofOutcome(),
    ]
      .filter(({ time }) => time !== '')
      .map((event) => ({
        ...event,
        actor: cutText(event.actor, longestName),
        description: cutText(event.description, longestDescription),
      }));
  }

  #event(type: string, actor: string, description: string, time = ''): AppEvent {
    return { time: time === '' ? this.#untimed : time, type, actor, description };
  }

  /** When a field of the app was written. What belongs to a new change is not later than what became of the change. */
  #appTime(...path: string[]): string | undefined {
    const { deployment } = this.#objects.app.status ?? {};
    const { deployId } = this.#after;
    const since = deployId !== this.#before.deployId && deployment?.id === deployId ? deployment.since : undefined;
    const written = changedAt(this.#objects.app, ...path);
    if (written === undefined || since === undefined) return written ?? since;
    return Date.parse(since) < Date.parse(written) ? since : written;
  }

  #ofApp(): AppEvent[] {
    const { app } = this.#objects;
    const [before, after] = [this.#before, this.#after];
    const by = authorOf(app);
    const found: AppEvent[] = [];
    if (after.name !== before.name)
      found.push(this.#event('audit.app.update', by, `name: ${after.name}`, changedAt(app, 'spec', 'displayName')));
    if (after.droplet !== before.droplet && after.droplet !== '')
      found.push(this.#event('audit.app.droplet.mapped', by, `guid: ${after.droplet}`, this.#appTime('spec', 'currentDropletRef')));
    if (after.state !== before.state)
      found.push(
        this.#event(
          after.state === 'STARTED' ? 'audit.app.start' : 'audit.app.stop',
          by,
          `state: ${after.state}`,
          this.#appTime('spec', 'desiredState'),
        ),
      );
    else {
      const { type, description } = deploymentEvent(app, before, after) ?? {};
      const field = after.deployId === before.deployId ? ['spec', 'rollout'] : deployIdPath;
      if (type !== undefined) found.push(this.#event(type, by, description ?? '', this.#appTime(...field)));
    }
    if (after.revision > before.revision)
      found.push(this.#event('audit.app.revision.create', by, `version: ${after.revision}`, this.#appTime(...deployIdPath)));
    return found;
  }

  #ofProcesses(): AppEvent[] {
    return this.#objects.processes.flatMap((process) => {
      const type = process.spec.processType;
      const [before, after] = [this.#before.processes[type], this.#after.processes[type]];
      if (before === undefined || after === undefined) return [];
      const [instances, memory, disk] = after;
      const changed = [
        ...(instances === before[0] ? [] : [`instances: ${instances}`]),
        ...(memory === before[1] ? [] : [`memory: ${memory}`]),
        ...(disk === before[2] ? [] : [`disk_quota: ${disk}`]),
      ];
      const fields = [
        ...(instances === before[0] ? [] : ['desiredInstances']),
        ...(memory === before[1] ? [] : ['memoryMB']),
        ...(disk === before[2] ? [] : ['diskQuotaMB']),
      ];
      const time = fields
        .flatMap((field) => changedAt(process, 'spec', field) ?? [])
        .toSorted()
        .at(-1);
      // The autoscaler writes the number of instances beside the object, without a name.
      const isOnlyScaled = memory === before[1] && disk === before[2];
      const by = isOnlyScaled && !isSigned(process, 'spec', 'desiredInstances') ? '' : authorOf(process);
      return changed.length === 0 ? [] : [this.#event('audit.app.process.scale', by, [`process: ${type}`, ...changed].join(', '), time)];
    });
  }

  #ofSources(): AppEvent[] {
    const { packages, builds } = this.#objects;
    const created = (type: string, object: Stored<KubeObject>): AppEvent =>
      this.#event(type, authorOf(object), `guid: ${object.metadata.name}`, object.metadata.creationTimestamp ?? '');
    const stagedAt = (build: Stored<CFBuild>): string => findCondition(build, conditionTypes.succeeded)?.lastTransitionTime ?? '';
    return [
      ...packages.filter((one) => isNew(one, this.#before.packages)).map((one) => created('audit.app.package.create', one)),
      ...builds.filter((one) => isNew(one, this.#before.builds)).map((one) => created('audit.app.build.create', one)),
      ...builds
        .filter((one) => isStaged(one) && isNew(one, this.#before.droplets))
        .map((one) => this.#event('audit.app.droplet.create', authorOf(one), `guid: ${one.metadata.name}`, stagedAt(one))),
    ];
  }

  #ofBindings(): AppEvent[] {
    const describe = (instance: string): string => `service_instance: ${instance}`;
    const made = this.#objects.bindings
      .filter((one) => isNew(one, Object.keys(this.#before.bindings)))
      .map((one) =>
        this.#event('audit.service_binding.create', authorOf(one), describe(one.spec.service.name ?? ''), one.metadata.creationTimestamp),
      );
    const gone = goneOf(this.#before.bindings, this.#after.bindings).map(([key, one]) =>
      this.#event('audit.service_binding.delete', this.#objects.unbinder?.(key) ?? '', describe(one)),
    );
    return [...made, ...gone];
  }

  #ofRoutes(): AppEvent[] {
    const mapped = this.#objects.routes
      .filter((one) => hasAddress(one) && isNew(one, Object.keys(this.#before.routes)))
      .map((one) => this.#event('audit.app.map-route', authorOf(one), `route: ${routeText(one)}`, changedAt(one, 'spec', 'destinations')));
    const unmapped = goneOf(this.#before.routes, this.#after.routes).map(([, one]) =>
      this.#event('audit.app.unmap-route', '', `route: ${one}`),
    );
    return [...mapped, ...unmapped];
  }

  #ofTasks(): AppEvent[] {
    return this.#objects.tasks
      .filter((one) => isNew(one, this.#before.tasks))
      .map((one) => {
        const name = cutText(one.spec.displayName ?? one.metadata.name, longestName);
        return this.#event('audit.app.task.create', authorOf(one), `name: ${name}`, one.metadata.creationTimestamp);
      });
  }

  #ofInstances(): AppEvent[] {
    return endingsOf(this.#objects)
      .filter(({ pod, id }) => this.#before.ended[seenKey(pod)] !== id)
      .map(({ process, time, event }) => this.#event(event.type, process.spec.processType, event.description, time));
  }

  /** What became of the last change. */
  #ofOutcome(): AppEvent[] {
    const { deployment } = this.#objects.app.status ?? {};
    if (deployment === undefined || this.#after.outcome === '' || this.#after.outcome === this.#before.outcome) return [];
    const { phase, since = '', reason = '', message = '' } = deployment;
    if (phase === 'Serving') return [this.#event('audit.app.process.ready', controllerName, servingText(deployment), since)];
    if (phase === 'Failed') return [this.#event('audit.app.process.not-ready', controllerName, `${reason}: ${message}`, since)];
    return [];
  }
}

const deployIdPath = ['metadata', 'annotations', annotations.deployId];

/** The actor of what the controller finds out. */
const controllerName = 'kf-controller';

const isNew = (object: Stored<KubeObject>, known: readonly string[]): boolean =>
  object.metadata.deletionTimestamp === undefined && !known.includes(seenKey(object));

const goneOf = (before: Record<string, string>, after: Record<string, string>): [key: string, text: string][] =>
  Object.entries(before).filter(([key]) => !(key in after));

const ageMs = ({ metadata }: KubeObject, now: number): number => now - Date.parse(metadata.creationTimestamp ?? '');

/** Nothing of a new app was seen. Of an older one, nothing is reported that does not tell its own time. */
function firstSeen(objects: AppObjects, now: number): Seen {
  const nothing = {
    name: objects.app.spec.displayName,
    state: 'STOPPED',
    deployId: '',
    rollout: '',
    droplet: '',
    outcome: '',
    revision: 0,
  };
  const none: Seen = {
    ...nothing,
    ...{ begun: '', processes: {}, packages: [], builds: [], droplets: [], bindings: {}, routes: {}, tasks: [], ended: {} },
  };
  if (ageMs(objects.app, now) < newMs) return none;
  return { ...seenOf(objects, ''), packages: [], builds: [], droplets: [] };
}

const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/**
 * What happened since the app was seen, oldest first, and what is seen now.
 * @param before undefined for an app of which nothing is recorded
 * @param now the time for what has none of its own, such as what is gone
 * @param leavesOut events without a time of their own are left out
 */
export function compareApp(
  before: Seen | undefined,
  objects: AppObjects,
  now: number,
  leavesOut = false,
): { events: AppEvent[]; seen: Seen } {
  const begun = before?.begun ?? timestamp(now);
  const seen = seenOf(objects, begun);
  const events = new Comparison(objects, before ?? firstSeen(objects, now), seen, leavesOut ? '' : timestamp(now)).events();
  const { app } = objects;
  // Who changed an older app last has not created it.
  const creator = ageMs(app, now) < newMs ? authorOf(app) : '';
  const creation = {
    time: app.metadata.creationTimestamp ?? '',
    type: 'audit.app.create',
    actor: creator,
    description: `guid: ${app.metadata.name}`,
  };
  const all = before === undefined ? [creation, ...events] : events;
  // Times have whole seconds; what happened in the same second stays in this order.
  return { events: all.toSorted((a, b) => Date.parse(a.time) - Date.parse(b.time)), seen };
}
