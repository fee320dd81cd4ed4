// A build that the cluster does not let start: a quota or a policy refuses its Job, its pod, or something that the Job needs, or a policy does not answer.

import { buildPodRefused, buildRefused, causeOfBuild } from '../../lib/api/causes.ts';
import type { Job } from '../../lib/api/core.ts';
import { reasons } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import { causesSeenOn } from '../instances/first-sight.ts';
import { latestEvent } from '../runtime/latest-event.ts';
import type { Context } from '../runtime/reconciler.ts';
import { refusedBy, unansweredBy } from '../runtime/refused.ts';
import type { WithStatus } from '../runtime/status.ts';
import type { FailedBuild } from './outcome.ts';

/** A policy may look something up that does not answer for a moment, and a quota gets room: a refused build is tried again for so long. */
const patienceMs = 8_000;
/** A webhook that does not answer may be starting again: its pod can take a while. */
const unansweredPatienceMs = 120_000;
const retryMs = 1_000;

export interface BuildRefusal extends FailedBuild {
  /** It has lasted so long that the build fails. */
  isFinal: boolean;
  /** When to try again otherwise. */
  retryAfterMs: number;
}

/**
 * The refusal to create something for a build or its workload, also because a policy cannot be asked; undefined for every other error. Until it is final,
 * the text stays as it was first: one that differs with every try would start the next one.
 */
export function buildRefusal(context: Context, starting: Stored<WithStatus>, error: unknown): BuildRefusal | undefined {
  const unanswered = unansweredBy(error);
  const said = unanswered ?? refusedBy(error);
  if (said === undefined) return undefined;
  const now = context.now();
  const { firstSeen } = causesSeenOn(context, starting.metadata.uid, now);
  const lastedMs = now - firstSeen(unanswered === undefined ? 'refused' : 'unanswered');
  const isFinal = lastedMs >= (unanswered === undefined ? patienceMs : unansweredPatienceMs);
  const message = `${buildRefused}: ${said}`;
  return {
    ...failureOf(said),
    message: (isFinal ? undefined : toldBefore(starting, message)) ?? message,
    isFinal,
    retryAfterMs: Math.max(retryMs, lastedMs / 10),
  };
}

/** What the status says of an earlier refusal with the same cause. */
function toldBefore({ status }: Stored<WithStatus>, message: string): string | undefined {
  const cause = causeOfBuild(undefined, message);
  const told = status?.conditions?.find((condition) => condition.message.startsWith(`${buildRefused}: `))?.message;
  return told !== undefined && causeOfBuild(undefined, told) === cause ? told : undefined;
}

/** Why the Job makes no pod: a quota or a policy, which only an Event names. */
export async function podRefusal(context: Context, job: Stored<Job>): Promise<FailedBuild | undefined> {
  const { namespace: ns, uid } = job.metadata;
  const event = await latestEvent(context, { ns, uid }, 'FailedCreate');
  const said = event?.message;
  if (said === undefined) return undefined;
  return { ...failureOf(said), message: `${buildPodRefused}: ${said.replace(/^Error creating: /, '')}` };
}

const failureOf = (said: string): Pick<FailedBuild, 'failure'> => ({
  failure: { reason: said.includes('exceeded quota') ? reasons.quotaExceeded : reasons.buildFailed },
});
