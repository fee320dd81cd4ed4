// Instances that are not ready at the moment, and may be soon. A change keeps the version before for a while because of them.

import { BoundedMap } from '../runtime/bounded-map.ts';
import type { Instance } from '../instances/instances.ts';
import { statusLagMs } from '../instances/pod-state.ts';

/** An instance that is not ready for longer does not come back soon. */
const lapseMs = 20_000;

/**
 * Since when it is not ready, in milliseconds by the clock of its node; undefined when it is ready, ends, or was not ready in this run: a crash is no
 * lapse, also when its program runs again.
 */
function lapsedSince({ ready, ending, state, since, startedAt, restarts, problem }: Instance): number | undefined {
  const at = Date.parse(since ?? '');
  if (ready || ending || startedAt === undefined || Number.isNaN(at)) return undefined;
  if (problem?.cause === 'node-lost') return at;
  if (state !== 'STARTING' || (problem !== undefined && problem.ofPresentRun !== true)) return undefined;
  return at > startedAt + (restarts > 0 ? statusLagMs : 0) ? at : undefined;
}

/**
 * Its program starts for the first time, has been ready at no time, and still has time to answer: its version was started again, or the instance was made
 * anew. One that has crashed does not count.
 */
export function isFirstStart(instance: Instance): boolean {
  const { ready, ending, state, restarts, problem } = instance;
  const mayAnswer = problem === undefined || (problem.reason === 'HealthCheckFailed' && !problem.final);
  return !ready && !ending && state === 'STARTING' && restarts === 0 && mayAnswer && lapsedSince(instance) === undefined;
}

/**
 * None of its instances is ready, and one of them starts for the first time: if the version has served, it is mostly there in place of a change that failed.
 * A new version that has no room beside it gets its room.
 */
export function startsAgain(instances: readonly Instance[]): boolean {
  return !instances.some(({ ready }) => ready) && instances.some(isFirstStart);
}

export class Lapses {
  /** When a lapse was first seen, by the uid of its instance: the clock of a node may be ahead. */
  readonly #seen = new BoundedMap<string, { since: number; at: number }>(10_000);

  /**
   * How long one of the instances may still come back, in milliseconds; undefined when none has lapsed a short time ago.
   * @param now milliseconds by the clock of every call
   */
  leftOf(instances: readonly Instance[], now: number): number | undefined {
    const left = instances.flatMap((instance) => this.#leftOf(instance, now)).filter((ms) => ms > 0);
    return left.length === 0 ? undefined : Math.max(...left);
  }

  #leftOf(instance: Instance, now: number): number[] {
    const since = lapsedSince(instance);
    if (since === undefined) {
      this.#seen.delete(instance.uid);
      return [];
    }
    const known = this.#seen.get(instance.uid);
    // A clock that was set back begins anew.
    const { at } = known?.since === since && known.at <= now ? known : { at: now };
    this.#seen.set(instance.uid, { since, at });
    return [Math.min(since, at) + lapseMs - now];
  }
}
