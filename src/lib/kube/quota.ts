// A quota that was just made: the API server refuses objects until the cluster has counted for it.

import { sleep } from '../wait.ts';
import { KubeError } from './errors.ts';

const quotaPauseMs = 200;
const mostQuotaTries = 10;

/** Sends a create again while a quota of the namespace is too new to be counted with, which takes a moment. */
export async function onceQuotaCounts<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      if (tries >= mostQuotaTries || !(error instanceof KubeError) || !error.message.includes('status unknown for quota')) throw error;
      await sleep(quotaPauseMs, signal);
    }
  }
}
