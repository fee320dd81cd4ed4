// A user who sends requests to one app through the gateway all the time, one after the other; every failure is recorded.

import { setTimeout as sleep } from 'node:timers/promises';
import { get } from '../support/http.ts';

export interface Probed {
  asked: number;
  /** Distinct bodies of good answers, in the order in which they came. */
  bodies: string[];
  /** The time (ms after the start) and the failure. */
  failures: string[];
}

/** Sends requests until `end` is called; every answer except 200 is a failure. */
export function probe(host: string, pauseMs = 20): { end: () => Promise<Probed>; failures: () => string[] } {
  const seen: Probed = { asked: 0, bodies: [], failures: [] };
  const started = Date.now();
  const stopped = new AbortController();
  const run = (async () => {
    while (!stopped.signal.aborted) {
      seen.asked += 1;
      const answer = await get(host).catch((error: unknown) => ({ status: 0, body: (error as Error).message }));
      if (answer.status !== 200) seen.failures.push(`${Date.now() - started} ms: ${answer.status} ${answer.body.slice(0, 80)}`);
      else if (seen.bodies.at(-1) !== answer.body) seen.bodies.push(answer.body);
      await sleep(pauseMs);
    }
  })();
  return {
    failures: () => seen.failures,
    end: async () => {
      stopped.abort();
      await run;
      return seen;
    },
  };
}
