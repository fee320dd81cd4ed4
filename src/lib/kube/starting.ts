// An API server that has started again reads the schemas of other kinds than its own every 5 s.

import { sleep } from '../wait.ts';
import { KubeError } from './errors.ts';

const patienceMs = 20_000;
const pauseMs = 500;
const notLoaded = 'There can be a delay between when CustomResourceDefinitions are created and when they are available';

/** True for a 503 of a policy that sets fields, as long as the server has not read the kind's schema. Nothing was written then. */
function isNotLoaded(error: unknown): boolean {
  return error instanceof KubeError && error.status === 503 && error.message.includes(notLoaded);
}

/** The answer of a server that knows the kind: asks again while it still reads schemas. @throws the error of the last try */
export async function onceLoaded<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const started = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isNotLoaded(error) || performance.now() - started > patienceMs) throw error;
      await sleep(pauseMs, signal);
    }
  }
}
