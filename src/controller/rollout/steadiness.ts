// For how long instances have been ready without a break. A version gets its first requests only when they stay so.

import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Instance } from '../instances/instances.ts';

/**
 * A kubelet may take back the readiness of a new instance for a second: the state from before its startup check can overtake the first answer to its
 * readiness check (kubernetes/kubernetes#103717). Until then its Service has no address for the gateway.
 */
const steadyMs = 1_000;

/** Whoever has crashed once some seconds after its start, and runs again, often does it again as soon. */
const relapseMs = 20_000;

/** When instances that have been restarted count as steady again, in milliseconds of their nodes' clocks; 0 when none was restarted. */
export const steadyFrom = (instances: readonly Instance[]): number =>
  Math.max(0, ...instances.map(({ restarts, startedAt = 0 }) => (restarts > 0 ? startedAt + relapseMs : 0)));

/** What is known of some instances. */
export interface Steady {
  count: number;
  /** When another one may count, in milliseconds; left out when none will. */
  lookAgainMs?: number;
}

export class Steadiness {
  /** When an instance was first seen as ready, by its uid. */
  readonly #seen = new BoundedMap<string, { readySince: number | undefined; at: number }>(10_000);

  /** How many of the instances have been ready for long enough. @param now milliseconds by the clock of every call */
  of(instances: readonly Instance[], now: number): Steady {
    const left = instances.flatMap((instance) => this.#leftOf(instance, now));
    const waiting = left.filter((ms) => ms > 0);
    const count = left.length - waiting.length;
    return waiting.length === 0 ? { count } : { count, lookAgainMs: Math.min(...waiting) };
  }

  /** Milliseconds until it counts; empty while it is not ready. */
  #leftOf({ uid, ready, ending, readySince }: Instance, now: number): number[] {
    if (!ready || ending) {
      this.#seen.delete(uid);
      return [];
    }
    const known = this.#seen.get(uid);
    // A clock that was set back begins anew.
    const isSame = known?.readySince === readySince && known !== undefined && known.at <= now;
    const { at } = isSame ? known : { at: now };
    if (!isSame) this.#seen.set(uid, { readySince, at });
    return [at + steadyMs - now];
  }
}
