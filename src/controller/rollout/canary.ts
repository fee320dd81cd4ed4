// The step of a canary for one process: process web is the canary, and the others wait until it has ended.

import { webProcess } from '../../lib/api/app.ts';
import type { Stored } from '../../lib/api/object.ts';
import { canaryOf } from '../../lib/api/rollout.ts';
import type { CFApp, CFProcess, GenerationStatus } from '../../lib/api/types.generated.ts';
import { liveProcesses } from '../apps/processes.ts';
import { wantedInstances } from '../relations.ts';
import type { Context } from '../runtime/reconciler.ts';
import { canaryStep, type CanaryStep } from './planner.ts';
import { isUntouched } from './untouched.ts';

const servedOf = ({ status }: Stored<CFProcess>): GenerationStatus[] =>
  (status?.rollout?.generations ?? []).filter(({ served }) => served === true);

/**
 * True when web has a version that served before the canary, which gives it another one, as far as its status tells. While a change is hindered before it
 * has a generation, the generations in its status are those of before.
 */
function hasVersionBefore(web: Stored<CFProcess>, id: string): boolean {
  const { id: seen, phase, generations = [] } = web.status?.rollout ?? {};
  if (seen === id && generations.some(({ state, untouched }) => state === 'Current' && untouched === true)) return false;
  const isHindered = phase === 'Pending' || phase === 'Failed';
  return servedOf(web).some(({ state }) => seen !== id || state === 'Old' || (state === 'Current' && isHindered));
}

/** The change has begun as a canary: it stays one while web is scaled to 0, since nobody has decided about the new version. */
function hasBegun({ status }: Stored<CFProcess>, id: string): boolean {
  return status?.rollout?.id === id && status.rollout.step !== undefined;
}

/**
 * The change has begun without a step, since web had no instance to try the new version with: it is no canary, also when web gets instances later.
 * Before a canary has a step, its status lists the generations of before.
 */
function hasBegunWhole({ status }: Stored<CFProcess>, id: string, target: string): boolean {
  const { id: seen, step, phase, generations = [] } = status?.rollout ?? {};
  const current = generations.find(({ state }) => state === 'Current');
  // After a canary that has failed, the version before is the current one too, but the change has touched it.
  const hasLeft = phase === 'Serving' && current?.untouched === true;
  return seen === id && step === undefined && (hasLeft || current?.hash === target);
}

/** {@link hasBegunWhole} as far as other processes can tell: web has instances of the new version, or needs none. */
function runsWhole({ status }: Stored<CFProcess>, id: string): boolean {
  const { id: seen, step, phase } = status?.rollout ?? {};
  return seen === id && step === undefined && (phase === 'Serving' || phase === 'Starting');
}

/**
 * Undefined when no canary is under way, or the app has no instance of web to begin one with, or no version of web to be a canary beside, or
 * the change leaves web as it is: then all instances start at once.
 * @param target hash of the generation that the process should come to
 */
export function canaryStepOf(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  { desired, target }: { desired: number; target: string },
): CanaryStep | undefined {
  const canary = canaryOf(app);
  if (canary === undefined) return undefined;
  const web = liveProcesses(context, app).find(({ spec }) => spec.processType === webProcess);
  const id = app.spec.rollout?.id ?? '';
  if (web === undefined || (wantedInstances(app, web) === 0 && !hasBegun(web, id))) return undefined;
  const served = servedOf(process);
  const isBesideOther = served.some(({ hash }) => hash !== target);
  if (isUntouched(process.status?.rollout, target, id)) return undefined;
  if (process.spec.processType === webProcess)
    return isBesideOther && !hasBegunWhole(web, id, target) ? canaryStep(desired, canary.percent) : undefined;
  const isDone = (served.length > 0 && !isBesideOther) || runsWhole(web, id);
  return !isDone && hasVersionBefore(web, id) ? { instances: 0, others: desired } : undefined;
}
