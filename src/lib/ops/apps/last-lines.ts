// Reads the first and last lines of a failed container. If a log cannot be read, that is not another failure.

import { linesIn, type KeptLines } from '../../api/kept-lines.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, DeploymentStatus } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { keptByKubelet, noLines, readLastRun, type ContainerPlace, type Run } from '../../kube/last-run.ts';
import type { LogEnds } from '../../kube/lines.ts';
import { readContainer } from '../instances/pods.ts';

/** A log of 10 MiB may come over a slow connection. */
const patienceMs = 10_000;

async function read(cluster: Cluster, place: ContainerPlace, signal: AbortSignal, run: Run): Promise<LogEnds> {
  const unlessRefused = (error: unknown): undefined => {
    if (!(error instanceof KfError) && !signal.aborted) throw error;
  };
  const status = await readContainer(cluster, place, signal).catch(unlessRefused);
  const ends = (await readLastRun(cluster, place, status, signal, { run }).catch(unlessRefused)) ?? noLines;
  return ends.tail.length > 0 || status === undefined || run === 'present' ? ends : keptByKubelet(status);
}

/** Lines of a run of a container, by default of the one that failed last; empty when no pod is named or nothing can be read. */
export async function readEnds(
  cluster: Cluster,
  app: Stored<CFApp>,
  place: Pick<DeploymentStatus, 'pod' | 'container'> & { run?: Run },
  signal?: AbortSignal,
): Promise<LogEnds> {
  const { pod, container = 'application', run = 'failed' } = place;
  const ns = app.metadata.namespace;
  if (pod === undefined || ns === undefined) return noLines;
  const limit = AbortSignal.timeout(patienceMs);
  return read(cluster, { ns, pod, container }, signal === undefined ? limit : AbortSignal.any([limit, signal]), run);
}

/** The lines of the failed container that the controller kept; otherwise those that can be read now. */
export async function logOfFailure(
  cluster: Cluster,
  app: Stored<CFApp>,
  failure: Pick<DeploymentStatus, 'pod' | 'container'> & KeptLines,
  signal?: AbortSignal,
): Promise<LogEnds> {
  const kept = linesIn(failure);
  return kept.tail.length > 0 ? kept : readEnds(cluster, app, failure, signal);
}
