// Reads and changes metav1.Conditions.

import type { Condition, KubeObject } from './object.ts';

interface Conditioned extends KubeObject {
  status?: { conditions?: Condition[] };
}

/** The condition of that type, for any generation. */
export function findCondition(object: Conditioned, type: string): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type);
}

/** The condition, if it is about the object's present generation. */
export function currentCondition(object: Conditioned, type: string): Condition | undefined {
  const condition = findCondition(object, type);
  return condition?.observedGeneration === object.metadata.generation ? condition : undefined;
}

/** True when the condition is True for the object's present generation. */
export function isTrue(object: Conditioned, type: string): boolean {
  return currentCondition(object, type)?.status === 'True';
}

export function isReady(object: Conditioned): boolean {
  return isTrue(object, 'Ready');
}

/** A condition from a caller; the times are set here. */
export type ConditionChange = Omit<Condition, 'lastTransitionTime'>;

/** The conditions with `change`. lastTransitionTime changes only with the status, so that a repeated reconcile writes nothing. */
export function setCondition(conditions: readonly Condition[] | undefined, change: ConditionChange, now: Date = new Date()): Condition[] {
  const present = conditions ?? [];
  const before = present.find((condition) => condition.type === change.type);
  const time = before?.status === change.status ? before.lastTransitionTime : `${now.toISOString().slice(0, 19)}Z`;
  const after: Condition = { ...change, lastTransitionTime: time };
  return before === undefined ? [...present, after] : present.map((condition) => (condition === before ? after : condition));
}

/** The conditions without those of the type. */
export function removeCondition(conditions: readonly Condition[] | undefined, type: string): Condition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}
