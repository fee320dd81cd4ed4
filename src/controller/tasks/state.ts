// How far a task has come: by an object that is given, or by the API server, which is asked right before the command may run.

import { findCondition } from '../../lib/api/conditions.ts';
import { conditionTypes, kinds } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import { endOf } from '../../lib/api/task-end.ts';
import type { CFTask, TaskWorkload } from '../../lib/api/types.generated.ts';
import type { Context } from '../runtime/reconciler.ts';

/** True for a task, or the run of one, whose start is recorded. */
export const hasStarted = (object: CFTask | TaskWorkload): boolean => findCondition(object, conditionTypes.started)?.status === 'True';

/** True for a task that has finished, successfully or not. */
export function isOver(task: CFTask): boolean {
  return endOf(task) !== undefined;
}

/**
 * The task as the API server has it; undefined when its command must not run, because the task is gone, is cancelled or has ended. The cache may not
 * have what the leader before wrote a moment ago.
 */
export async function openTask(context: Context, { metadata }: Stored<CFTask>): Promise<Stored<CFTask> | undefined> {
  const { namespace, name, uid } = metadata;
  const live = await context.cluster.get(kinds.task, namespace, name, context.signal);
  if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) return undefined;
  return live.spec.canceled === true || isOver(live) ? undefined : live;
}
