// What the API server answers when it does not take a part of a new generation: a quota is used up, or a policy denies it.

import { conditionTypes, reasons } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import { refusalFor } from '../../lib/api/pod-refusal.ts';
import type { AppWorkload, DeploymentStatus } from '../../lib/api/types.generated.ts';
import { refusedBy } from '../runtime/refused.ts';
import { WaitingError } from '../runtime/result.ts';
import type { Statement } from '../runtime/status.ts';

/** Nothing reports when there is room again, or when the policy is another one. */
const retryMs = 5_000;

/** With this begins the text when a quota refuses a part of a new generation. When it refuses instances, the text names the pod first. */
const quotaText = 'The quota of the space is used up: exceeded quota';

/** The status has the text of a change that a quota hindered, not of a version that failed. */
export const isQuotaRefusal = ({ reason, message = '' }: Pick<DeploymentStatus, 'reason' | 'message'>): boolean =>
  reason === reasons.quotaExceeded && message.startsWith(quotaText);

/** The refusal as something that the change waits for; undefined for every other error, such as a right that is missing. */
export function refusalIn(error: unknown): WaitingError | undefined {
  const said = refusedBy(error);
  if (said === undefined) return undefined;
  const [, quota] = /exceeded quota(.*)/s.exec(said) ?? [];
  if (quota !== undefined) return new WaitingError(reasons.quotaExceeded, `${quotaText}${quota}`, retryMs);
  return new WaitingError(reasons.generationRefused, `The cluster refuses to create the new version: ${said}`, retryMs);
}

/** A policy may look something up that does not answer for a moment, and a quota gets room: a refused set is tried again for so long. */
const setPatienceMs = 8_000;
const setRetryMs = 1_000;
/** Of a version that is to have no instances, nobody waits for the set. */
const unwantedSetRetryMs = 60_000;

/** Why a generation has no StatefulSet. */
export interface SetRefusal {
  /** `QuotaExceeded` or `GenerationRefused`. */
  reason: string;
  /** The API server's answer. */
  message: string;
  /** Milliseconds for which it may still be taken; 0: it counts as refused for good. */
  patienceMs: number;
}

/** By the condition that {@link setRefusedBy} makes. @param now in milliseconds, by the API server's clock */
export function setRefusalOf(workload: Stored<AppWorkload>, now: number): SetRefusal | undefined {
  const refused = refusalFor(workload, reasons.generationRefused);
  if (refused === undefined) return undefined;
  const { reason, message, lastTransitionTime } = refused;
  return { reason, message, patienceMs: Math.max(0, (Date.parse(lastTransitionTime) || 0) + setPatienceMs - now) };
}

/**
 * The condition of an AppWorkload whose StatefulSet the API server refuses, with the answer, and when to try again; undefined for every other error. The
 * text stays as it was first: one that differs with every try would start the next one.
 */
export function setRefusedBy(
  error: unknown,
  workload: Stored<AppWorkload>,
  now: number,
): { statement: Statement; afterMs: number } | undefined {
  const refusal = refusalIn(error);
  const said = refusedBy(error);
  if (refusal === undefined || said === undefined) return undefined;
  const { reason } = refusal;
  const before = setRefusalOf(workload, now);
  const message = before?.reason === reason ? before.message : said;
  const wantedMs = before === undefined || before.patienceMs > 0 ? setRetryMs : retryMs;
  const afterMs = workload.spec.instances === 0 ? unwantedSetRetryMs : wantedMs;
  return { statement: { type: conditionTypes.ready, status: 'False', reason, message }, afterMs };
}
