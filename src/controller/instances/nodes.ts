// What instances, tasks and builds need to know of the nodes that they run on: does one still answer, and is it being emptied.

import { nodeType, type Node } from '../../lib/api/core.ts';
import type { Stored } from '../../lib/api/object.ts';
import { podType, type Pod } from '../../lib/api/pod-kind.ts';
import { isNamespaceEnding } from '../runtime/namespace-refusals.ts';
import { index, watch, type Context, type Index, type Stores, type Watch } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';

/** A node that has been silent for this long does not stop its pods any more. */
const silentNodeMs = 40_000;
/** A pod gets this long beyond its termination grace period before the controller looks at its node. */
const overdueMs = 1_000;
const lookAgainMs = 10_000;

const podsByNode: Index = index<Pod>(podType, 'node', ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]));

/** The index that {@link watchNodes} needs. */
export const nodeIndexes: readonly Index[] = [podsByNode];

/**
 * How long a node that went away or came back may yet take a pod. After a restart of the API server, those who judge nodes read them again only after
 * some 30 s, a kubelet reports every 10 s, and the scheduler tries a pod again within 10 s of the time at which the node's taint is gone.
 */
const returnMs = 60_000;
/** Of a node that does not report that it is ready (kubernetes.io/docs/reference/labels-annotations-taints). */
export const awayTaints: ReadonlySet<string> = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);

const readyOf = ({ status }: Node) => status?.conditions?.find(({ type }) => type === 'Ready');
/** Undefined too when the node does not say it: nobody may be sure then that it is silent for long. */
const silentSince = (node: Node): number | undefined => {
  const ready = readyOf(node);
  return ready?.status === 'Unknown' ? Date.parse(ready.lastTransitionTime ?? '') || undefined : undefined;
};

/** A change of what is asked here of a node queues the keys of the pods on it; kubelets write much else there. */
export function watchNodes(keys: (pod: Stored<Pod>) => readonly string[]): Watch {
  const of = ({ metadata }: Stored<Node>, stores: Stores): string[] => {
    const pods: Stored<Pod>[] = stores.of(podType).by(podsByNode.name, metadata.name);
    return [...new Set(pods.flatMap(keys))];
  };
  const facts = (node: Node): string => JSON.stringify([silentSince(node), node.spec?.unschedulable === true]);
  return { ...watch<Node>(nodeType, of), only: (before, after) => facts(before) !== facts(after) };
}

/** Milliseconds by the API server's clock since when the cluster has not heard of the node; undefined for one that answers. */
export function lostSince(stores: Stores, name: string | undefined): number | undefined {
  const node = stores.of(nodeType).get(undefined, name ?? '');
  return node === undefined ? undefined : silentSince(node);
}

/** Nodes that went away or came back a moment ago, and may take a pod that no node takes now. */
export interface NodesInMotion {
  /** Names of those that are not ready. */
  away: string[];
  /** Milliseconds by the API server's clock until which one of all these nodes may still take the pod. */
  until: number;
}

/** The nodes that may take a pod soon: those that are not ready, whenever they went, and until when to wait for them or for the scheduler. */
export function nodesInMotion(stores: Stores): NodesInMotion {
  const away: string[] = [];
  let until = 0;
  for (const node of stores.of(nodeType).list()) {
    if (node.spec?.unschedulable === true) continue;
    const ready = readyOf(node);
    const changed = Date.parse(ready?.lastTransitionTime ?? '') || 0;
    const isAway = ready?.status !== 'True' || node.spec?.taints?.some(({ key }) => awayTaints.has(key)) === true;
    if (isAway) away.push(node.metadata.name);
    until = Math.max(until, changed + returnMs);
  }
  return { away, until };
}

/** True for a node that takes no new pods: its operator empties it, or is about to. */
export function isLeaving(stores: Stores, name: string | undefined): boolean {
  return stores.of(nodeType).get(undefined, name ?? '')?.spec?.unschedulable === true;
}

/** Milliseconds until a node counts as silent for good, read from the API server; undefined while it answers. */
async function untilSilent(context: Context, name: string): Promise<number | undefined> {
  const node = await context.cluster.get(nodeType, undefined, name, context.signal);
  if (node === undefined) return 0;
  const since = silentSince(node);
  return since === undefined ? undefined : Math.max(0, since + silentNodeMs - context.now());
}

/**
 * When a pod that should be gone may be removed although nobody confirms its end: it is overdue, and its node is silent.
 * @param goneBy milliseconds by the API server's clock at which it should be gone; undefined for one whose end has not begun
 * @returns milliseconds until the next look; 0 when it may be removed now; undefined when its end has not begun
 */
export async function untilAbandoned(
  context: Context,
  { goneBy, node }: { goneBy?: number | undefined; node?: string | undefined },
): Promise<number | undefined> {
  if (goneBy === undefined) return undefined;
  const left = goneBy + overdueMs - context.now();
  if (left > 0) return left;
  const wait = node === undefined ? undefined : await untilSilent(context, node);
  return wait ?? lookAgainMs;
}

/** {@link untilAbandoned} for a pod. */
export function untilPodAbandoned(context: Context, pod: Stored<Pod> | undefined): Promise<number | undefined> {
  const { deletionTimestamp } = pod?.metadata ?? {};
  const goneBy = deletionTimestamp === undefined ? undefined : Date.parse(deletionTimestamp);
  return untilAbandoned(context, { goneBy, node: pod?.spec?.nodeName });
}

/** Removes a pod whose node is silent. A pod of the same name that came later stays. */
export async function abandonPod(context: Context, { metadata: { namespace, name, uid }, spec }: Stored<Pod>): Promise<void> {
  await context.cluster.delete(podType, namespace, name, { uid, gracePeriodSeconds: 0, signal: context.signal });
  context.log.warn('pod on a silent node deleted', { pod: name, node: spec?.nodeName });
}

/**
 * Removes pods of something that is over, or gone, which their nodes do not end; until then they count in the quota. In a namespace that is being deleted
 * they stay until their nodes answer: the right to delete them was in the namespace, and went first.
 */
export async function abandonPods(context: Context, pods: readonly Stored<Pod>[]): Promise<Result | undefined> {
  const waits: number[] = [];
  for (const pod of pods) {
    if (isNamespaceEnding(context.stores, pod.metadata.namespace)) {
      waits.push(lookAgainMs);
      continue;
    }
    const wait = await untilPodAbandoned(context, pod);
    if (wait === 0) await abandonPod(context, pod);
    else if (wait !== undefined) waits.push(wait);
  }
  return waits.length === 0 ? undefined : { requeueAfterMs: Math.min(...waits) };
}

/** What is said of something that ran on a node that does not answer. */
export const lostNodeText = (name: string | undefined): string => `Node '${name ?? ''}' does not answer`;
