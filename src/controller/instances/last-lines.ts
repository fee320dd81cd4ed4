// Reads the last lines of a container that has ended, before its pod goes. A log that cannot be read never stops a verdict.

import type { Stored } from '../../lib/api/object.ts';
import type { ContainerStatus } from '../../lib/api/pod.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import { messageOf } from '../../lib/errors.ts';
import { isNotFound } from '../../lib/kube/errors.ts';
import { keptByKubelet, noLines, readLastRun, type ReadRun } from '../../lib/kube/last-run.ts';
import type { EndsSize, LogEnds } from '../../lib/kube/lines.ts';
import type { Context } from '../runtime/reconciler.ts';
import { lostNodeText, lostSince } from './nodes.ts';

/** A kubelet that does not answer must not hold up the verdict, nor the worker that waits for it. */
const logPatienceMs = 5_000;
const podGone = 'The pod was gone before its last lines were read.';

export interface LastLines {
  log: LogEnds;
  /** One sentence: why there are none, although there may have been some. */
  lost?: string;
}

interface Place {
  ns: string;
  pod: string;
}

async function readLog(context: Context, { ns, pod }: Place, status: ContainerStatus, how?: ReadRun): Promise<LastLines> {
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(logPatienceMs)]);
    return { log: await readLastRun(context.cluster, { ns, pod, container: status.name }, status, signal, how) };
  } catch (error) {
    context.log.debug('no last lines', { pod, error: messageOf(error) });
    return { log: noLines, lost: isNotFound(error) ? podGone : 'The log of the pod could not be read.' };
  }
}

async function orOfKubelet(read: LastLines, status: ContainerStatus, size?: EndsSize): Promise<LastLines> {
  if (read.log.tail.length > 0) return read;
  const log = await keptByKubelet(status, size);
  return log.tail.length > 0 ? { log } : read;
}

/** The last lines of a container by its log, otherwise those that its kubelet keeps of the run that failed. @param status of a container that has run */
export async function lastLines(
  context: Context,
  place: Place,
  status: ContainerStatus | undefined,
  how: ReadRun = {},
): Promise<LastLines> {
  if (status === undefined) return { log: noLines };
  const read = await readLog(context, place, status, how);
  return how.run === 'present' ? read : orOfKubelet(read, status, how.size);
}

/** {@link lastLines} for the pod of a task or a build, which may be gone. The kubelet of a silent node is not asked. */
export async function lastLinesOfPod(
  context: Context,
  pod: Stored<Pod> | undefined,
  container: string | undefined,
  size?: EndsSize,
): Promise<LastLines> {
  if (pod === undefined) return { log: noLines, lost: podGone };
  const { namespace: ns, name } = pod.metadata;
  const status = pod.status?.containerStatuses?.find((one) => one.name === container);
  if (status === undefined) return { log: noLines };
  if (status.containerID === undefined) return orOfKubelet({ log: noLines }, status, size);
  const { nodeName } = pod.spec ?? {};
  return lostSince(context.stores, nodeName) === undefined
    ? lastLines(context, { ns, pod: name }, status, { size })
    : orOfKubelet({ log: noLines, lost: `${lostNodeText(nodeName)}.` }, status, size);
}
