// Why the cluster makes no pod for a task, or no StatefulSet for a version: a quota or a policy refuses it. It is tried again, for room may come.

import { findCondition } from './conditions.ts';
import { conditionTypes, reasons } from './group.ts';
import type { Condition, KubeObject } from './object.ts';

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } };

/** Reason and sentence for what the Event of a Job says, or the API server of the Job itself. The pod's name is left out: each try has another one. */
export function podRefusalFrom(said: string, refused: 'pod' | 'Job' = 'pod'): { reason: string; message: string } {
  const [quota] = /exceeded quota.*/s.exec(said) ?? [];
  if (quota !== undefined) return { reason: reasons.quotaExceeded, message: `The quota of the space is used up: ${quota}` };
  const why = said.replace(/^Error creating: /, '').replace(/^pods "[^"]*"/, 'the pod');
  return { reason: reasons.podRefused, message: `The cluster refuses to create the ${refused}: ${why}` };
}

/** The condition Ready when it says that a quota refuses what the object needs, or that something else does for `reason`; undefined otherwise. */
export function refusalFor(object: WithConditions, reason: string): Condition | undefined {
  const ready = findCondition(object, conditionTypes.ready);
  return ready?.status === 'False' && (ready.reason === reasons.quotaExceeded || ready.reason === reason) ? ready : undefined;
}

/** The condition that says that the pod of a task is refused now; undefined when it is not. */
export const podRefusalOf = (object: WithConditions): Condition | undefined => refusalFor(object, reasons.podRefused);
