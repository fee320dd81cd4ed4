// How and when a task ended, as its controller has written it.

import { findCondition } from './conditions.ts';
import { conditionTypes } from './group.ts';
import type { Condition } from './object.ts';
import type { CFTask } from './types.generated.ts';

/** The condition that says that the task has ended, since when, and whether it succeeded; undefined while it has not. */
export function endOf(task: CFTask): Condition | undefined {
  const ends = [conditionTypes.succeeded, conditionTypes.failed].map((type) => findCondition(task, type));
  return ends.find((condition) => condition?.status === 'True');
}
