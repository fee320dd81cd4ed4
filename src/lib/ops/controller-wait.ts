// Waits for the controller: one that has not shown itself is taken for absent, and the wait ends early.

import { KfError } from '../errors.ts';

/** A controller that has not taken up a change by then is taken for absent. */
export const absentAfterMs = 6000;

/** The controller's sentence as the end of one of ours. */
export function awaitedIn(message: string): string {
  return message
    .replace(/^Waiting for /, '')
    .replace(/^(?:The|An?) /, (article) => article.toLowerCase())
    .replace(/\.$/, '');
}

/**
 * Runs a wait that ends early when nobody seems to be there.
 * @param wait calls `alive` as soon as the controller has shown itself
 * @returns undefined when it never did
 */
export async function unlessAbsent<T>(
  signal: AbortSignal,
  wait: (signal: AbortSignal, alive: () => void) => Promise<T>,
  patienceMs = absentAfterMs,
): Promise<T | undefined> {
  const absent = new AbortController();
  const timer = setTimeout(() => absent.abort(new KfError('accepted', 'No controller has taken up the change.')), patienceMs);
  try {
    return await wait(AbortSignal.any([signal, absent.signal]), () => clearTimeout(timer));
  } catch (error) {
    if (absent.signal.aborted && !signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
