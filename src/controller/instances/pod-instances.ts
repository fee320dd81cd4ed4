// Instances as pods of this cluster.

import { eventType, podType, statefulSetType, type KubeEvent, type Pod } from '../../lib/api/core.ts';
import { labels } from '../../lib/api/group.ts';
import type { ContainerStatus } from '../../lib/api/pod.ts';
import { messageOf } from '../../lib/errors.ts';
import { endOf } from '../../lib/kube/lines.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Context, Index } from '../runtime/reconciler.ts';
import { index } from '../runtime/reconciler.ts';
import type { Instances, Problem } from './instances.ts';
import { instanceOf } from './pod-state.ts';

const mostLines = 20;
const longestLine = 500;
/** Of a log, before it is cut to lines; the newest count. */
const mostBytes = 64 * 1024;
const rememberedCauses = 1_000;

/** Index of the pod store by process. */
export const podsByProcess: Index = index<Pod>(podType, 'process', (pod) => {
  const { namespace = '', labels: marks = {} } = pod.metadata;
  const guid = marks[labels.guid];
  return guid === undefined ? [] : [`${namespace}/${guid}`];
});

/** When a cause was first seen: waiting containers carry no times. Starting anew only makes the patience longer. */
const firstSeenAt = new BoundedMap<string, number>(rememberedCauses);

function firstSeen(uid: string, cause: string, now: number): number {
  const key = `${uid} ${cause}`;
  const known = firstSeenAt.get(key);
  if (known !== undefined) return known;
  firstSeenAt.set(key, now);
  return now;
}

const eventTime = (event: KubeEvent): number =>
  Date.parse(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? '');

/** The newest Event with that reason. */
function latestEvent(events: readonly KubeEvent[], reason: string): KubeEvent | undefined {
  return events.filter((event) => event.reason === reason).toSorted((a, b) => eventTime(b) - eventTime(a))[0];
}

async function eventsOf(context: Context, ns: string, uid: string): Promise<KubeEvent[]> {
  const { items } = await context.cluster.list(eventType, { ns, fieldSelector: `involvedObject.uid=${uid}`, signal: context.signal });
  return items;
}

function problemOfEvents(events: readonly KubeEvent[]): Problem | undefined {
  const latest = latestEvent(events, 'FailedCreate');
  if (latest === undefined) return undefined;
  const message = latest.message ?? '';
  // `create Pod x in StatefulSet y failed error: pods "x" is forbidden: exceeded quota: …`
  const cause = message.slice(message.indexOf('error: ') + 1).replace(/^rror: /, '');
  if (message.includes('exceeded quota'))
    return { reason: 'QuotaExceeded', message: `The quota of the space is used up: ${cause}`, final: true };
  return { reason: 'CreateContainer', message: `The cluster refuses to create the instance: ${cause}`, final: true };
}

/** Lines of a container's message or log, cut to what a status may carry. */
export function cutLines(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  return lines.slice(-mostLines).map((line) => line.slice(0, longestLine));
}

async function linesOf(context: Context, ns: string, pod: string, status: ContainerStatus | undefined): Promise<string[]> {
  if (status === undefined) return [];
  const ended = status.state?.terminated ?? status.lastState?.terminated;
  // The kubelet keeps the last lines of a container that failed; they outlive its log.
  if (ended?.message !== undefined && ended.message !== '') return cutLines(ended.message);
  if (status.containerID === undefined) return [];
  const previous = status.state?.terminated === undefined && status.restartCount > 0;
  const options = { container: status.name, previous, tailLines: mostLines, signal: context.signal };
  try {
    const stream = (await context.cluster.logs(ns, pod, options)) as AsyncIterable<Buffer>;
    return cutLines((await endOf(stream, mostBytes)).toString('utf8'));
  } catch (error) {
    context.log.debug('no last lines', { pod, error: messageOf(error) });
    return [];
  }
}

export function podInstances(context: Context): Instances {
  const pods = context.stores.of(podType);
  return {
    of(ns, processGuid, expectations) {
      const now = context.now();
      return pods.by(podsByProcess.name, `${ns}/${processGuid}`).map((pod) => {
        const generation = pod.metadata.labels?.[labels.generation] ?? '';
        const uid = pod.metadata.uid ?? '';
        return instanceOf(pod, { now, expectations: expectations(generation), firstSeen: (cause) => firstSeen(uid, cause, now) });
      });
    },

    async missing(ns, _generation, setName) {
      const set = context.stores.of(statefulSetType).get(ns, setName);
      if (set?.metadata.uid === undefined) return undefined;
      return problemOfEvents(await eventsOf(context, ns, set.metadata.uid));
    },

    async lastCheck(ns, { uid }) {
      const event = latestEvent(await eventsOf(context, ns, uid), 'Unhealthy');
      if (event?.message === undefined) return undefined;
      return { message: event.message.replace(/^\w+ probe failed: /i, '').trim(), at: eventTime(event) };
    },

    steadySince: () => pods.steadySince,

    lastLines(ns, instance) {
      const status = pods.get(ns, instance.pod)?.status?.containerStatuses?.find(({ name }) => name === 'application');
      return linesOf(context, ns, instance.pod, status);
    },
  };
}
