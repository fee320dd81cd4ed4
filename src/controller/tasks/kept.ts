// What is kept of a run that has ended: the code of the cause if it failed, and the last lines of its container, which are read before the pod goes.

import { causeOfTask, causeWithLines } from '../../lib/api/causes.ts';
import { conditionTypes, kinds } from '../../lib/api/group.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { keepLines } from '../../lib/api/kept-lines.ts';
import type { Stored } from '../../lib/api/object.ts';
import { lostContainerReason } from '../../lib/api/pod.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import type { TaskFailure, TaskOutput, TaskWorkload } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { lastLinesOfPod } from '../instances/last-lines.ts';
import type { Context } from '../runtime/reconciler.ts';
import { wholeIfThere } from '../runtime/whole.ts';

const containerOf = (pod: Stored<Pod> | undefined) => pod?.status?.containerStatuses?.[0];

/** What is kept of a run that has failed now. @param pod undefined when it is gone */
export async function failureOf(
  context: Context,
  pod: Stored<Pod> | undefined,
  { reason, message }: { reason: string; message: string },
): Promise<TaskFailure> {
  const status = containerOf(pod);
  const { exitCode, reason: ended } = status?.state?.terminated ?? {};
  const { log, lost } = await lastLinesOfPod(context, pod, status?.name);
  // A shell says in its last lines that the command is missing.
  const told = causeWithLines(causeOfTask(reason, message), exitCode, [...log.head, ...log.tail]);
  // The exit code of a container that its node finds no more is made up.
  const cause = ended === lostContainerReason ? 'unknown' : told;
  return { cause, ...defined({ pod: pod?.metadata.name, container: status?.name, exitCode, logLost: lost }), ...keepLines(log) };
}

/** What is kept of a run that has succeeded now. @param pod undefined when it is gone */
export async function outputOf(context: Context, pod: Stored<Pod> | undefined): Promise<TaskOutput> {
  const status = containerOf(pod);
  const { log, lost } = await lastLinesOfPod(context, pod, status?.name);
  return { ...defined({ pod: pod?.metadata.name, container: status?.name, logLost: lost }), ...keepLines(log) };
}

const runGone = 'What ran the task was deleted before its last lines were copied.';

/** What the run of a task keeps of its end. A run of an earlier kf has nothing. */
export async function keptOfEnd(context: Context, workload: Stored<TaskWorkload>): Promise<{ failure?: TaskFailure; output?: TaskOutput }> {
  const has = (type: string): boolean => findCondition(workload, type)?.status === 'True';
  if (!has(conditionTypes.failed) && !has(conditionTypes.succeeded)) return {};
  const whole = await wholeIfThere(context, kinds.taskWorkload, workload);
  const { failure, output } = whole.status ?? {};
  // The cache has everything but the lines.
  const lost = whole === workload ? { logLost: runGone } : {};
  return defined({ failure: failure && { ...lost, ...failure }, output: output && { ...lost, ...output } });
}
