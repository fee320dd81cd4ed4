// Why the cluster makes no pod for a task: a quota or a policy refuses it. The task waits, for room may come.

import { findCondition } from './conditions.ts';
import { conditionTypes, reasons } from './group.ts';
import type { Condition, KubeObject } from './object.ts';

type WithConditions = KubeObject & { status?: { conditions?: Condition[] } };

/** Reason and sentence for what the Event of a Job says. The pod's name is left out: each try has another one. */
export function podRefusalFrom(said: string): { reason: string; message: string } {
  const [quota] = /exceeded quota.*/s.exec(said) ?? [];
  if (quota !== undefined) return { reason: reasons.quotaExceeded, message: `The quota of the space is used up: ${quota}` };
  const why = said.replace(/^Error creating: /, '').replace(/^pods "[^"]*"/, 'the pod');
  return { reason: reasons.podRefused, message: `The cluster refuses to create the pod: ${why}` };
}

/** The condition that says that the pod of a task is refused now; undefined when it is not. */
export function podRefusalOf(object: WithConditions): Condition | undefined {
  const ready = findCondition(object, conditionTypes.ready);
  const isRefused = ready?.status === 'False' && (ready.reason === reasons.quotaExceeded || ready.reason === reasons.podRefused);
  return isRefused ? ready : undefined;
}
