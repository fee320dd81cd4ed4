// Instances as pods of this cluster.

import type { KubeObject, Stored } from '../../lib/api/object.ts';
import { statefulSetType, type KubeEvent } from '../../lib/api/core.ts';
import { podType, statusOf, type Pod } from '../../lib/api/pod-kind.ts';
import { causeOfRefusal } from '../../lib/api/causes.ts';
import { labels } from '../../lib/api/group.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { eventTime, latestEvent } from '../runtime/latest-event.ts';
import { index, watch, type Context, type Index, type Stores, type Watch } from '../runtime/reconciler.ts';
import { causesSeenOn, forgetCauses } from './first-sight.ts';
import type { Result } from '../runtime/result.ts';
import type { Expectations, Instances, Problem } from './instances.ts';
import { lastLines } from './last-lines.ts';
import { abandonPods, isLeaving, lostSince, nodeIndexes, nodesInMotion, watchNodes } from './nodes.ts';
import { instanceOf, problemOf, type PodFacts } from './pod-state.ts';

/** The record of events needs a pod that ended until its next look, mostly within a second. */
const rememberedEnds = { apps: 500, ofApp: 5 };

/** The index that {@link podInstances} needs. */
export const instancesByProcess: Index = index<Pod>(podType, 'process', (pod) => {
  const { namespace, labels: podLabels = {} } = pod.metadata;
  const guid = podLabels[labels.guid];
  return guid === undefined ? [] : [`${namespace}/${guid}`];
});

/** The index that {@link abandonInstances} needs. */
export const instancesByWorkload: Index = index<Pod>(podType, 'workload', ({ metadata: { namespace = '', labels: podLabels = {} } }) => {
  const workload = podLabels[labels.appWorkloadGuid];
  return workload === undefined ? [] : [`${namespace}/${workload}`];
});

/** Removes instances of an AppWorkload that is gone, which their nodes do not end. @param key of the AppWorkload */
export const abandonInstances = (context: Context, key: string): Promise<Result | undefined> =>
  abandonPods(context, context.stores.of(podType).by(instancesByWorkload.name, key));

/** The index that {@link podsOfApp} needs. */
export const instancesByApp: Index = index<Pod>(podType, 'app', (pod) => keysOfApp(pod));

/** The app of an instance; none for the pod of a build or a task. */
function keysOfApp({ metadata }: Pick<KubeObject, 'metadata'>): string[] {
  const app = metadata.labels?.[labels.appGuid];
  return app === undefined || metadata.labels?.[labels.guid] === undefined ? [] : [`${metadata.namespace ?? ''}/${app}`];
}

/**
 * Pods that their node has ended, the newest of each app, by the app's key. Their set replaces them at once, under the same name, so a reconcile that
 * reads the store may come too late to see the end.
 */
const endedPods = new WeakMap<Stores, BoundedMap<string, BoundedMap<string, Stored<Pod>>>>();

function noteEnd(stores: Stores, app: string, pod: Stored<Pod>): void {
  const apps = endedPods.get(stores) ?? new BoundedMap(rememberedEnds.apps);
  endedPods.set(stores, apps);
  const ends = apps.get(app) ?? new BoundedMap(rememberedEnds.ofApp);
  apps.set(app, ends);
  ends.set(pod.metadata.uid, pod);
}

/** A change of an instance queues its app. What ends is kept for {@link podsOfApp}. */
export const watchInstancesOfApps = (): Watch =>
  watch<Pod>(podType, (pod, stores) => {
    const apps = keysOfApp(pod);
    if (pod.status?.phase === 'Failed') for (const app of apps) noteEnd(stores, app, pod);
    return apps;
  });

/** What the cluster says of the instances of an app, for the record of its events: those that exist, and pods that ended lately. */
export function podsOfApp(stores: Stores, app: string): Stored<Pod>[] {
  const present = stores.of(podType).by(instancesByApp.name, app);
  const known = new Set(present.map(({ metadata }) => metadata.uid));
  const ended = [...(endedPods.get(stores)?.get(app)?.values() ?? [])];
  return [...present, ...ended.filter(({ metadata }) => !known.has(metadata.uid))];
}

/** A change of an instance queues the keys that `keys` gives for it, by its labels and its namespace. */
export function watchInstances(keys: (instance: Pick<KubeObject, 'metadata'>, stores: Stores) => readonly string[]): Watch {
  return watch<Pod>(podType, keys);
}

/** The same for what changes of the nodes that instances run on. It needs {@link nodeIndexes}. */
export const watchNodesOfInstances = (keys: (instance: Pick<KubeObject, 'metadata'>) => readonly string[]): Watch => watchNodes(keys);
export { nodeIndexes };

const readyCondition = ({ status }: Pod) => status?.conditions?.find((one) => one.type === 'Ready' && one.status === 'True');

