// Ends of instances that nobody asked for.

import { labels } from './group.ts';
import type { Stored } from './object.ts';
import type { Pod } from './pod-kind.ts';
import type { AppEvent } from './results.ts';
import type { CFProcess } from './types.generated.ts';

export interface Ending {
  pod: Stored<Pod>;
  process: Stored<CFProcess>;
  time: string;
  event: Pick<AppEvent, 'type' | 'description'>;
}

/** The reason, in an event, of an end because of a node that does not answer. */
export const nodeLostReason = 'NODE_LOST';

const disruption = ({ spec, status }: Pod): { time: string; reason: string; message: string } | undefined => {
  const condition = status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  if (condition?.status === 'True') {
    const time = condition.lastTransitionTime ?? '';
    // The taints for which a pod of an app is deleted are those of nodes that are not ready or not reachable.
    if (condition.reason === 'DeletionByTaintManager')
      return { time, reason: nodeLostReason, message: `Node '${spec?.nodeName ?? ''}' does not answer.` };
    return { time, reason: 'EVICTED', message: condition.message ?? condition.reason ?? '' };
  }
  return status?.reason === 'Evicted' ? { time: '', reason: 'EVICTED', message: status.message ?? '' } : undefined;
};

/** How an instance ended without being told to: its program ended, or the cluster took it from its node. */
export function endingOf(pod: Stored<Pod>, process: Stored<CFProcess>): Ending | undefined {
  const index = pod.metadata.labels?.[labels.podIndex] ?? '0';
  const about = (reason: string, text: string): string =>
    `index: ${index}, reason: ${reason}, instance: ${pod.metadata.name}, exit_description: ${text}`;
  const evicted = disruption(pod);
  if (evicted !== undefined) {
    const time = evicted.time === '' ? (pod.metadata.creationTimestamp ?? '') : evicted.time;
    return { pod, process, time, event: { type: 'audit.app.process.rescheduling', description: about(evicted.reason, evicted.message) } };
  }
  const container = pod.status?.containerStatuses?.find(({ name }) => name === 'application');
  const ended = container?.state?.terminated ?? container?.lastState?.terminated;
  if (ended === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
  const { exitCode, reason = '', finishedAt = '' } = ended;
  const why = reason === 'OOMKilled' ? ' (out of memory)' : '';
  const text = `APP/PROC/${process.spec.processType.toUpperCase()}: Exited with status ${exitCode}${why}`;
  return {
    pod,
    process,
    time: finishedAt,
    event: { type: 'app.crash', description: `${about('CRASHED', text)}, exit_status: ${exitCode}` },
  };
}
