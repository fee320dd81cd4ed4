// What Events say of the checks of an instance: why it is not ready, or that its kubelet stopped it because of its health check. Pure.

import { causeOfCheck, codesOfStop } from '../../api/check-words.ts';
import type { WhyEvent } from '../../api/results.ts';
import type { Finding } from './instances.ts';

/** Between a failed check and the end of the instance its requests end, and the app has time to end. */
const longestStopMs = 120_000;
/** Times of Events and of containers are of whole seconds. */
const roundedMs = 2_000;

/** What a kubelet said of a check. */
interface FailedCheck {
  time: string;
  said: string;
}

/** The last failed check of a pod. @param warnings the newest first */
function lastCheck(warnings: readonly WhyEvent[], pod: string | undefined, kind: 'Readiness' | 'Liveness'): FailedCheck | undefined {
  const prefix = `${kind} probe failed: `;
  const found = warnings.find(
    ({ object, reason, message }) => object === `Pod ${pod ?? ''}` && reason === 'Unhealthy' && message.startsWith(prefix),
  );
  return found === undefined ? undefined : { time: found.time, said: found.message.slice(prefix.length) };
}

/** True when the instance ended as one that a kubelet stops. */
const isStop = ({ run, cause, exitCode }: Finding): boolean =>
  run !== undefined && (cause === 'signal' || cause === 'exit-code') && codesOfStop.has(exitCode);

/** The finding with what a kubelet said of the check behind it. @param warnings the newest first */
export function withChecks(finding: Finding, warnings: readonly WhyEvent[]): Finding {
  const { pod, readiness, message, since = '' } = finding;
  if (readiness !== undefined) {
    const check = lastCheck(warnings, pod, 'Readiness');
    return check === undefined ? finding : { ...finding, message: `${message} The last check said: ${check.said}` };
  }
  const check = isStop(finding) ? lastCheck(warnings, pod, 'Liveness') : undefined;
  if (check === undefined) return finding;
  const { time, said } = check;
  const beforeMs = Date.parse(since) - Date.parse(time);
  if (!(beforeMs >= -roundedMs && beforeMs <= longestStopMs)) return finding;
  const cause = causeOfCheck(said, said.startsWith('Get "') ? { path: '/' } : {});
  return { ...finding, cause, message: `${message} It was stopped because its health check failed. The last check said: ${said}` };
}
