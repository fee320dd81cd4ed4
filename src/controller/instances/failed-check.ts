// The cause of a failed health check by the kubelet's words about the check, and of an end by the app's last lines. Pure.

import { causeWithLines, portIn, type CauseCode } from '../../lib/api/causes.ts';
import type { LogEnds } from '../../lib/kube/lines.ts';
import type { Expectations, Problem } from './instances.ts';

const listen = 'The app must listen on 0.0.0.0 at the port in $PORT, not on 127.0.0.1.';

/** The check did not get as far as a connection, and nobody refused it either. */
const notConnected = /\bdial \S+ \S+: (i\/o timeout|connect: (connection timed out|no route to host))|while waiting for connection/;

const statusIn = (said: string): string | undefined => /HTTP probe failed with statuscode: (\d{3})/.exec(said)?.[1];
const refused = (said: string): boolean => said.includes('connection refused');

/** The cause of a failed check by the same words. Without them, only the time is known. */
export function causeOfCheck(said: string | undefined, { path }: Partial<Expectations>): CauseCode {
  if (said === undefined) return 'start-timeout';
  if (statusIn(said) !== undefined) return 'health-http';
  if (refused(said)) return 'not-listening';
  return path === undefined || notConnected.test(said) ? 'health-port' : 'health-http';
}

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
  if (refused(said)) return `Nothing answers at that port from outside of the app's container. ${listen} ${quoted}`;
  if (notConnected.test(said))
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
  if (other === undefined || port === undefined || other.port === port) return problem;
  const says = `The app's own log says that it listens on port ${String(other.port)}; it must listen on the port in $PORT, which is ${String(port)}.`;
  // It may end with the kubelet's words.
  const message = problem.message.endsWith('.') ? problem.message : `${problem.message}.`;
  return { ...problem, cause: 'wrong-port', message: `${message} ${says}` };
}