/** The instances of a process that are ready and not ending. */
const readyPods = (stores: Stores, namespace: string, process: string): Stored<Pod>[] =>
  stores
    .of(podType)
    .by(instancesByProcess.name, `${namespace}/${process}`)
    .filter((pod) => pod.metadata.deletionTimestamp === undefined && readyCondition(pod) !== undefined);

/** Addresses of the instances of a process that are ready and not ending. */
export function readyAddresses(stores: Stores, namespace: string, process: string): string[] {
  return readyPods(stores, namespace, process).flatMap(({ status }) => status?.podIP ?? []);
}

/** Since when each generation of a process has had a ready instance without a break, in milliseconds; only those that have one. */
export function readyGenerations(stores: Stores, namespace: string, process: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const pod of readyPods(stores, namespace, process)) {
    const generation = pod.metadata.labels?.[labels.generation] ?? '';
    const since = Date.parse(readyCondition(pod)?.lastTransitionTime ?? '') || 0;
    found.set(generation, Math.min(found.get(generation) ?? Infinity, since));
  }
  return found;
}

function problemOfSet(refusal: Stored<KubeEvent> | undefined): Problem | undefined {
  // `create Pod x in StatefulSet y failed error: pods "x" is forbidden: exceeded quota: …`
  return refusal === undefined ? undefined : problemOfRefusal((refusal.message ?? '').replace(/^.*?error: /s, ''));
}

/** Why instances do not exist. @param said what the API server answered when it refused a pod, or the StatefulSet of all of them */
export function problemOfRefusal(said: string): Problem {
  if (said.includes('exceeded quota'))
    return { reason: 'QuotaExceeded', cause: 'quota', message: `The quota of the space is used up: ${said}`, final: true };
  return {
    reason: 'CreateContainer',
    cause: causeOfRefusal(said),
    message: `The cluster refuses to create the instance: ${said}`,
    final: true,
  };
}

function factsOf(context: Context, { metadata, spec }: Stored<Pod>, now: number, expectations: Expectations): PodFacts {
  return {
    now,
    expectations,
    ...causesSeenOn(context, metadata.uid, now),
    lostSince: lostSince(context.stores, spec?.nodeName),
    leaving: isLeaving(context.stores, spec?.nodeName),
    nodesInMotion: () => nodesInMotion(context.stores),
  };
}

export function podInstances(context: Context): Instances {
  const pods = context.stores.of(podType);
  return {
    of(ns, processGuid, expectations) {
      const now = context.now();
      return pods.by(instancesByProcess.name, `${ns}/${processGuid}`).map((pod) => {
        const generation = pod.metadata.labels?.[labels.generation] ?? '';
        const instance = instanceOf(pod, factsOf(context, pod, now, expectations(generation)));
        if (instance.ready) forgetCauses(context, pod.metadata.uid);
        return instance;
      });
    },

    async problemNow(ns, { pod: name, uid }, expectations) {
      const pod = await context.cluster.get(podType, ns, name, context.signal);
      return pod?.metadata.uid === uid ? problemOf(pod, factsOf(context, pod, context.now(), expectations)) : undefined;
    },

    async missing(ns, setName) {
      const set = context.stores.of(statefulSetType).get(ns, setName);
      if (set === undefined) return undefined;
      return problemOfSet(await latestEvent(context, { ns, uid: set.metadata.uid }, 'FailedCreate'));
    },

    async lastCheck(ns, { uid, restarts, startedAt = 0, problem }) {
      const isPresent = problem?.ofPresentRun === true;
      // A process that was started again is not listening yet: its own first checks say nothing about why the one before it was stopped.
      const event = await latestEvent(context, { ns, uid }, 'Unhealthy', restarts > 0 && !isPresent ? startedAt : undefined);
      if (event?.message === undefined) return undefined;
      // The present run has passed its start check: what that said before is no news of its readiness.
      if (isPresent && (eventTime(event) < startedAt || !event.message.startsWith('Readiness probe failed: '))) return undefined;
      return { message: event.message.replace(/^\w+ probe failed: /i, '').trim(), at: eventTime(event) };
    },

    steadySince: () => pods.steadySince,

    async abandon(ns, { pod, uid }) {
      await context.cluster.delete(podType, ns, pod, { uid, gracePeriodSeconds: 0, signal: context.signal });
    },

    async logEnds(ns, instance) {
      const { container = 'application', ofPresentRun } = instance.problem ?? {};
      const pod = pods.get(ns, instance.pod);
      const status = pod === undefined ? undefined : statusOf(pod, container);
      const run = ofPresentRun === true ? 'present' : 'failed';
      return (await lastLines(context, { ns, pod: instance.pod }, status, { run })).log;
    },
  };
}
