// Why a task fails.

import { adviceOn } from '../../api/advice.ts';
import { causeOfRefusal, causeOfTask, causeWithLines, type CauseCode } from '../../api/causes.ts';
import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { podRefusalOf } from '../../api/pod-refusal.ts';
import type { TaskDetails, WhyDetails } from '../../api/results.ts';
import type { CFApp, CFTask } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import type { SpaceSession } from '../../session/session.ts';
import { noLines } from '../../kube/last-run.ts';
import type { LogEnds } from '../../kube/lines.ts';
import { readEnds } from '../apps/last-lines.ts';
import { readPods } from '../instances/pods.ts';
import { taskDetails } from '../tasks/tasks.ts';
import { warningsAbout } from './evidence.ts';

/** Why a task failed, what it waits for, or that it succeeded. */
export async function whyTask(session: SpaceSession, app: Stored<CFApp>, task: Stored<CFTask>): Promise<WhyDetails> {
  const { bin, space } = session;
  const { displayName } = app.spec;
  const { name, state, startTime: since } = taskDetails(task);
  const about = { kind: 'task' as const, name, since };
  if (state === 'SUCCEEDED')
    return { ...about, state: 'well', message: `Task '${name}' of app '${displayName}' succeeded.`, events: [], next: [] };
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

/** The kubelet of a lost node would be waited for until the time limit. */
function endsOf(
  { cluster, signal }: SpaceSession,
  app: Stored<CFApp>,
  place: { pod?: string; container?: string },
  told: CauseCode,
): Promise<LogEnds> {
  return told === 'node-lost' ? Promise.resolve(noLines) : readEnds(cluster, app, place, signal);
}

async function whyFailed(session: SpaceSession, app: Stored<CFApp>, task: Stored<CFTask>): Promise<Omit<WhyDetails, 'kind' | 'name'>> {
  const details = taskDetails(task);
  const { reason, message } = findCondition(task, conditionTypes.failed) ?? { reason: '', message: '' };
  const pods = await readPods(session, app);
  const pod = pods?.find(({ metadata }) => metadata.labels?.[labels.taskGuid] === task.metadata.name);
  const place = defined({ pod: pod?.metadata.name, container: pod?.spec?.containers?.[0]?.name });
  const told = causeOfTask(reason, message);
  const [log, events] = await Promise.all([
    endsOf(session, app, place, told),
    warningsAbout(session, new Set([task.metadata.name, place.pod ?? ''])),
  ]);
  const said = /exit code:? (\d+)/.exec(message)?.[1];
  const ended = pod?.status?.containerStatuses?.[0]?.state?.terminated;
  const exitCode = said === undefined ? ended?.exitCode : Number(said);
  const cause = causeWithLines(told, exitCode, [...log.head, ...log.tail]);
  return {
    state: 'failed',
    cause,
    message: cause === 'oom' ? outOfMemory(details) : (details.failureReason ?? 'The cause is unknown.'),
    ...defined({ exitCode, log: log.tail.length === 0 ? undefined : log }),
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
