// A node of a cluster in memory: it makes the pods of StatefulSets, and they do what the names of their images say.

import { setTimeout as sleep } from 'node:timers/promises';
import { eventType, statefulSetType, type StatefulSet } from '../../../src/lib/api/core.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { httpRouteType } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { defined } from '../../../src/lib/defined.ts';
import type { MemoryCluster } from '../../support/memory-cluster.ts';

export const ns = 'space-1';
export const appGuid = 'app-1';

type Container = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

/** The annotation of a pod that does not do what its image does. */
export const upsetBy = 'test/upset';

/**
 * Behaviour by the name of the image: `good:1` answers, `mute:1` is ready and answers nothing, `down:1` is ready and answers 503, `crash:1` ends at once, `silent:1` runs and never answers.
 * Process web of `half:1` answers, and its other processes end as soon as web serves. `tight:1` answers, unless it has only 16 MiB: then it ends at once.
 * Of `lame:1` two instances answer, and each further one ends at once. `shaky:1` is ready, then not for a moment, and then stays ready.
 * A pod of `good:1` with {@link upsetBy} is not ready (`unready`), has crashed once and starts again (`restarted`), or waits for its next start after
 * several crashes (`crashing`).
 */
export class Node {
  readonly #cluster: MemoryCluster;
  readonly #podIP: string;
  readonly #refused: ReadonlySet<string>;
  /** When a pod of `shaky` was first ready, by its uid. */
  readonly #shaky = new Map<string, number>();
  /** Pods of `good` that are not ready yet stay so. */
  #holdsStarts = false;
  #mostPods = Infinity;
  #seen = -1;
  readonly #stopped = new AbortController();
  readonly ended: Promise<void>;

  /** @param refused names of the routes that the gateway turns down */
  constructor(cluster: MemoryCluster, podIP: string, refused: ReadonlySet<string> = new Set()) {
    this.#cluster = cluster;
    this.#podIP = podIP;
    this.#refused = refused;
    this.ended = this.#live();
  }

  stop(): void {
    this.#stopped.abort();
  }

  holdStarts(isHeld: boolean): void {
    this.#holdsStarts = isHeld;
    this.#seen = -1;
  }

  limitPods(most: number): void {
    this.#mostPods = most;
  }

