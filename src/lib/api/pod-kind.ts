// The kind Pod, in a file of its own: only the modules that handle pods may import it (.dependency-cruiser.mjs); all others use instances.

import { resource, type KubeObject } from './object.ts';
import type { ContainerStatus, PodSpec, PodStatus } from './pod.ts';

export interface Pod extends KubeObject {
  spec?: PodSpec;
  status?: PodStatus;
}

export const podType = resource<Pod>('', 'v1', 'Pod', 'pods');

/** What a pod says of one of its containers; a sidecar is in another list than the app. */
export function statusOf(pod: Pod, container: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find(({ name }) => name === container);
}
