// Ends of instances that nobody asked for.

import { labels } from './group.ts';
import type { Stored } from './object.ts';
import { lostContainerReason, type ContainerStatus } from './pod.ts';
import type { Pod } from './pod-kind.ts';
import type { AppEvent } from './results.ts';
import type { CFProcess } from './types.generated.ts';

export interface Ending {
  pod: Stored<Pod>;
  process: Stored<CFProcess>;
  /** Tells the ends of one pod apart. */
  id: string;
  /** Empty when nothing says it: then it is the time at which the end is seen. */
  time: string;
  event: Pick<AppEvent, 'type' | 'description'>;
}

/** The reason, in an event, of an end because of a node that does not answer. */
export const nodeLostReason = 'NODE_LOST';

/** The reason, in an event, of an end because the cluster took the instance from its node. */
export const evictedReason = 'EVICTED';

/** What an event says of an end of which the node only knows that the container is gone. */
export const unknownEnd = '(its node does not know how)';

/** A pod is evicted once. The time of its containers' end may be that of an earlier crash. */
const evictedId = 'evicted';

/** When the last container ended; empty while none has. */
const endOfContainers = ({ status }: Pod): string =>
  [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])]
    .map(({ state }) => state?.terminated?.finishedAt ?? '')
    .reduce((last, one) => (one > last ? one : last), '');

const disruption = ({ spec, status }: Pod): { time: string; reason: string; message: string } | undefined => {
  const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  const evicted = status?.reason === 'Evicted' ? { time: '', reason: evictedReason, message: status.message ?? '' } : undefined;
  if (condition?.status !== 'True') return evicted;
  const time = condition.lastTransitionTime ?? '';
  // The taints for which a pod of an app is deleted are those of nodes that are not ready or not reachable.
  if (condition.reason === 'DeletionByTaintManager')
    return { time, reason: nodeLostReason, message: `Node '${spec?.nodeName ?? ''}' does not answer.` };
  const message = condition.message ?? condition.reason ?? '';
  // A kubelet that starts again during an eviction lets the pod live, and the condition stays: a later eviction has another message.
  return evicted === undefined || evicted.message === message ? { time, reason: evictedReason, message } : evicted;
};

const notes: Readonly<Record<string, string>> = { OOMKilled: ' (out of memory)', [lostContainerReason]: ` ${unknownEnd}` };

/** How often a container has ended. */
const endsOf = (status: ContainerStatus | undefined): number =>
  (status?.restartCount ?? 0) + (status?.state?.terminated === undefined ? 0 : 1);

/** How an instance ended without being told to: its program ended, or the cluster took it from its node. */
export function endingOf(pod: Stored<Pod>, process: Stored<CFProcess>): Ending | undefined {
  const index = pod.metadata.labels?.[labels.podIndex] ?? '0';
  const about = (reason: string, text: string): string =>
    `index: ${index}, reason: ${reason}, instance: ${pod.metadata.name}, exit_description: ${text}`;
  const evicted = disruption(pod);
  if (evicted !== undefined) {
    const { time, reason, message } = evicted;
    const description = about(reason, message);
    // Evictions because of a limit for local storage have no condition with a time.
    const when = time === '' ? { id: evictedId, time: endOfContainers(pod) } : { id: time, time };
    return { pod, process, ...when, event: { type: 'audit.app.process.rescheduling', description } };
  }
  const container = pod.status?.containerStatuses?.find(({ name }) => name === 'application');
  const ended = container?.state?.terminated ?? container?.lastState?.terminated;
  if (ended === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const { exitCode, reason = '' } = ended;
  const time = ended.finishedAt ?? '';
  const why = notes[reason] ?? '';
  const text = `APP/PROC/${process.spec.processType.toUpperCase()}: Exited with status ${exitCode}${why}`;
  return {
    pod,
    process,
    // Without a time, each end has its number.
    id: time === '' ? `end-${String(endsOf(container))}` : time,
    time,
    event: { type: 'app.crash', description: `${about('CRASHED', text)}, exit_status: ${exitCode}` },
  };
}
