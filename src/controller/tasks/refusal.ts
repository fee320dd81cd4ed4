// A task whose pod the cluster does not make: a quota or a policy refuses it, which only an Event of the Job says.

import type { Job } from '../../lib/api/core.ts';
import { conditionTypes, kinds } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import { podRefusalFrom, podRefusalOf } from '../../lib/api/pod-refusal.ts';
import type { TaskWorkload } from '../../lib/api/types.generated.ts';
import { latestEvent } from '../runtime/latest-event.ts';
import type { Context } from '../runtime/reconciler.ts';
import { refusedBy, unansweredBy } from '../runtime/refused.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus, type Statement } from '../runtime/status.ts';

/** The Job controller makes the pod within this time, or says why it does not. */
const podPatienceMs = 3_000;
const longestPauseMs = 60_000;

/** The pause before the next look at something that has lasted for so long already: a tenth of that time, from 3 s to 60 s. */
const pauseAfter = (lastedMs: number): number => Math.min(longestPauseMs, Math.max(podPatienceMs, lastedMs / 10));

/** Of a run: that it goes on, or why its pod is refused. */
export function readinessOf(workload: TaskWorkload): Statement {
  const refused = podRefusalOf(workload);
  return refused === undefined ? readyStatement : notReady(refused);
}

const notReady = ({ reason, message }: { reason: string; message: string }): Statement => ({
  type: conditionTypes.ready,
  status: 'False',
  reason,
  message,
});

/** Of a run whose Job exists. */
export const started: Statement = { type: conditionTypes.started, status: 'True', reason: 'JobStarted', message: '' };

/** True for a Job that has no pod, and has had none. */
const hasNone = ({ status = {} }: Stored<Job>): boolean => (status.active ?? 0) + (status.failed ?? 0) + (status.succeeded ?? 0) === 0;

/**
 * The run whose Job the cluster refuses, also because a policy cannot be asked: it waits, as one does whose pod is refused. The text stays as it was first:
 * one that differs with every try would start the next one. @throws every other error
 */
export async function awaitJob(context: Context, workload: Stored<TaskWorkload>, error: unknown): Promise<Result> {
  const said = refusedBy(error) ?? unansweredBy(error);
  if (said === undefined) throw error;
  const refused = podRefusalFrom(said, 'Job');
  const before = podRefusalOf(workload);
  const conditions = conditionsWith(workload, notReady(before?.reason === refused.reason ? before : refused));
  await writeStatus(context, kinds.taskWorkload, workload, { ...workload.status, conditions });
  return { requeueAfterMs: pauseAfter(context.now() - Date.parse(workload.metadata.creationTimestamp ?? '')) };
}

/** The run of a released Job without a pod: it has started, and waits for its pod. */
export async function awaitPod(context: Context, workload: Stored<TaskWorkload>, job: Stored<Job>): Promise<Result | undefined> {
  const { namespace: ns, uid, creationTimestamp = '' } = job.metadata;
  const age = context.now() - Date.parse(creationTimestamp);
  const isLate = hasNone(job) && age >= podPatienceMs;
  const event = isLate ? await latestEvent(context, { ns, uid }, 'FailedCreate') : undefined;
  const refused = event?.message === undefined ? undefined : notReady(podRefusalFrom(event.message));
  const ready = refused ?? (hasNone(job) ? readinessOf(workload) : readyStatement);
  await writeStatus(context, kinds.taskWorkload, workload, {
    ...workload.status,
    conditions: conditionsWith(workload, started, ready),
  });
  if (!hasNone(job)) return undefined;
  return { requeueAfterMs: isLate ? pauseAfter(age) : podPatienceMs - age };
}
