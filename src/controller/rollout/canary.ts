// The step of a canary for one process: process web is the canary, and the others wait until it has ended.

import { webProcess } from '../../lib/api/app.ts';
import type { Stored } from '../../lib/api/object.ts';
import { canaryOf } from '../../lib/api/rollout.ts';
import type { CFApp, CFProcess } from '../../lib/api/types.generated.ts';
import { liveProcesses } from '../apps/processes.ts';
import { wantedInstances } from '../relations.ts';
import type { Context } from '../runtime/reconciler.ts';
import { canaryStep, type CanaryStep } from './planner.ts';

/** True when web has a version that served before the canary. Without one all instances start at once. */
function hasVersionBefore({ status }: Stored<CFProcess>, id: string): boolean {
  const { id: seen, generations = [] } = status?.rollout ?? {};
  return generations.some(({ served, state }) => served === true && (seen !== id || state === 'Old'));
}

/** Undefined when no canary is under way, or the app has no instance of web to try the new version with. */
export function canaryStepOf(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>, desired: number): CanaryStep | undefined {
  const canary = canaryOf(app);
  if (canary === undefined) return undefined;
  const web = liveProcesses(context, app).find(({ spec }) => spec.processType === webProcess);
  if (web === undefined || wantedInstances(app, web) === 0 || !hasVersionBefore(web, app.spec.rollout?.id ?? '')) return undefined;
  return process.spec.processType === webProcess ? canaryStep(desired, canary.percent) : { instances: 0, others: desired };
}
