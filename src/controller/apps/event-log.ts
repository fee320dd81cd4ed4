// Keeps what happened to each app in a ConfigMap of the app: Kubernetes forgets its own Events after an hour (docs/decisions/0069).

import { createHash } from 'node:crypto';
import { compareApp, seenOf, type AppObjects } from '../../lib/api/app-events.ts';
import { configMapType, type ConfigMap } from '../../lib/api/core.ts';
import { entriesFor, eventsName, readSeen, type Seen } from '../../lib/api/event-log.ts';
import { kinds, labels } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { AppEvent } from '../../lib/api/results.ts';
import type { CFApp, CFBuild, CFPackage, CFProcess, CFRoute, CFServiceBinding, CFTask } from '../../lib/api/types.generated.ts';
import { ownerReference } from '../../templates/metadata.ts';
import { instancesByApp, podsOfApp, watchInstancesOfApps } from '../instances/pod-instances.ts';
import { bindingsByApp, buildsByApp, packagesByApp, processesByApp, routesByApp } from '../relations.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { withScalers, withTimes } from './event-times.ts';
import { Unbinders } from './unbinders.ts';

/** Pause between two writes for one app. */
const writePauseMs = 10_000;
/** A new controller looks at the apps that it does not know spread over this time. */
const firstLookMs = 60_000;
const rememberedApps = 10_000;

const tasksByApp = index<CFTask>(kinds.task, 'app-events', ({ metadata, spec }) =>
  spec.appRef === undefined ? [] : [`${metadata.namespace ?? ''}/${spec.appRef.name}`],
);
const ofApp = (object: { metadata: { namespace?: string }; spec: { appRef?: { name: string } } }): string[] =>
  object.spec.appRef === undefined ? [] : [`${object.metadata.namespace ?? ''}/${object.spec.appRef.name}`];

/** What is known of an app between two writes. */
interface Known {
  /** Of what was seen last. */
  digest: string;
  /** Kept only while events wait to be written; otherwise the ConfigMap has it. */
  seen: Seen | undefined;
  waiting: AppEvent[];
  writtenAt: number;
}

const known = new Remembered(() => new BoundedMap<string, Known>(rememberedApps));
/** When the first look at an app is due. */
const due = new Remembered(() => new BoundedMap<string, number>(rememberedApps));

export const appEventsReconciler = (pauseMs = writePauseMs, unbinders = new Unbinders()): Reconciler => ({
  name: 'app-events',
  workers: 2,
  watches: [
    watch(kinds.app),
    watch<CFProcess>(kinds.process, ofApp),
    watch<CFPackage>(kinds.package, ofApp),
    watch<CFBuild>(kinds.build, ofApp),
    watch<CFServiceBinding>(kinds.serviceBinding, (binding) => {
      unbinders.note(binding);
      return ofApp(binding);
    }),
    watch<CFTask>(kinds.task, ofApp),
    watch<CFRoute>(kinds.route, ({ metadata, spec }) =>
      (spec.destinations ?? []).map(({ appRef }) => `${metadata.namespace}/${appRef.name}`),
    ),
    watchInstancesOfApps(),
  ],
  indexes: [processesByApp, packagesByApp, buildsByApp, bindingsByApp, routesByApp, tasksByApp, instancesByApp],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const app = context.stores.of(kinds.app).get(ns, name);
    if (app === undefined || app.metadata.deletionTimestamp !== undefined) {
      context.memory.of(known).delete(key);
      context.memory.of(due).delete(key);
      return undefined;
    }
    return recordEvents(context, { ...objectsOf(context, app), unbinder: unbinders.of(context.now()) }, pauseMs);
  },
});

function objectsOf({ stores }: Context, app: Stored<CFApp>): AppObjects {
  const key = keyOf(app);
  return {
    app,
    processes: stores.of(kinds.process).by(processesByApp.name, key),
    packages: stores.of(kinds.package).by(packagesByApp.name, key),
    builds: stores.of(kinds.build).by(buildsByApp.name, key),
    bindings: stores.of(kinds.serviceBinding).by(bindingsByApp.name, key),
    routes: stores.of(kinds.route).by(routesByApp.name, key),
    tasks: stores.of(kinds.task).by(tasksByApp.name, key),
    pods: podsOfApp(stores, key),
  };
}

