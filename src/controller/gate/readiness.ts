// Reports to a kubelet's probe whether the registry can be used.

import { request as httpRequest } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Capacity } from './capacity.ts';

/** Where the registry listens: plain HTTP within the pod. */
export type Upstream = { host: string; port: number } | { socketPath: string };

/** Less than the second that a kubelet waits for a probe. */
const registryPatienceMs = 900;

/** Why the registry behind the gate cannot be used now. */
function registryProblem(upstream: Upstream): Promise<string | undefined> {
  return new Promise((resolve) => {
    const asked = httpRequest({ ...upstream, path: '/v2/', agent: false, timeout: registryPatienceMs }, ({ statusCode = 0 }) => {
      asked.destroy();
      resolve(statusCode === 200 ? undefined : `the registry answers ${statusCode}`);
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', (error) => resolve(`the registry does not answer: ${error.message}`));
    asked.end();
  });
}

/**
 * Not ready when the registry does not answer, or when uploads are refused because the volume is full, so that operators see it in the status of
 * the pod. Reads still work when the volume is full.
 */
export function readiness({ capacity, upstream }: { capacity: Capacity; upstream: Upstream }): (response: ServerResponse) => void {
  // Anybody may send this request, so concurrent ones share one request to the registry.
  let asked: Promise<string | undefined> | undefined;
  const problem = async (): Promise<string | undefined> => {
    const [{ nearlyFull }, ofRegistry] = await Promise.all([capacity.status(), registryProblem(upstream)]);
    return ofRegistry ?? (nearlyFull ? 'nearly full: uploads are refused' : undefined);
  };
  return (response) => {
    asked ??= problem()
      .catch((error: unknown) => String(error))
      .finally(() => (asked = undefined));
    void asked.then((unready) =>
      response.writeHead(unready === undefined ? 200 : 503, { 'content-type': 'text/plain' }).end(unready ?? 'ok'),
    );
  };
}
