// Since when an instance is in its state. The controller writes it to the status, and the CLI shows it of pods that the status does not list.

import type { Pod } from './pod-kind.ts';
import type { ContainerStatus } from './pod.ts';

const changed = ({ status }: Pod, condition: string): string | undefined =>
  status?.conditions?.find(({ type }) => type === condition)?.lastTransitionTime;

/** Of one that is ready. */
export const runningSince = (pod: Pod): string | undefined => changed(pod, 'Ready');

/**
 * Of one that is not ready: since its program runs, or since it was ready in this run, and before that since it has a node.
 * @param status of the app's container
 */
export function startingSince(pod: Pod, status: ContainerStatus | undefined): string | undefined {
  const startedAt = status?.state?.running?.startedAt;
  if (startedAt === undefined) return changed(pod, 'PodScheduled');
  const notReadySince = status?.started === true ? changed(pod, 'Ready') : undefined;
  return notReadySince !== undefined && notReadySince > startedAt ? notReadySince : startedAt;
}
