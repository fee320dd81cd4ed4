// Changes with the version that was read as a precondition. After a conflict the object is read again and the change computed again, like
// client-go's RetryOnConflict.

import { sleep, throwIfAborted } from '../wait.ts';
import { isConflict } from './errors.ts';

/** Limit for a series of conflicts. Twenty commands at the same time need a few seconds until all have written. */
const patienceMs = 30_000;
/** Each retry after the first conflict waits a random time up to this, so that concurrent writers do not collide again. */
const spreadMs = 250;

/**
 * Writes a change of an object that was read, and repeats it after conflicts.
 * @param change writes with the version of the object that it gets
 * @param readAgain the object as it is now; throws when it is gone
 * @throws KubeError 409 after 30 s of conflicts, and the errors of both functions
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
