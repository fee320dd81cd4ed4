// An instance whose program runs and has passed its start check, and that gets no requests because the check of its readiness fails. Pure.

import type { CauseCode } from '../../lib/api/causes.ts';
import type { Expectations, Problem } from './instances.ts';

/** A kubelet may take back the readiness for a moment (docs/decisions/0095). */
const momentMs = 3_000;

/** What is known of the present run, in milliseconds by the API server's clock. */
export interface PresentRun {
  now: number;
  startedAt: number;
  /** Since when the pod is not ready; NaN when nothing says it. */
  notReadySince: number;
  /** When it has taken too long to become ready. */
  lateAt: number;
}

function asked({ port, path }: NonNullable<Expectations['readiness']>): { check: string; cause: CauseCode; failure: string } {
  if (path === undefined) return { check: `a connection to port ${String(port)}`, cause: 'health-port', failure: 'is not accepted' };
  return { check: `GET ${path} on port ${String(port)}`, cause: 'health-http', failure: 'is not answered with success' };
}

/**
 * Why a container that has started is not ready. Until the check has had time to succeed, nothing is known to fail.
 * @returns undefined without a check of the readiness
 */
export function problemOfReadiness({ readiness, startSeconds }: Expectations, run: PresentRun): Problem | undefined {
  if (readiness === undefined) return undefined;
  const { now, startedAt, notReadySince, lateAt } = run;
  const { check, cause, failure } = asked(readiness);
  const common = { reason: 'HealthCheckFailed', container: 'application', ofPresentRun: true } as const;
  const wasReady = notReadySince > startedAt;
  const failsAt = wasReady ? notReadySince + momentMs : startedAt + (startSeconds + readiness.failsAfterSeconds) * 1_000;
  if (now < failsAt) {
    const message = `The app has started, and its readiness check has not succeeded yet: ${check}.`;
    return { ...common, cause: 'start-timeout', message, final: false, lookAgainMs: failsAt - now };
  }
  const message = `The app runs, and gets no requests because its readiness check fails: ${check} ${failure}.`;
  if (now < lateAt) return { ...common, cause, message, final: false, lookAgainMs: lateAt - now };
  return { ...common, cause, message, final: true, byTime: true };
}
