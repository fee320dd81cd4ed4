// Tasks of an app: list, find, end.

import { findCondition } from '../../api/conditions.ts';
import { annotations, conditionTypes, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { podRefusalOf } from '../../api/pod-refusal.ts';
import type { TaskDetails, TaskState } from '../../api/results.ts';
import { endOf } from '../../api/task-end.ts';
import type { CFApp, CFTask } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';

function stateOf(task: Stored<CFTask>): TaskState {
  const end = endOf(task);
  if (end !== undefined) return end.type === conditionTypes.succeeded ? 'SUCCEEDED' : 'FAILED';
  if (task.spec.canceled === true) return 'CANCELING';
  const hasStarted = findCondition(task, conditionTypes.started)?.status === 'True';
  return hasStarted && podRefusalOf(task) === undefined ? 'RUNNING' : 'PENDING';
}

/** The controller's message; with Kubernetes' reason where the exit code alone does not explain the end (`OOMKilled`). */
function failureOf(task: Stored<CFTask>): string | undefined {
  const failed = findCondition(task, conditionTypes.failed);
  if (failed?.status !== 'True') return undefined;
  const { reason, message } = failed;
  if (message === '') return reason;
  return reason === 'OOMKilled' ? `${message} (${reason})` : message;
}

/** A task as commands show it. */
export function taskDetails(task: Stored<CFTask>): TaskDetails {
  const { spec, status, metadata } = task;
  const given = (text: string | undefined): string | undefined => (text === '' ? undefined : text);
  return {
    ...defined({ id: status?.sequenceId }),
    guid: metadata.name,
    name: given(spec.displayName) ?? metadata.name,
    state: stateOf(task),
    startTime: metadata.creationTimestamp ?? '',
    ...defined({
      command: given(spec.command),
      process: given(spec.processType),
      memoryMB: status?.memoryMB,
      diskMB: status?.diskQuotaMB,
      failureReason: failureOf(task),
    }),
  };
}

const created = ({ metadata }: Stored<CFTask>): string => metadata.creationTimestamp ?? '';
const numberOf = ({ status }: Stored<CFTask>): number => status?.sequenceId ?? Number.POSITIVE_INFINITY;

async function tasksOf({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFTask>[]> {
  const labelSelector = `${labels.appGuid}=${app.metadata.name}`;
  return (await cluster.list(kinds.task, { ns: space.guid, labelSelector, signal })).items;
}

/** The tasks of an app, the newest first; those without a number come before all others. */
export async function listTasks(session: SpaceSession, app: Stored<CFApp>): Promise<TaskDetails[]> {
  const tasks = await tasksOf(session, app);
  return tasks.toSorted((a, b) => numberOf(b) - numberOf(a) || created(b).localeCompare(created(a))).map(taskDetails);
}

/** @throws KfError `not-found` in cf's words */
export async function findTask(session: SpaceSession, app: Stored<CFApp>, id: number): Promise<Stored<CFTask>> {
  const found = (await tasksOf(session, app)).find(({ status }) => status?.sequenceId === id);
  if (found !== undefined) return found;
  throw new KfError('not-found', `Task sequence ID ${id} not found.`, { hints: [`${session.bin} tasks ${app.spec.displayName}`] });
}

/**
 * Ends a task that waits or runs; the controller deletes its pod.
 * @param app for the command of the hint
 * @throws KfError `conflict` for a task that has ended
 */
export async function terminateTask(session: SpaceSession, task: Stored<CFTask>, app?: Stored<CFApp>): Promise<TaskDetails> {
  const state = stateOf(task);
  if (state === 'SUCCEEDED' || state === 'FAILED') {
    const hints = app === undefined ? [] : [`${session.bin} tasks ${app.spec.displayName}`];
    throw new KfError('conflict', `Task state is ${state} and therefore cannot be canceled`, { hints });
  }
  const { cluster, space, signal } = session;
  const { uid, name } = task.metadata;
  const metadata = { uid, annotations: { [annotations.changedBy]: await session.changedBy() } };
  return taskDetails(await cluster.mergePatch(kinds.task, space.guid, name, { metadata, spec: { canceled: true } }, { signal }));
}
