// run-task: creates a task, and waits for its end if that is wanted.

import { randomBytes, randomUUID } from 'node:crypto';
import { findCondition } from '../../api/conditions.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { TaskDetails } from '../../api/results.ts';
import type { CFApp, CFTask, TaskFailure } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { OpEvent } from '../../events.ts';
import { watchObject } from '../../kube/watch-list.ts';
import type { SpaceSession } from '../../session/session.ts';
import { buildTask } from '../../../templates/task.ts';
import { findProcess } from '../apps/scale.ts';
import { waitForController } from '../controller-wait.ts';
import { assertTaskFits } from './task-room.ts';
import { taskDetails } from './tasks.ts';

export interface TaskOptions {
  /** '' or undefined: that of the process. */
  command?: string | undefined;
  /** Its command and sizes are taken where none are given; without a command `task` is the default, as in cf. */
  process?: string | undefined;
  /** Default: random. */
  name?: string | undefined;
  memoryMB?: number | undefined;
  diskMB?: number | undefined;
}

/** As in cf: four random bytes. */
const randomName = (): string => randomBytes(4).toString('hex');

/** The command that the task keeps, whatever happens to the process later. @throws KfError */
async function commandOf(session: SpaceSession, app: Stored<CFApp>, command: string, type: string | undefined): Promise<string> {
  if (type === undefined) return command;
  const { spec } = await findProcess(session, app, type);
  const found = [command, spec.command, spec.detectedCommand].find((text) => text !== undefined && text !== '');
  if (found !== undefined) return found;
  throw new KfError('conflict', `Process '${type}' of app '${app.spec.displayName}' has no command of its own.`, {
    hints: [`${session.bin} run-task ${app.spec.displayName} --process ${type} --command COMMAND`],
  });
}

/** Why the task does not start yet; '' if there is no reason. */
function obstacleOf(task: Stored<CFTask>): string {
  const ready = findCondition(task, 'Ready');
  return ready?.status === 'False' ? ready.message : '';
}

function awaited(task: Stored<CFTask>, otherwise: OpEvent): OpEvent {
  const reason = obstacleOf(task);
  return reason === '' ? otherwise : { type: 'waiting', reason };
}

const listOf = ({ bin }: SpaceSession, { spec: { displayName } }: Stored<CFApp>): string => `${bin} tasks ${displayName}`;

/** The controller has taken up the task, but cannot give it a number. */
function notNumbered(session: SpaceSession, app: Stored<CFApp>, task: Stored<CFTask>): KfError | undefined {
  const reason = obstacleOf(task);
  if (reason === '') return undefined;
  return new KfError('timeout', `Task '${taskDetails(task).name}' waits: ${reason}`, { hints: [listOf(session, app)] });
}

/** The usual advice after an interruption, to run the command again, would make a second task. */
function interrupted(session: SpaceSession, app: Stored<CFApp>, { id, name }: TaskDetails): KfError {
  const commands = id === undefined ? [listOf(session, app)] : taskCommands(session.bin, app, id);
  return new KfError('interrupted', 'Interrupted.', { exitCode: 130, hints: [`Task ${name} goes on:`, ...commands] });
}

const taskCommands = (bin: string, { spec: { displayName } }: Stored<CFApp>, id: number): string[] => [
  `${bin} task ${displayName} ${id}`,
  `${bin} terminate-task ${displayName} ${id}`,
];

/**
 * Creates a task and waits until the controller has given it its number.
 * @throws KfError `conflict` for an app without a droplet, `not-found` for an unknown process, `quota` without room, `accepted` without a controller
 */
export async function createTask(session: SpaceSession, app: Stored<CFApp>, options: TaskOptions): Promise<Stored<CFTask>> {
  const { displayName } = app.spec;
  if ((app.spec.currentDropletRef?.name ?? '') === '') {
    throw new KfError('conflict', 'Error running task: App is not staged.', { hints: [`${session.bin} push ${displayName}`] });
  }
  const { command = '', process = command === '' ? 'task' : undefined, name = randomName(), memoryMB, diskMB } = options;
  const input = { guid: randomUUID(), app, name, processType: process, memoryMB, diskMB };
  await assertTaskFits(session, app, { memoryMB, diskMB, process });
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const wanted = buildTask({ ...input, command: await commandOf(session, app, command, process) }, author);
  const { cluster, signal } = session;
  const object = await cluster.create(kinds.task, wanted, { signal });
  const written = { type: kinds.task, object, what: `Task '${name}'`, late: (seen: Stored<CFTask>) => notNumbered(session, app, seen) };
  const hasNumber = (seen: Stored<CFTask>): boolean => seen.status?.sequenceId !== undefined;
  try {
    return await waitForController(session, written, hasNumber, (seen) => awaited(seen, { type: 'awaiting-controller' }));
  } catch (error) {
    throw signal.aborted ? interrupted(session, app, taskDetails(object)) : error;
  }
}

/**
 * Waits for the end of a task.
 * @throws KfError `failed`, in cf's words, when it fails; `not-found` when it is deleted
 */
export async function waitForTask(session: SpaceSession, app: Stored<CFApp>, task: Stored<CFTask>): Promise<TaskDetails> {
  const { cluster, space, signal, report } = session;
  const check = (seen: Stored<CFTask> | undefined): TaskDetails | undefined => {
    if (seen === undefined)
      throw new KfError('not-found', `Task '${taskDetails(task).name}' was deleted meanwhile.`, { hints: [listOf(session, app)] });
    const details = taskDetails(seen);
    if (details.state === 'SUCCEEDED') return details;
    if (details.state === 'FAILED') throw failed(session, app, details, seen.status?.failure);
    report(awaited(seen, { type: 'awaiting-task', task: details.name, isRunning: details.state === 'RUNNING' }));
    return undefined;
  };
  const target = { ns: space.guid, name: task.metadata.name, known: task };
  try {
    return await watchObject(cluster, kinds.task, target, check, { timeoutMs: Infinity, signal, describe: 'the task' });
  } catch (error) {
    throw signal.aborted ? interrupted(session, app, taskDetails(task)) : error;
  } finally {
    report({ type: 'done' });
  }
}

/** @param kept what the controller has kept of the failure; the controller of an earlier kf kept nothing */
function failed(
  { bin }: SpaceSession,
  { spec: { displayName } }: Stored<CFApp>,
  task: TaskDetails,
  { cause, pod, container, exitCode, logHead, logOmitted, logTail = [] }: TaskFailure = {},
): KfError {
  const { id, failureReason } = task;
  const why = id === undefined ? [] : [`${bin} why ${displayName} --task ${id}`];
  // Scripts look for cf's line, so the cause has its own.
  const message = ['Task failed to complete successfully', ...(failureReason === undefined ? [] : [failureReason])].join('\n');
  // The last lines are printed as those of a failed push.
  const details = { task, ...defined({ cause, pod, container, exitCode, logHead, logOmitted }), logTail };
  return new KfError('failed', message, { hints: [...why, `${bin} logs ${displayName} --recent`], details });
}
