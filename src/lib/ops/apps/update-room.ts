// Checks before a build whether the space's quotas have enough left for the instances that run beside the old ones during an update.

import { desiredInstances, instanceCountsOf, webProcess } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import { maxInFlightOf, type RolloutOptions } from '../../api/rollout.ts';
import { counted, megabyte } from '../../api/sizes.ts';
import type { CFApp, CFProcess, CFRoute, RouteDestination } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { ProcessPlan } from '../../manifest/plan.ts';
import type { SpaceSession } from '../../session/session.ts';
import { sleep } from '../../wait.ts';
import { areEnding } from '../instances/pods.ts';
import { readDefaultStrategy } from './default-strategy.ts';
import {
  needsOfInstances, quotaRefusal, readQuotas, sizeOfProcess, sizeRefusal,
  type Need, type ProcessSize, type QuotaRefusal, type ResourceQuota, type SizeRefusal,
} from './quota-left.ts'; // prettier-ignore

/** Instances of an earlier update or of a deleted app may be ending: that takes the drain and the grace period. */
const patienceMs = 20_000;
const lookAgainMs = 1_000;

/** What an update replaces. */
export interface Update {
  app: Stored<CFApp>;
  processes: readonly Stored<CFProcess>[];
  /** Routes that lead to the app. */
  routes: readonly Stored<CFRoute>[];
  /** New settings of the processes; none keeps the present ones. */
  planned?: readonly ProcessPlan[];
  /** Processes whose number of instances an autoscaler sets. */
  autoscaled?: ReadonlySet<string>;
  rollout: RolloutOptions;
}

/** One process that runs, before and after the update. */
interface Replaced {
  before: ProcessSize;
  after: ProcessSize;
  /** New instances that run beside all old ones. */
  step: number;
  /** Both versions run side by side until the last instance is replaced. */
  routed: boolean;
}

/** What a process takes now, and what it takes after the update. */
function sizesOf({ planned = [], autoscaled }: Update, process: Stored<CFProcess>): { before: ProcessSize; after: ProcessSize } {
  const { metadata, spec } = process;
  const { running, starting, crashed } = instanceCountsOf(process);
  const plan = planned.find(({ type }) => type === spec.processType);
  const own = desiredInstances(process);
  const instances = autoscaled?.has(metadata.name) === true ? own : (plan?.instances ?? own);
  return {
    before: { instances: running + starting + crashed, memoryMB: spec.memoryMB, diskMB: spec.diskQuotaMB },
    after: { instances, memoryMB: plan?.memoryMB ?? spec.memoryMB, diskMB: plan?.diskQuotaMB ?? spec.diskQuotaMB },
  };
}

function replaced(update: Update, process: Stored<CFProcess>): Replaced[] {
  const { app, routes, rollout } = update;
  const { spec } = process;
  const { before, after } = sizesOf(update, process);
  // Instances that serve nothing stop first: they leave their room to the new ones.
  if (instanceCountsOf(process).running === 0 || after.instances === 0) return [];
  const leadsHere = ({ appRef, processType }: RouteDestination): boolean =>
    appRef.name === app.metadata.name && processType === spec.processType;
  const routed = routes.some((route) => route.spec.destinations?.some(leadsHere) === true);
  const step = routed ? Math.min(after.instances, rollout.maxInFlight ?? maxInFlightOf(app)) : 1;
  return [{ before, after, step, routed }];
}

/** The most that an update of a process takes beyond what it takes now: at its first step or at its last one. */
function most({ before, after, step, routed }: Replaced, sizeOf: (size: ProcessSize) => number): number {
  const [old, now] = [sizeOf(before), sizeOf(after)];
  const grown = routed ? after.instances - before.instances : 0;
  const first = step * now + grown * (grown > 0 ? now : old);
  const last = after.instances * now - before.instances * old + (routed ? step * old : 0);
  return Math.max(0, first, last);
}