/** Milliseconds until the first look at an app that was there before this controller; 0 for a new app, and later. */
function untilFirstLook(context: Context, app: Stored<CFApp>): number {
  const [key, now] = [keyOf(app), context.now()];
  const times = context.memory.of(due);
  const isNew = now - Date.parse(app.metadata.creationTimestamp ?? '') < firstLookMs;
  const at = times.get(key) ?? (isNew ? now : now + Math.random() * firstLookMs);
  times.set(key, at);
  return Math.max(0, Math.ceil(at - now));
}

/** Who changed the number of instances is only known of a process as the API server has it. */
const lacksScaler = ({ type, actor }: AppEvent): boolean => type === 'audit.app.process.scale' && actor === '';

/** @param isFirst what happened may have happened long ago */
async function compared(
  context: Context,
  objects: AppObjects,
  former: Seen | undefined,
  isFirst: boolean,
): Promise<{ events: AppEvent[]; seen: Seen }> {
  const found = compareApp(former, objects, context.now());
  if (former === undefined || found.events.length === 0) return found;
  if (isFirst) return compareApp(former, await withTimes(context, objects, former), context.now());
  if (!found.events.some(lacksScaler)) return found;
  return compareApp(former, await withScalers(context, objects, former), context.now());
}

async function recordEvents(context: Context, objects: AppObjects, pauseMs: number): Promise<Result | undefined> {
  const { app } = objects;
  const all = context.memory.of(known);
  const key = keyOf(app);
  const before = all.get(key);
  const wait = before === undefined ? untilFirstLook(context, app) : 0;
  if (wait > 0) return { requeueAfterMs: wait };
  const digest = createHash('sha256')
    .update(JSON.stringify(seenOf(objects, '')))
    .digest('base64');
  let now: Known = before ?? { digest: '', seen: undefined, waiting: [], writtenAt: 0 };
  let map: Stored<ConfigMap> | undefined;
  let isRead = false;
  if (now.digest !== digest) {
    if (now.seen === undefined) {
      map = await ownMap(context, app);
      isRead = true;
    }
    const former = now.seen ?? readSeen(map);
    const { events, seen } = await compared(context, objects, former, before === undefined);
    now = { ...now, digest, seen, waiting: [...now.waiting, ...events] };
  }
  if (now.waiting.length === 0) now = { ...now, seen: undefined };
  all.set(key, now);
  if (now.seen === undefined) return undefined;
  const pause = now.writtenAt + pauseMs - context.now();
  if (pause > 0) return { requeueAfterMs: pause };
  await write(context, app, isRead ? map : await ownMap(context, app), { events: now.waiting, seen: now.seen });
  all.set(key, { digest: now.digest, seen: undefined, waiting: [], writtenAt: context.now() });
  return undefined;
}

/** The ConfigMap of this very app. One of an app that is gone is deleted, before the garbage collector does it. */
async function ownMap(context: Context, app: Stored<CFApp>): Promise<Stored<ConfigMap> | undefined> {
  const { namespace, name } = app.metadata;
  const found = await context.cluster.get(configMapType, namespace, eventsName(name), context.signal);
  if (found === undefined || isOwnedBy(found, app)) return found;
  await context.cluster.delete(configMapType, namespace, found.metadata.name, { uid: found.metadata.uid, signal: context.signal });
  return undefined;
}

/** In one request. Another controller that has written in between makes it a conflict, and the next reconcile begins with what it wrote. */
async function write(
  context: Context,
  app: Stored<CFApp>,
  map: Stored<ConfigMap> | undefined,
  { events, seen }: { events: readonly AppEvent[]; seen: Seen },
): Promise<void> {
  const { namespace, name } = app.metadata;
  const entries = entriesFor(map, events, seen);
  if (map === undefined) {
    const metadata = {
      name: eventsName(name),
      namespace,
      labels: { [labels.appGuid]: name },
      ownerReferences: [ownerReference(kinds.app, app)],
    };
    const data = Object.fromEntries(Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== null));
    await context.cluster.create(configMapType, { apiVersion: 'v1', kind: configMapType.kind, metadata, data }, { signal: context.signal });
    return;
  }
  const { resourceVersion } = map.metadata;
  const patch = { metadata: { resourceVersion }, data: entries };
  await context.cluster.mergePatch(configMapType, namespace, map.metadata.name, patch, { signal: context.signal });
}
