// What only time tells of a pod: since when a cause without a time of its own has been seen on it, and whether enough was seen to go by that.

import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import type { Context } from '../runtime/reconciler.ts';

/** More pods than can wait for an image at the same time: the patience of a pod that is forgotten at every look would never end. */
const rememberedPods = 10_000;
/** After a gap in the watch, kubelets need this long to report what happened in the meantime (they repeat a status every 10 s). */
const kubeletCatchUpMs = 12_000;

/**
 * When each cause was first seen on a pod, by the pod's uid: the state of a waiting container has no time. What is forgotten is seen again, and its
 * patience begins again.
 */
const causesSeen = new Remembered(() => new BoundedMap<string, Map<string, number>>(rememberedPods));

/** The causes that were seen on one pod. */
export interface SeenCauses {
  /** When the cause was first seen, in milliseconds by the API server's clock: now for one that was not seen before. */
  firstSeen: (cause: string) => number;
  /** True for a cause that {@link firstSeen} was asked for. */
  wasSeen: (cause: string) => boolean;
}

export function causesSeenOn(context: Context, uid: string, now: number): SeenCauses {
  const pods = context.memory.of(causesSeen);
  return {
    firstSeen: (cause) => {
      const causes = pods.get(uid) ?? new Map<string, number>();
      if (!pods.has(uid)) pods.set(uid, causes);
      const at = causes.get(cause) ?? now;
      causes.set(cause, at);
      return at;
    },
    wasSeen: (cause) => pods.get(uid)?.has(cause) === true,
  };
}

/** For a pod that has overcome its causes: one that comes back later gets its whole patience again. */
export function forgetCauses(context: Context, uid: string): void {
  context.memory.of(causesSeen).delete(uid);
}

/**
 * Milliseconds until a conclusion from elapsed time counts; 0 or less when it does. It counts only when the controller missed nothing in that time.
 * @param steadySince since when every change of a pod has been seen
 */
export function untilCaughtUp(steadySince: number, now: number): number {
  return steadySince + kubeletCatchUpMs - now;
}