  /** As the StatefulSet controller does when a quota refuses a pod. */
  async #refuse({ metadata: { uid = '', namespace = '', name = '' } }: StatefulSet, pod: string): Promise<void> {
    const event = `${name}-refused`;
    if (this.#cluster.peek(eventType, namespace, event) !== undefined) return;
    await this.#cluster.create(eventType, {
      metadata: { name: event, namespace },
      involvedObject: { uid },
      reason: 'FailedCreate',
      message: `create Pod ${pod} in StatefulSet ${name} failed error: pods "${pod}" is forbidden: exceeded quota: kf-limits`,
    });
  }

  async #live(): Promise<void> {
    for (; !this.#stopped.signal.aborted; await sleep(4)) {
      // Only what a write has changed needs work; a pod of `shaky` changes by itself.
      if (this.#cluster.writes.length === this.#seen && this.#shaky.size === 0) continue;
      this.#seen = this.#cluster.writes.length;
      for (const set of this.#cluster.all(statefulSetType)) await this.#follow(set);
      for (const pod of this.#cluster.all(podType)) await this.#advance(pod);
      for (const route of this.#cluster.all(httpRouteType)) await this.#accept(route.metadata.namespace, route.metadata.name);
    }
  }

  async #follow(set: StatefulSet): Promise<void> {
    const pods = this.#cluster.all(podType).filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === set.metadata.uid);
    const wanted = set.spec?.replicas ?? 0;
    for (let index = 0; index < wanted; index += 1) {
      const name = `${set.metadata.name ?? ''}-${String(index)}`;
      if (!pods.some(({ metadata }) => metadata.name === name)) await this.#create(set, name, index);
    }
    for (const { metadata } of pods) {
      if (Number(metadata.labels?.[labels.podIndex]) >= wanted)
        await this.#cluster.delete(podType, metadata.namespace, metadata.name ?? '');
    }
  }

  async #create(set: StatefulSet, name: string, index: number): Promise<void> {
    const template = set.spec?.template;
    // A terminating one of that name is waited for.
    if (this.#cluster.peek(podType, set.metadata.namespace, name) !== undefined) return;
    if (this.#cluster.all(podType).length >= this.#mostPods) return this.#refuse(set, name);
    await this.#cluster.create(podType, {
      metadata: {
        name,
        namespace: set.metadata.namespace ?? '',
        labels: { ...template?.metadata?.labels, [labels.podIndex]: String(index) },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'StatefulSet', name: set.metadata.name ?? '', uid: set.metadata.uid ?? '', controller: true },
        ],
      },
      spec: { containers: template?.spec.containers ?? [], ...defined({ initContainers: template?.spec.initContainers }) },
      status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: new Date().toISOString() }] },
    });
  }

  async #advance(pod: Pod): Promise<void> {
    const image = pod.spec?.containers[0]?.image ?? '';
    const behaviour = this.#behaviourOf(pod, image);
    const status = pod.status?.containerStatuses?.[0];
    const restartCount = status?.restartCount ?? 0;
    const now = new Date().toISOString();
    const base = { name: 'application', image, imageID: '', containerID: 'x', restartCount };
    let next: Pod['status'] | undefined;
    if (behaviour.startsWith('upset')) {
      next = upsetStatus(status, behaviour, now);
    } else if (/^(good|mute|down)/.test(behaviour) && status?.ready !== true) {
      next = ready({ ...base, ready: true, started: true, state: { running: { startedAt: now } } }, now, this.#podIP);
    } else if (behaviour.startsWith('crash') && restartCount < 2) {
      const ended = { exitCode: 3, reason: 'Error', message: 'no database\n', startedAt: now, finishedAt: now };
      next = { containerStatuses: [{ ...base, ready: false, restartCount: restartCount + 1, state: { terminated: ended } }] };
    } else if (behaviour.startsWith('silent') && status === undefined) {
      next = { containerStatuses: [{ ...base, ready: false, started: false, state: { running: { startedAt: now } } }] };
    }
    if (behaviour.startsWith('shaky')) next = this.#shakyStatus(pod, base, now);
    if (next === undefined) return;
    const { namespace, name = '' } = pod.metadata;
    await this.#cluster
      .mergePatch(podType, namespace, name, { status: { ...pod.status, ...next } }, { subresource: 'status' })
      .catch(() => undefined);
  }

  #shakyStatus(pod: Pod, base: Omit<Container, 'ready'>, now: string): Pod['status'] | undefined {
    const isReady = this.#isReadyNow(pod);
    if (isReady === pod.status?.containerStatuses?.[0]?.ready) return undefined;
    return ready({ ...base, ready: isReady, started: true, state: { running: { startedAt: now } } }, now, this.#podIP);
  }

  #isReadyNow({ metadata: { uid = '' } }: Pod): boolean {
    const from = this.#shaky.get(uid) ?? Date.now();
    this.#shaky.set(uid, from);
    const age = Date.now() - from;
    return age < 100 || age > 500;
  }

  #behaviourOf(pod: Pod, image: string): string {
    const isSmall = pod.spec?.containers[0]?.resources?.limits?.['memory'] === '16Mi';
    const isThird = Number(pod.metadata.labels?.[labels.podIndex]) >= 2;
    const plain = image.replace('tight', isSmall ? 'crash' : 'good').replace('lame', isThird ? 'crash' : 'good');
    const upset = pod.metadata.annotations?.[upsetBy];
    if (upset !== undefined && image.startsWith('good')) return `upset ${upset}`;
    if (this.#holdsStarts && image.startsWith('good') && pod.status?.containerStatuses?.[0]?.ready !== true) return 'silent';
    return image.startsWith('half') ? this.#halfOf(pod) : plain;
  }

  #halfOf({ metadata }: Pod): string {
    if (metadata.labels?.[labels.processType] === 'web') return 'good';
    const deployId = this.#cluster.peek(kinds.app, ns, appGuid)?.metadata.annotations?.[annotations.deployId];
    const web = this.#cluster.all(kinds.process).find(({ spec }) => spec.processType === 'web')?.status?.rollout;
    return web?.id === deployId && web?.phase === 'Serving' ? 'crash' : 'wait';
  }

  async #accept(space: string, name: string): Promise<void> {
    const route = this.#cluster.peek(httpRouteType, space, name);
    const observedGeneration = route?.metadata.generation ?? 0;
    if (route === undefined || route.status?.parents?.[0]?.conditions?.[0]?.observedGeneration === observedGeneration) return;
    const condition = {
      status: 'True' as const,
      reason: 'Accepted',
      message: '',
      lastTransitionTime: new Date().toISOString(),
      observedGeneration,
    };
    const turnedDown = { status: 'False' as const, reason: 'NotAllowedByListeners', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const conditions = [
      { ...condition, type: 'Accepted', ...(this.#refused.has(name) ? turnedDown : {}) },
      { ...condition, type: 'ResolvedRefs' },
    ];
    const status = { parents: [{ parentRef: { name: 'kf' }, conditions }] };
    await this.#cluster.mergePatch(httpRouteType, space, name, { status }, { subresource: 'status' }).catch(() => undefined);
  }
}

function ready(status: Container, now: string, podIP: string): Pod['status'] {
  return {
    phase: 'Running',
    podIP,
    conditions: [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: now },
      { type: 'Ready', status: status.ready ? 'True' : 'False', lastTransitionTime: now },
    ],
    containerStatuses: [status],
  };
}

/** What {@link upsetBy} makes of a pod that is ready. */
function upsetStatus(status: Container | undefined, behaviour: string, now: string): Pod['status'] | undefined {
  if (status?.ready !== true) return undefined;
  if (behaviour.endsWith('unready')) return ready({ ...status, ready: false }, now, '192.0.2.1');
  const ended = { exitCode: 3, reason: 'Error', startedAt: now, finishedAt: now };
  if (behaviour.endsWith('restarted')) {
    const again = { state: { running: { startedAt: now } }, lastState: { terminated: ended }, restartCount: 1 };
    return ready({ ...status, ...again, ready: false, started: false }, now, '192.0.2.1');
  }
  const state = { state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: ended } };
  return ready({ ...status, ...state, ready: false, started: false, restartCount: 4 }, now, '192.0.2.1');
}

/** Pods that answer, by generation. */
export function readyPods(cluster: MemoryCluster, generation: string): number {
  return cluster
    .all(podType)
    .filter(({ metadata }) => metadata.labels?.[labels.generation] === generation)
    .filter(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True')).length;
}
