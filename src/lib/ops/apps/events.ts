// `events`: what happened to an app, from the Kubernetes Events about its objects, and from the packages and builds that it still has.

import { routesOf } from '../../api/app.ts';
import { eventType, type KubeEvent } from '../../api/core.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import type { KubeObject, Stored } from '../../api/object.ts';
import type { AppEvent } from '../../api/results.ts';
import type { CFApp } from '../../api/types.generated.ts';
import type { SpaceSession } from '../../session/session.ts';
import { readPods } from '../instances/pods.ts';

/** cf's types of what the controller reports, by kind and reason. */
const types: Readonly<Record<string, string>> = {
  'CFApp Serving': 'audit.app.process.ready',
  'CFApp Stopped': 'audit.app.stop',
  'CFApp Crashed': 'app.crash',
  'CFApp OutOfMemory': 'app.crash',
  'CFApp HealthCheckFailed': 'audit.app.process.not-ready',
  'CFBuild BuildSucceeded': 'audit.app.droplet.create',
};

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

/** @param actor who created the object; left out where the object only says who changed it last */
function created(type: string, { metadata }: Stored<KubeObject>, actor = ''): AppEvent {
  return { time: metadata.creationTimestamp ?? '', type, actor, description: `guid: ${metadata.name}` };
}

const authorOf = ({ metadata }: KubeObject): string | undefined => metadata.annotations?.[annotations.changedBy];

/** Newest first. The cluster forgets its Events after a time, usually an hour. */
export async function appEvents(session: SpaceSession, app: Stored<CFApp>): Promise<AppEvent[]> {
  const { cluster, space, signal } = session;
  const inSpace = { ns: space.guid, signal };
  const own = { ...inSpace, labelSelector: `${labels.appGuid}=${app.metadata.name}` };
  const [events, processes, packages, builds, routes, pods = []] = await Promise.all([
    cluster.list(eventType, inSpace),
    cluster.list(kinds.process, own),
    cluster.list(kinds.package, own),
    cluster.list(kinds.build, own),
    cluster.list(kinds.route, inSpace),
    readPods(session, app),
  ]);
  const objects = [app, ...processes.items, ...packages.items, ...builds.items, ...routesOf(app, routes.items)];
  const uids = new Set(objects.map(({ metadata }) => metadata.uid));
  const podUids = new Set(pods.map(({ metadata }) => metadata.uid));
  // Each start of a container makes several Events of its pod; only those about trouble are worth a line.
  const isOwn = ({ involvedObject: { uid = '' }, type }: KubeEvent): boolean => uids.has(uid) || (podUids.has(uid) && type === 'Warning');
  return [
    // Times are whole seconds: in the same second, what follows from an object comes after its creation.
    ...events.items.filter(isOwn).map(reported),
    ...builds.items.map((one) => created('audit.app.build.create', one, authorOf(one))),
    ...packages.items.map((one) => created('audit.app.package.create', one, authorOf(one))),
    created('audit.app.create', app),
  ].toSorted((a, b) => Date.parse(b.time) - Date.parse(a.time));
}
