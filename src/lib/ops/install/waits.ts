// Waits of setup: each names what it waits for, and a failed wait reports what was seen last.

import { stripVTControlCharacters } from 'node:util';
import { deploymentType } from '../../api/core.ts';
import { podType, type Pod } from '../../api/pod-kind.ts';
import type { ContainerStatus } from '../../api/pod.ts';
import type { KubeObject } from '../../api/object.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Report } from '../../events.ts';
import { waitFor } from '../../wait.ts';
import { describeObject, kindOf, type SetupObject } from './kinds.ts';

interface Waiter {
  cluster: Cluster;
  report: Report;
  signal?: AbortSignal;
}

interface WithConditions extends KubeObject {
  status?: { conditions?: { type: string; status: string; reason?: string; message?: string; observedGeneration?: number }[] };
}

const pollMs = 200;
/** Time to start one of setup's programs, including the pull of its image. */
export const startMs = 180_000;

/** What the scheduler or a program says, and the option of kf that helps, which they cannot name. */
const remedies: readonly (readonly [string, string])[] = [
  ['free ports', 'Another program uses port 80 or 443 of the nodes. Without https: kf setup --https off'],
  ['cloudfoundry.org/guard', 'This image of Traefik does not run the guard of kf. Without it: kf setup --gateway-guard off'],
];

const hintsAbout = (seen: string): string[] => remedies.filter(([text]) => seen.includes(text)).map(([, hint]) => hint);

/** Calls `look` until it reports done. @throws KfError `timeout` with what it saw last */
export async function waitUntilDone(
  waiter: Waiter,
  what: string,
  timeoutMs: number,
  look: () => Promise<{ done: boolean; seen: string }>,
): Promise<void> {
  let last: string | undefined;
  const isDone = async (): Promise<true | undefined> => {
    const { done, seen } = await look();
    if (done) return true;
    if (last === undefined) waiter.report({ type: 'awaiting', what });
    last = seen;
    return undefined;
  };
  const late = (): KfError =>
    new KfError('timeout', `Waited ${timeoutMs / 1000} s for ${what}. Last seen: ${last ?? ''}`, {
      hints: [...hintsAbout(last ?? ''), 'Run kf setup again: it goes on where it stopped.'],
    });
  const { signal } = waiter;
  await waitFor(isDone, { timeoutMs, intervalMs: pollMs, describe: what, late, signal });
}

/** Waits until a condition of each object is True for its current generation. */
export async function waitForCondition(waiter: Waiter, objects: SetupObject[], type: string, timeoutMs: number): Promise<void> {
  for (const object of objects) {
    const what = `${describeObject(object)} to be ${type}`;
    await waitUntilDone(waiter, what, timeoutMs, async () => {
      const live = (await waiter.cluster.get(kindOf(object), object.metadata.namespace, object.metadata.name)) as
        WithConditions | undefined;
      const condition = live?.status?.conditions?.find((candidate) => candidate.type === type);
      const isCurrent = condition?.observedGeneration === undefined || condition.observedGeneration === live?.metadata.generation;
      const seen =
        condition === undefined ? 'no such condition yet' : `${condition.status}, ${condition.reason ?? ''}: ${condition.message ?? ''}`;
      return { done: condition?.status === 'True' && isCurrent, seen };
    });
  }
}

/** The last line of a program that ended, if its pod keeps it. */
function lastWords({ state, lastState }: ContainerStatus): string {
  const text = stripVTControlCharacters((state?.terminated ?? lastState?.terminated)?.message ?? '').trim();
  return text === '' ? '' : `. It said: ${text.slice(text.lastIndexOf('\n') + 1)}`;
}

/** A sentence from the pod's own status why it does not run. */
function troubleOf(pod: Pod): string | undefined {
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled' && condition.status === 'False');
  if (scheduled?.message !== undefined) return scheduled.message;
  for (const container of pod.status?.containerStatuses ?? []) {
    const { waiting, terminated } = container.state ?? {};
    const words = lastWords(container);
    if (waiting?.message !== undefined) return `container ${container.name}: ${waiting.reason ?? ''}: ${waiting.message}${words}`;
    if (terminated !== undefined) return `container ${container.name} ended with exit code ${terminated.exitCode}${words}`;
  }
  return undefined;
}

/**
 * Waits until a Deployment's newest pods are available.
 *
 * @param isGoodEnough whether pods are accepted although they are not ready
 */
export async function waitForDeployment(
  waiter: Waiter,
  { namespace, name, timeoutMs }: { namespace: string; name: string; timeoutMs: number },
  isGoodEnough: () => Promise<boolean> = () => Promise.resolve(false),
): Promise<void> {
  await waitUntilDone(waiter, `${namespace}/${name} to run`, timeoutMs, async () => {
    const live = await waiter.cluster.get(deploymentType, namespace, name);
    const status = live?.status;
    const isObserved = status?.observedGeneration === live?.metadata.generation;
    const done =
      isObserved &&
      (status?.updatedReplicas ?? 0) >= 1 &&
      (status?.availableReplicas ?? 0) >= 1 &&
      (status?.unavailableReplicas ?? 0) === 0;
    if (done) return { done, seen: '' };
    if (isObserved && (await isGoodEnough())) return { done: true, seen: '' };
    const { items } = await waiter.cluster.list(podType, { ns: namespace, labelSelector: `app=${name}` });
    const trouble = items.map(troubleOf).find((text) => text !== undefined);
    return { done: false, seen: trouble ?? `${items.length} pod(s), not ready yet` };
  });
}