/** What an update takes beyond what the app takes now. */
export function needsOfUpdate(update: Update): Need[] {
  const all = update.processes.flatMap((process) => replaced(update, process));
  const total = (sizeOf: (size: ProcessSize) => number): number => all.reduce((sum, one) => sum + most(one, sizeOf), 0);
  const takes = (amount: string): string => `during the update it takes ${amount}`;
  return needsOfInstances(
    {
      memoryBytes: total(({ memoryMB }) => memoryMB * megabyte),
      diskBytes: total(({ diskMB }) => diskMB * megabyte),
      instances: total(() => 1),
    },
    (size, kind) => takes(`${size} more ${kind}`),
    (count, kind) => takes(counted(count, `more ${kind}`)),
  );
}

/** Why a process could never have the size that the update gives it. */
function refusalOfSizes(quotas: readonly ResourceQuota[], update: Update): { processType: string; refused: SizeRefusal } | undefined {
  for (const process of update.processes) {
    const { processType } = process.spec;
    const { after } = sizesOf(update, process);
    const isAutoscaled = update.autoscaled?.has(process.metadata.name) === true;
    const refused = sizeRefusal(quotas, processType, { before: isAutoscaled ? after : sizeOfProcess(process), after });
    if (refused !== undefined) return { processType, refused };
  }
  return undefined;
}

/** With no strategy can so many instances of this size run. */
function tooLarge(
  { space, bin }: SpaceSession,
  { app, planned }: Update,
  processType: string,
  { why, deciding, instances }: SizeRefusal,
): KfError {
  const { displayName } = app.spec;
  const isWeb = processType === webProcess;
  const isOne = instances === 1;
  const less = isWeb
    ? `Ask for ${isOne ? '' : 'fewer instances (-i), or for '}less memory or disk (-m, -k).`
    : `Give process '${processType}' ${isOne ? '' : 'fewer instances, or '}less memory or disk_quota under processes: of the manifest.`;
  const scaled = `${bin} scale ${displayName}${isWeb ? '' : ` --process ${processType}`} ${isOne ? '-m MEMORY -k DISK' : '-i NUMBER'}`;
  return new KfError('quota', `App '${displayName}' cannot be updated in space '${space.name}': ${why}.`, {
    hints: [
      planned === undefined ? scaled : less,
      ...(deciding === undefined ? [] : [`Or a larger quota: ${bin} ${deciding.scope}-quota ${deciding.name}`]),
    ],
  });
}

function onlyWithGap(
  { space, bin }: SpaceSession,
  { displayName }: CFApp['spec'],
  { why, deciding }: QuotaRefusal,
  again: string,
): KfError {
  const other =
    deciding === undefined ? `or stop other apps: ${bin} apps` : `or a larger quota: ${bin} ${deciding.scope}-quota ${deciding.name}`;
  return new KfError('quota', `App '${displayName}' cannot be updated without a gap in space '${space.name}': ${why}.`, {
    hints: [
      `Stop its instances before the new ones start: ${again} --strategy recreate`,
      `Or make room: ${bin} scale ${displayName} -i NUMBER, ${other}`,
    ],
  });
}

/**
 * Checks that a running app can be updated, without a gap unless its old instances are to stop first.
 * @param again the command that updates the app
 * @throws KfError `quota` with both ways out: stop the old instances first, or make room; neither when a quota has less in all than the instances of
 * a process take
 */
export async function assertUpdateFits(session: SpaceSession, update: Update, again: string): Promise<void> {
  const { app, rollout } = update;
  if (app.spec.desiredState !== 'STARTED') return;
  const stopsFirst = async (): Promise<boolean> => (rollout.strategy ?? (await readDefaultStrategy(session, app))) === 'recreate';
  const during = rollout.strategy === 'recreate' ? [] : needsOfUpdate(update);
  if (update.planned === undefined && during.every(({ amount }) => amount === 0)) return;
  const { signal } = session;
  const since = performance.now();
  for (;;) {
    const quotas = await readQuotas(session);
    const tooMuch = refusalOfSizes(quotas, update);
    if (tooMuch !== undefined) throw tooLarge(session, update, tooMuch.processType, tooMuch.refused);
    const refused = quotaRefusal(quotas, during);
    if (refused === undefined || (await stopsFirst())) return;
    if (performance.now() - since < patienceMs && (await areEnding(session))) {
      await sleep(lookAgainMs, signal);
      continue;
    }
    throw onlyWithGap(session, app.spec, refused, again);
  }
}
