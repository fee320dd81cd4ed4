// Signals the registry container of a build that the build container has ended. Only the kubelet's status counts, and no container of the pod can
// give this signal.

import type { Stored } from '../../lib/api/object.ts';
import { podType } from '../../lib/api/pod-kind.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import { annotations } from '../../lib/api/group.ts';
import { buildContainers } from '../../templates/build-job.ts';
import { released } from '../../templates/build-scripts.ts';
import type { Context } from '../runtime/reconciler.ts';

/** The signal for the registry container, or undefined while code of the build may still run. */
export function releaseOf(pod: Pod): string | undefined {
  const ended = pod.status?.containerStatuses?.find(({ name }) => name === buildContainers.build)?.state?.terminated;
  if (ended === undefined) return undefined;
  return ended.exitCode === 0 ? released.built : released.failed;
}

/**
 * Writes the signal to the pod, once. The kubelet copies the annotation into the container's volume at its next sync of the pod, which this write
 * causes.
 */
export async function releaseExport(context: Context, pod: Stored<Pod>): Promise<void> {
  const { namespace, name, uid } = pod.metadata;
  const signal = releaseOf(pod);
  if (signal === undefined || pod.metadata.annotations?.[annotations.buildEnded] === signal) return;
  const patch = { metadata: { uid, annotations: { [annotations.buildEnded]: signal } } };
  await context.cluster.mergePatch(podType, namespace, name, patch, { signal: context.signal });
}
