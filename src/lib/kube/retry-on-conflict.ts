// Changes under the version that was read: whoever was overtaken reads again and decides anew, as client-go's RetryOnConflict does.

import { sleep, throwIfAborted } from '../wait.ts';
import { isConflict } from './errors.ts';

/** As long as others keep changing an object; twenty commands at once need a few seconds to get past each other. */
const patienceMs = 30_000;
/** Each conflict after the first waits a random time up to this, so that many at once do not meet again. */
const spreadMs = 250;

/**
 * Writes a change of an object that was read, again and again while others are faster.
 * @param change writes with the version of what it is given
 * @param readAgain the object as it is now; throws when it is gone
 * @throws KubeError 409 when others have been faster for 30 s, and what both functions throw
 */
export async function retryOnConflict<T, R>(
  first: T,
  change: (live: T) => Promise<R>,
  readAgain: () => Promise<T>,
  signal?: AbortSignal,
): Promise<R> {
  let contestedSince: number | undefined;
  for (let live = first; ; live = await readAgain()) {
    throwIfAborted(signal);
    try {
      return await change(live);
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (contestedSince === undefined) contestedSince = performance.now();
      else if (performance.now() - contestedSince > patienceMs) throw error;
      else await sleep(Math.random() * spreadMs, signal);
    }
  }
}
