// The last lines of a container that failed, the previous one's too. A log that cannot be read is no further failure.

import type { CFApp, DeploymentStatus } from '../api/types.generated.ts';
import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { endOf } from '../kube/lines.ts';

const tailLines = 20;
const lineLimit = 500;
const patienceMs = 5000;

interface Place {
  ns: string;
  pod: string;
  container: string;
}

async function read(cluster: Cluster, { ns, pod, container }: Place, previous: boolean, signal: AbortSignal): Promise<string[]> {
  try {
    const body = (await cluster.logs(ns, pod, { container, previous, tailLines, signal })) as AsyncIterable<Buffer>;
    const text = (await endOf(body, 64 * 1024)).toString('utf8');
    return text.split('\n').filter((line) => line !== '');
  } catch (error) {
    if (error instanceof KfError || signal.aborted) return [];
    throw error;
  }
}

/** Of the pod that the deployment names; empty when it names none or nothing can be read. */
export async function lastLines(cluster: Cluster, app: CFApp, deployment: DeploymentStatus, signal?: AbortSignal): Promise<string[]> {
  const { pod, container = 'application' } = deployment;
  const ns = app.metadata.namespace;
  if (pod === undefined || ns === undefined) return [];
  const limit = AbortSignal.timeout(patienceMs);
  const both = signal === undefined ? limit : AbortSignal.any([limit, signal]);
  const place = { ns, pod, container };
  const [before, now] = await Promise.all([read(cluster, place, true, both), read(cluster, place, false, both)]);
  return [...before, ...now].slice(-tailLines).map((line) => line.slice(0, lineLimit));
}
