// What helps against a failed check, by the kubelet's words about it, and the cause of an end by the app's last lines. Pure.

import { causeWithLines, isNamed, portIn } from '../../lib/api/causes.ts';
import { isRefused, isUnconnected, statusIn } from '../../lib/api/check-words.ts';
import type { LogEnds } from '../../lib/kube/lines.ts';
import type { Expectations, Problem } from './instances.ts';

const listen = 'The app must listen on 0.0.0.0 at the port in $PORT, not on 127.0.0.1.';

/**
 * Sentences on why a check got no good answer and on what helps. The kubelet's words come from its HTTP and TCP probers (kubernetes/pkg/probe):
 * `dial tcp …: connect: connection refused`, `dial tcp …: i/o timeout`, `HTTP probe failed with statuscode: 404`, `… context deadline exceeded …`.
 * @param isOwn the check is one of the readiness, with settings of its own
 */
export function whyUnanswered(said: string | undefined, { port, path }: Partial<Expectations>, isOwn = false): string {
  if (said === undefined) return listen;
  const quoted = `The last check said: ${said}`;
  const attributes = isOwn ? 'readiness-health-check' : 'health-check';
  const status = statusIn(said);
  if (status !== undefined) {
    const answer = `The app listens on port ${String(port)}, but GET ${path ?? '/'} is answered with ${status}; a health check needs 200 to 399.`;
    const alone = isOwn ? '' : ", or '-u port' for a check of the port alone";
    return `${answer} Another path: ${attributes}-http-endpoint in the manifest${alone}.`;
  }
  if (isRefused(said)) return `Nothing answers at that port from outside of the app's container. ${listen} ${quoted}`;
  if (isUnconnected(said))
    return `The connection was not accepted: nothing answers at that address and port, the network drops the packets, or the app is too busy to accept it. ${quoted}`;
  if (/deadline exceeded|timeout|Timeout/.test(said))
    return `The app takes connections but is too slow to answer: ${attributes}-invocation-timeout in the manifest gives it longer. ${quoted}`;
  return quoted;
}

/**
 * The problem, now that the lines of the container are known: nothing answers at the expected port, and the app says that it listens on another one; or
 * its shell says that the command is missing.
 */
export function withLines(problem: Problem, log: LogEnds | undefined, { port }: Expectations): Problem {
  const lines = log === undefined ? [] : [...log.head, ...log.tail];
  if (problem.cause !== 'not-listening') return { ...problem, cause: causeWithLines(problem.cause, problem.exitCode, lines) };
  const other = portIn(lines);
  if (other === undefined || port === undefined || isNamed(port, lines)) return problem;
  const says = `The app's own log says that it listens on port ${String(other.port)}; it must listen on the port in $PORT, which is ${String(port)}.`;
  // It may end with the kubelet's words.
  const message = problem.message.endsWith('.') ? problem.message : `${problem.message}.`;
  return { ...problem, cause: 'wrong-port', message: `${message} ${says}` };
}
