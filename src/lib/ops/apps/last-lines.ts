// Reads the first and last lines of a failed container, also of its previous run. If a log cannot be read, that is not another failure.

import type { Stored } from '../../api/object.ts';
import type { CFApp, DeploymentStatus } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { endsOf, linesFrom, upTo, type LogEnds } from '../../kube/lines.ts';

const longestLine = 4096;
const mostBytes = 1024 * 1024;
const patienceMs = 5000;
const none: LogEnds = { head: [], omitted: 0, tail: [] };

interface Place {
  ns: string;
  pod: string;
  container: string;
}

async function read(cluster: Cluster, { ns, pod, container }: Place, previous: boolean, signal: AbortSignal): Promise<string[]> {
  try {
    const body = (await cluster.logs(ns, pod, { container, previous, signal })) as AsyncIterable<Buffer>;
    const lines: string[] = [];
    for await (const line of linesFrom(upTo(body, mostBytes), { keepRest: true, longest: longestLine })) lines.push(line);
    return lines;
  } catch (error) {
    if (error instanceof KfError || signal.aborted) return [];
    throw error;
  }
}

/** Lines of a pod, also of the previous run of its container; empty when none is named or nothing can be read. */
export async function readEnds(
  cluster: Cluster,
  app: Stored<CFApp>,
  deployment: Pick<DeploymentStatus, 'pod' | 'container'>,
  signal?: AbortSignal,
): Promise<LogEnds> {
  const { pod, container = 'application' } = deployment;
  const ns = app.metadata.namespace;
  if (pod === undefined || ns === undefined) return none;
  const limit = AbortSignal.timeout(patienceMs);
  const both = signal === undefined ? limit : AbortSignal.any([limit, signal]);
  const place = { ns, pod, container };
  const [before, now] = await Promise.all([read(cluster, place, true, both), read(cluster, place, false, both)]);
  return endsOf([...before, ...now]);
}

/** The lines of the failed container that the controller kept; otherwise those that can be read now. */
export async function logOfFailure(
  cluster: Cluster,
  app: Stored<CFApp>,
  deployment: DeploymentStatus,
  signal?: AbortSignal,
): Promise<LogEnds> {
  const { logHead: head = [], logOmitted: omitted = 0, logTail: tail = [] } = deployment;
  return tail.length > 0 ? { head, omitted, tail } : readEnds(cluster, app, deployment, signal);
}
