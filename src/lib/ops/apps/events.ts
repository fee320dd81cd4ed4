// `events`: what happened to an app, as the controller has recorded it, and from the Kubernetes Events about its objects.

import { compareApp, type AppObjects } from '../../api/app-events.ts';
import { routesOf } from '../../api/app.ts';
import { findCondition } from '../../api/conditions.ts';
import { configMapType, eventType, type KubeEvent } from '../../api/core.ts';
import { eventsName, readEvents, readSeen } from '../../api/event-log.ts';
import { conditionTypes, kinds, labels, reasons } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { AppEvent } from '../../api/results.ts';
import type { CFApp } from '../../api/types.generated.ts';
import type { SpaceSession } from '../../session/session.ts';
import { readPods } from '../instances/pods.ts';

/** cf's types of what the controller reports, by kind and reason. */
const types: Readonly<Record<string, string>> = {
  'CFApp Serving': 'audit.app.process.ready',
  'CFApp Stopped': 'audit.app.stop',
  'CFApp RevisionCreated': 'audit.app.revision.create',
  'CFApp Crashed': 'app.crash',
  'CFApp OutOfMemory': 'app.crash',
  'CFApp HealthCheckFailed': 'audit.app.process.not-ready',
};

/** What an app waits for in every first push. It is trouble only while the app still waits. */
const waits: readonly string[] = [reasons.bindingNotReady];
const isProgress = (reason: string): boolean => reason === reasons.desiredStateNotReached || reason === reasons.dropletNotAssigned;

/** An Event of Kubernetes that is worth a line: one with a type of cf, or trouble. */
function isTold({ involvedObject, reason = '', message = '', type }: KubeEvent, app: Stored<CFApp>): boolean {
  if (`${involvedObject.kind ?? ''} ${reason}` in types) return true;
  // Each start has some failed probes; a start that fails ends in a crash, which has a line of its own.
  const isProbeOfStart = reason === 'Unhealthy' && message.startsWith('Startup probe failed');
  // The controller was overtaken by another writer, and has tried again.
  const isOvertaken = message.includes('the object has been modified');
  const isOver = waits.includes(reason) && findCondition(app, conditionTypes.ready)?.reason !== reason;
  return type === 'Warning' && !isProgress(reason) && !isProbeOfStart && !isOvertaken && !isOver;
}

const timeOf = (event: KubeEvent): string =>
  event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '';

/** An Event of Kubernetes; one without a type of cf keeps its reason. */
function reported(event: KubeEvent): AppEvent {
  const { involvedObject, reason = '', message = '', count = 1 } = event;
  return {
    time: timeOf(event),
    type: types[`${involvedObject.kind ?? ''} ${reason}`] ?? `kubernetes.${reason}`,
    actor: event.source?.component ?? event.reportingComponent ?? '',
    description: `${message}${count > 1 ? ` (${count} times)` : ''}`,
  };
}

const timeIn = ({ time }: AppEvent): number => Date.parse(time);

/** The objects of the app in its space. */
async function objectsOf(session: SpaceSession, app: Stored<CFApp>): Promise<AppObjects> {
  const { cluster, space, signal } = session;
  const inSpace = { ns: space.guid, signal };
  const own = { ...inSpace, labelSelector: `${labels.appGuid}=${app.metadata.name}` };
  const isOfApp = ({ spec }: { spec: { appRef?: { name: string } } }): boolean => spec.appRef?.name === app.metadata.name;
  const [processes, packages, builds, bindings, routes, tasks, pods = []] = await Promise.all([
    cluster.list(kinds.process, own),
    cluster.list(kinds.package, own),
    cluster.list(kinds.build, own),
    cluster.list(kinds.serviceBinding, inSpace),
    cluster.list(kinds.route, inSpace),
    cluster.list(kinds.task, inSpace),
    readPods(session, app),
  ]);
  return {
    app,
    processes: processes.items,
    packages: packages.items,
    builds: builds.items,
    bindings: bindings.items.filter(isOfApp),
    routes: routesOf(app, routes.items),
    tasks: tasks.items.filter(isOfApp),
    pods,
  };
}

/**
 * Newest first: what the controller has recorded, what happened since its last write, and the Events of Kubernetes, which usually forgets them after
 * an hour.
 */
export async function appEvents(session: SpaceSession, app: Stored<CFApp>): Promise<AppEvent[]> {
  const { cluster, space, signal } = session;
  const [events, map, objects] = await Promise.all([
    cluster.list(eventType, { ns: space.guid, signal }),
    cluster.get(configMapType, space.guid, eventsName(app.metadata.name), signal),
    objectsOf(session, app),
  ]);
  const seen = readSeen(map);
  // The time of a reader is no time of an event: what has none of its own is shown when the controller has recorded it.
  const compared = compareApp(seen, objects, Date.now(), true);
  const { processes, packages, builds, routes, pods } = objects;
  const uids = new Set([app, ...processes, ...packages, ...builds, ...routes].map(({ metadata }) => metadata.uid));
  const podUids = new Set(pods.map(({ metadata }) => metadata.uid));
  const isOwn = ({ involvedObject: { uid = '' } }: KubeEvent): boolean => uids.has(uid) || podUids.has(uid);
  const begun = Date.parse(seen?.begun ?? '');
  // What has a type of cf is recorded too, since the record began.
  const isRecorded = (event: AppEvent): boolean => !event.type.startsWith('kubernetes.') && timeIn(event) >= begun;
  return [
    // Times are whole seconds: in the same second, what follows from an object comes after its creation.
    ...events.items
      .filter((event) => isOwn(event) && isTold(event, app))
      .map(reported)
      .filter((event) => !isRecorded(event)),
    ...[...readEvents(map), ...compared.events].toReversed(),
  ].toSorted((a, b) => timeIn(b) - timeIn(a));
}
