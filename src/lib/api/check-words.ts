// What kubelets say of a check that failed. The words come from their HTTP and TCP probers (kubernetes/pkg/probe). Pure.

import type { CauseCode } from './causes.ts';

/** The check did not get as far as a connection, and nobody refused it either. */
const notConnected = /\bdial \S+ \S+: (i\/o timeout|connect: (connection timed out|no route to host))|while waiting for connection/;

/** The status of an answer that is no success. */
export const statusIn = (said: string): string | undefined => /HTTP probe failed with statuscode: (\d{3})/.exec(said)?.[1];

/** Nothing listens. */
export const isRefused = (said: string): boolean => said.includes('connection refused');

/** No connection was made, and nobody refused one. */
export const isUnconnected = (said: string): boolean => notConnected.test(said);

/** Exit codes of a program that a kubelet stops. */
export const codesOfStop: ReadonlySet<number | undefined> = new Set([0, 137, 143]);

/** The cause of a failed check. Without words, only the time is known. @param path of an http check */
export function causeOfCheck(said: string | undefined, { path }: { path?: string }): CauseCode {
  if (said === undefined) return 'start-timeout';
  if (statusIn(said) !== undefined) return 'health-http';
  if (isRefused(said)) return 'not-listening';
  return path === undefined || isUnconnected(said) ? 'health-port' : 'health-http';
}
