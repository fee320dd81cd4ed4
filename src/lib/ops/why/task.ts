// Why a task fails.

import { adviceOn } from '../../api/advice.ts';
import { causeOfRefusal, causeOfTask, causeWithLines, readCause, type CauseCode } from '../../api/causes.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { podRefusalOf } from '../../api/pod-refusal.ts';
import type { TaskDetails, WhyDetails } from '../../api/results.ts';
import { endOf } from '../../api/task-end.ts';
import type { CFApp, CFTask, TaskFailure } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { SpaceSession } from '../../session/session.ts';
import { readPods } from '../instances/pods.ts';
import { taskDetails } from '../tasks/tasks.ts';
import { keptLinesOf, lastLinesOf, warningsAbout } from './evidence.ts';

/** Why a task failed, what it waits for, or that it succeeded. */
export async function whyTask(session: SpaceSession, app: Stored<CFApp>, task: Stored<CFTask>): Promise<WhyDetails> {
  const { bin, space } = session;
  const { displayName } = app.spec;
  const { name, state, startTime } = taskDetails(task);
  const about = { kind: 'task' as const, name, since: endOf(task)?.lastTransitionTime ?? startTime };
  if (state === 'SUCCEEDED') {
    const { output } = task.status ?? {};
    const lines = output === undefined ? await lastLinesOf(session, app, await placeOf(session, app, task)) : keptLinesOf(output);
    return { ...about, state: 'well', message: `Task '${name}' of app '${displayName}' succeeded.`, ...lines, events: [], next: [] };
  }
  if (state === 'FAILED') return { ...about, ...(await whyFailed(session, app, task)) };
  const events = await warningsAbout(session, new Set([task.metadata.name]));
  const refused = podRefusalOf(task);
  if (refused !== undefined) {
    const cause = causeOfRefusal(refused.message);
    const next = adviceOn(cause, { bin, app: displayName, ns: space.guid });
    return { ...about, state: 'waiting', cause, message: refused.message, events, next };
  }
  const ready = findCondition(task, conditionTypes.ready);
  const awaited = ready?.status === 'False' ? ready.message : `The task is ${state.toLowerCase()}.`;
  return { ...about, state: 'waiting', message: awaited, events, next: [`${bin} logs ${displayName}`] };
}

/** Where the task has run and how it ended, by its pod while that is there. The controller of an earlier kf has kept nothing else. */
async function placeOf(
  session: SpaceSession,
  app: Stored<CFApp>,
  task: Stored<CFTask>,
): Promise<Pick<TaskFailure, 'pod' | 'container' | 'exitCode'>> {
  const pods = await readPods(session, app);
  const pod = pods?.find(({ metadata }) => metadata.labels?.[labels.taskGuid] === task.metadata.name);
  const exitCode = pod?.status?.containerStatuses?.[0]?.state?.terminated?.exitCode;
  return defined({ pod: pod?.metadata.name, container: pod?.spec?.containers?.[0]?.name, exitCode });
}

async function whyFailed(session: SpaceSession, app: Stored<CFApp>, task: Stored<CFTask>): Promise<Omit<WhyDetails, 'kind' | 'name'>> {
  const details = taskDetails(task);
  const { reason, message } = findCondition(task, conditionTypes.failed) ?? { reason: '', message: '' };
  const failure: TaskFailure = task.status?.failure ?? (await placeOf(session, app, task));
  const told = causeOfTask(reason, message);
  const [lines, events] = await Promise.all([
    lastLinesOf(session, app, failure, told),
    warningsAbout(session, new Set([task.metadata.name, failure.pod ?? ''])),
  ]);
  const said = /exit code:? (\d+)/.exec(message)?.[1];
  const exitCode = said === undefined ? failure.exitCode : Number(said);
  const { head = [], tail = [] } = lines.log ?? {};
  const cause = failure.cause === undefined ? causeWithLines(told, exitCode, [...head, ...tail]) : readCause(failure.cause);
  return {
    state: 'failed',
    cause,
    message: cause === 'oom' ? outOfMemory(details) : (details.failureReason ?? 'The cause is unknown.'),
    ...defined({ exitCode }),
    ...lines,
    events,
    next: nextFor(session, app, { cause, details }),
  };
}

/** Sizes are written as in cf: M for MiB. */
const outOfMemory = ({ memoryMB }: TaskDetails): string =>
  `The task used more memory than ${memoryMB === undefined ? 'it may' : `its limit of ${String(memoryMB)}M`} and was ended; -m gives it more.`;

/** A task is not changed: what helps is another one. */
function nextFor(
  { bin, space }: SpaceSession,
  { spec: { displayName: app } }: Stored<CFApp>,
  { cause, details: { command, process, memoryMB } }: { cause: CauseCode; details: TaskDetails },
): string[] {
  const what = command === undefined && process !== undefined ? `--process ${process}` : '--command COMMAND';
  const memory = memoryMB === undefined ? 'MEMORY' : `${String(memoryMB * 2)}M`;
  const ofTasks: Partial<Record<CauseCode, string>> = {
    oom: `${bin} run-task ${app} ${what} -m ${memory}`,
    disk: `${bin} run-task ${app} ${what} -k DISK`,
    'command-not-found': `${bin} run-task ${app} --command COMMAND`,
  };
  const own = ofTasks[cause];
  return own === undefined ? adviceOn(cause, { bin, app, ns: space.guid }) : [own, `${bin} logs ${app} --recent`];
}
