// Limits for how long the instances of a process may hold up the drain of a node. What a user does to an app must not stop the work of an operator:
// instances that start for hours, an app that cannot be reconciled, or one whose deletion a finalizer stops.

import { statefulSetType, type StatefulSet } from '../../lib/api/core.ts';
import { labels } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFProcess } from '../../lib/api/types.generated.ts';
import { podInstances } from '../instances/pod-instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { index, type Context, type Index } from '../runtime/reconciler.ts';
import { isHeldUp } from './evacuation.ts';

/** Three instances on one node leave it one after the other, each with the longest start that cf has by default: 180 s. */
const longestMs = 600_000;
/** `kubectl drain` tries again every five seconds, so it has passed if it could. */
const reliefMs = 60_000;

/** Since when evictions are refused, in milliseconds by the API server's clock. */
export interface HeldDrain {
  since: number;
  /** Since when they are possible again. */
  freeSince?: number;
}

/** Forgets a drain that could go on for a while, and not because it could for a moment. */
export function heldDrain(known: HeldDrain | undefined, isHeld: boolean, now: number): HeldDrain | undefined {
  if (isHeld) return { since: known?.since ?? now };
  if (known === undefined) return undefined;
  const freeSince = known.freeSince ?? now;
  return now - freeSince >= reliefMs ? undefined : { ...known, freeSince };
}

/** The drain has waited long enough: the instance that holds it up may go. */
export function isOverdue(known: HeldDrain | undefined, now: number): boolean {
  return known !== undefined && known.freeSince === undefined && now - known.since >= longestMs;
}

const heldDrains = new Remembered(() => new BoundedMap<string, HeldDrain>(10_000));

/** The index that {@link lookAtDrain} needs. */
export const setsByProcess: Index = index<StatefulSet>(statefulSetType, 'process', ({ metadata }) => {
  const guid = metadata.labels?.[labels.guid];
  return guid === undefined ? [] : [`${metadata.namespace ?? ''}/${guid}`];
});

/** Whether the process has held up a drain for too long, and after how many milliseconds to look again. */
export function lookAtDrain(context: Context, { metadata }: Stored<CFProcess>): { overdue: boolean; lookAgainMs?: number } {
  const { namespace, name, uid } = metadata;
  const instances = podInstances(context).of(namespace, name, () => ({ startSeconds: 0 }));
  const present = new Set(instances.map(({ owner }) => owner));
  const sets: Stored<StatefulSet>[] = context.stores.of(statefulSetType).by(setsByProcess.name, `${namespace}/${name}`);
  const wanted = sets.filter((set) => present.has(set.metadata.uid)).reduce((sum, { spec }) => sum + (spec?.replicas ?? 1), 0);
  const now = context.now();
  const memory = context.memory.of(heldDrains);
  const known = heldDrain(memory.get(uid), isHeldUp(instances, wanted), now);
  if (known === undefined) {
    memory.delete(uid);
    return { overdue: false };
  }
  memory.set(uid, known);
  const next = known.freeSince === undefined ? known.since + longestMs : known.freeSince + reliefMs;
  return { overdue: isOverdue(known, now), ...(next > now ? { lookAgainMs: next - now } : {}) };
}
