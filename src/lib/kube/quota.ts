// What a quota of the namespace refuses for a moment only: the API server counts each object before it makes it.

import { backoffMs, sleep } from '../wait.ts';
import { isConflict, KubeError } from './errors.ts';

const pauses = { baseMs: 100, maxMs: 1_000 };
const mostQuotaTries = 12;

/** The quota is too new: the cluster has not counted for it yet. */
const isUncounted = (error: unknown): boolean => error instanceof KubeError && error.message.includes('status unknown for quota');

/** So many objects were made beside this one that the API server gave up writing down its count. Nothing was made. */
const isOvertaken = (error: unknown): boolean => isConflict(error) && error.body?.details?.kind === 'resourcequotas';

/** Sends a create again while a quota of the namespace cannot be counted with. */
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
