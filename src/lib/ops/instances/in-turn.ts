// Ends the instances of a process in turn, so that the others serve meanwhile. The process' StatefulSets create them again.

import { labels } from '../../api/group.ts';
import { podType, type Pod } from '../../api/pod-kind.ts';
import type { Stored } from '../../api/object.ts';
import type { CFProcess } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { watchUntil } from '../../kube/watch-list.ts';
import type { SpaceSession } from '../../session/session.ts';
import { throwIfAborted } from '../../wait.ts';
import { isReady } from './pods.ts';

/** How the instances of a process are ended. */
export interface Turns {
  process: Stored<CFProcess>;
  /** The number of instances that should run. */
  replicas: number;
  /** How long the next instance may take to become ready. */
  timeoutMs: number;
  /** Called before one is ended. */
  mayEnd: () => Promise<boolean>;
  /** Called before the only instance is ended: nothing serves meanwhile. */
  onlyOne: () => void;
}

const indexOf = ({ metadata }: Stored<Pod>): number => Number(metadata.labels?.[labels.podIndex] ?? metadata.name.split('-').at(-1));

async function endInstance({ cluster, space, signal }: SpaceSession, { metadata: { name, uid } }: Stored<Pod>): Promise<void> {
  try {
    await cluster.delete(podType, space.guid, name, { uid, signal });
  } catch (error) {
    // Its successor has the name already.
    if (!(error instanceof KfError && error.code === 'conflict')) throw error;
  }
}

/** Waits until as many instances are ready. The status of their set still counts the ended ones for a moment, so the pods themselves count. */
async function waitForReady(
  { cluster, space, signal, report }: SpaceSession,
  { process, timeoutMs }: Turns,
  { wanted, ended }: { wanted: number; ended: ReadonlySet<string> },
): Promise<void> {
  const serves = (pod: Stored<Pod>): boolean =>
    isReady(pod) && !ended.has(pod.metadata.uid) && pod.metadata.deletionTimestamp === undefined;
  const check = (pods: readonly Stored<Pod>[]): true | undefined => {
    const ready = pods.filter(serves).length;
    if (ready >= wanted) return true;
    report({ type: 'instances-starting', ready, wanted });
    return undefined;
  };
  const target = { ns: space.guid, selector: `${labels.guid}=${process.metadata.name}` };
  try {
    await watchUntil(cluster, podType, target, check, { timeoutMs, signal, describe: `${wanted} ready instances` });
  } finally {
    report({ type: 'done' });
  }
}

/**
 * Ends all present instances of a process. Those that are not ready come first and together: nobody misses them. Each other one is ended when as many
 * as before are ready again, the highest index first, as a StatefulSet does it.
 * @returns false when `mayEnd` forbade to end another one
 * @throws KfError `timeout` when not all are ready in time; no other one is ended then
 */
export async function endInTurn(session: SpaceSession, turns: Turns): Promise<boolean> {
  const { cluster, space, signal } = session;
  const selector = `${labels.guid}=${turns.process.metadata.name}`;
  const { items } = await cluster.list(podType, { ns: space.guid, labelSelector: selector, signal });
  const pods = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const ready = pods.filter(isReady).toSorted((a, b) => indexOf(b) - indexOf(a));
  const others = pods.filter((pod) => !isReady(pod));
  const wanted = Math.max(turns.replicas, ready.length);
  const ended = new Set<string>();
  // Instances that are missing or ending are waited for in the first turn, also when it ends none.
  for (const group of [others, ...ready.map((pod) => [pod])]) {
    throwIfAborted(signal);
    if (!(await turns.mayEnd())) return false;
    if (wanted === 1 && group !== others) turns.onlyOne();
    for (const { metadata } of group) ended.add(metadata.uid);
    await Promise.all(group.map((pod) => endInstance(session, pod)));
    await waitForReady(session, turns, { wanted, ended });
  }
  return true;
}
