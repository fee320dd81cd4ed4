// Advice for an app whose health check fails, by the kubelet's words about the check. Pure.

import type { Expectations } from './instances.ts';

const listen = 'The app must listen on 0.0.0.0 at the port in $PORT, not on 127.0.0.1.';

/** The check did not get as far as a connection, and nobody refused it either. */
const notConnected = /\bdial \S+ \S+: (i\/o timeout|connect: (connection timed out|no route to host))|while waiting for connection/;

/**
 * Sentences on why a check got no good answer and on what helps. The kubelet's words come from its HTTP and TCP probers (kubernetes/pkg/probe):
 * `dial tcp …: connect: connection refused`, `dial tcp …: i/o timeout`, `HTTP probe failed with statuscode: 404`, `… context deadline exceeded …`.
 */
export function whyUnanswered(said: string | undefined, { port, path }: Expectations): string {
  if (said === undefined) return listen;
  const quoted = `The last check said: ${said}`;
  const status = /HTTP probe failed with statuscode: (\d{3})/.exec(said)?.[1];
  if (status !== undefined) {
    const answer = `The app listens on port ${String(port)}, but GET ${path ?? '/'} is answered with ${status}; a health check needs 200 to 399.`;
    return `${answer} Another path: health-check-http-endpoint in the manifest, or '-u port' for a check of the port alone.`;
  }
  if (said.includes('connection refused')) return `Nothing answers at that port from outside of the app's container. ${listen} ${quoted}`;
  if (notConnected.test(said))
    return `The connection was not accepted: nothing answers at that address and port, the network drops the packets, or the app is too busy to accept it. ${quoted}`;
  if (/deadline exceeded|timeout|Timeout/.test(said))
    return `The app takes connections but is too slow to answer: health-check-invocation-timeout in the manifest gives it longer. ${quoted}`;
  return quoted;
}
