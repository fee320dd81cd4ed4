// Repeats creates that a quota of the namespace refuses only for a moment: the API server counts each object before it creates it.

import { backoffMs, sleep } from '../wait.ts';
import { isConflict, KubeError } from './errors.ts';

const pauses = { baseMs: 100, maxMs: 1_000 };
const mostQuotaTries = 12;

/** The quota is too new: the cluster has not counted its objects yet. */
const isUncounted = (error: unknown): boolean => error instanceof KubeError && error.message.includes('status unknown for quota');

/** So many objects were created at the same time that the API server gave up updating the count. Nothing was created. */
const isOvertaken = (error: unknown): boolean => isConflict(error) && error.body?.details?.kind === 'resourcequotas';

/** Repeats a create while a quota of the namespace cannot be evaluated. */
export async function onceQuotaCounts<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (tries >= mostQuotaTries || !(isUncounted(error) || isOvertaken(error))) throw error;
      await sleep(backoffMs(tries - 1, pauses), signal);
    }
  }
}
