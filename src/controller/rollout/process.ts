// Reconciles CFProcess: finds the wanted generation, replaces the one before with it, and reports the result.

import type { Stored } from '../../lib/api/object.ts';
import { causeOfReason } from '../../lib/api/causes.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType, podDisruptionBudgetType, type PodDisruptionBudget } from '../../lib/api/core.ts';
import { httpRouteType, type HttpRoute } from '../../lib/api/gateway.ts';
import { annotations, conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import { isHeld } from '../../lib/api/held.ts';
import { isCanceled } from '../../lib/api/rollout.ts';
import type { AppWorkload, CFApp, CFBuild, CFProcess, CFProcessStatus, CFRoute, Droplet } from '../../lib/api/types.generated.ts';
import { defined } from '../../lib/defined.ts';
import { buildBudget, generationOf } from '../../templates/stateful-set.ts';
import { instancesByProcess, nodeIndexes, podInstances, watchInstances, watchNodesOfInstances } from '../instances/pod-instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { WaitingError, type Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus, type Statement } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { appIndexes, appsByDroplet, dropletOf, foreignBuild, inNamespace, processKeys, wantedInstances } from '../relations.ts';
import { halvesByOwner, halvesOf } from '../shared-routes.ts';
import { expectationsOf } from './assessment.ts';
import { withProcessDefaults } from './process-defaults.ts';
import { targetAfterCancellation, type Target } from './cancellation.ts';
import { createGeneration, findGeneration, liveInputsOf, makeWhole, replaceLost, upToDate, workloadsOf } from './generation.ts';
import { dropletFor, hinderedUnstartedOf, isScaledFirst, unlocked, unstartedOf, untilLockEnds, waitsForStart } from './first-generation.ts';
import { lookAtDrain, setsByProcess } from './held-drain.ts';
import { refusalIn } from './refusal.ts';
import { Proofs } from './traffic-probe.ts';
import { Rollouts } from './step.ts';
import { endedRollout, hinderedRollout, instancesPart, instancesStatus, selectorOf } from './status.ts';
import { keepVerdict } from './verdict.ts';

/** As long as for tasks: an app that is missing for this long was deleted. */
const appPatienceMs = 10 * 60_000;
/** Pause between two tries of a change that has failed, or of a replacement that was refused. */
const failedRetryMs = 5_000;

/** Processes that a route leads to, and those that shared a destination's app before the route changed. */
function processesOfRoute(route: Stored<CFRoute>, stores: Context['stores']): string[] {
  const apps = new Set((route.spec.destinations ?? []).map(({ appRef }) => appRef.name));
  return [...apps].flatMap((app) => processKeys(`${route.metadata.namespace}/${app}`, stores));
}

export function processReconciler(): Reconciler {
  const rollouts = new Rollouts(new Proofs());
  return {
    name: 'process',
    workers: 8,
    watches: [
      watch(kinds.process),
      watch<CFApp>(kinds.app, (app, stores) => processKeys(keyOf(app), stores)),
      watch<AppWorkload>(kinds.appWorkload, (workload) => inNamespace(workload, workload.spec.GUID)),
      watchInstances((instance) => inNamespace(instance, instance.metadata.labels?.[labels.guid])),
      watchNodesOfInstances((instance) => inNamespace(instance, instance.metadata.labels?.[labels.guid])),
      watch<CFRoute>(kinds.route, processesOfRoute),
      watch<HttpRoute>(httpRouteType, (route, stores) => {
        const own = stores.of(kinds.route).get(route.metadata.namespace, route.metadata.name);
        return own === undefined ? [] : [own, ...halvesOf(own, stores)].flatMap((one) => processesOfRoute(one, stores));
      }),
      watch<CFBuild>(kinds.build, (build, stores) =>
        stores
          .of(kinds.app)
          .by(appsByDroplet.name, keyOf(build))
          .flatMap((app) => processKeys(keyOf(app), stores)),
      ),
      watch<PodDisruptionBudget>(podDisruptionBudgetType, (budget) => inNamespace(budget, budget.metadata.labels?.[labels.guid])),
    ],
    reads: [kinds.space, kinds.org, kinds.domain, kinds.serviceInstance, namespaceType],
    indexes: [...appIndexes, instancesByProcess, halvesByOwner, setsByProcess, ...nodeIndexes],
    reconcile: (key, context) => reconcile(key, context, rollouts),
  };
}

async function reconcile(key: string, context: Context, rollouts: Rollouts): Promise<Result | undefined> {
  const { ns, name } = splitKey(key);
  const live = context.stores.of(kinds.process).get(ns, name);
  if (live === undefined) return undefined;
  const drain = lookAtDrain(context, live);
  // Before anything of the app can end this look: whatever state the app is in, a node can be emptied.
  if (drain.overdue) await ensureBudget(context, live, false);
  const result = await act(context, live, drain.overdue, rollouts);
  const waits = [drain.lookAgainMs, result?.requeueAfterMs].filter((wait) => wait !== undefined);
  return waits.length === 0 ? result : { ...result, requeueAfterMs: Math.min(...waits) };
}

/** @param overdue its instances have held up the drain of a node for too long */
async function act(context: Context, live: Stored<CFProcess>, overdue: boolean, rollouts: Rollouts): Promise<Result | undefined> {
  const stored = context.stores.of(kinds.app).get(live.metadata.namespace, live.spec.appRef.name);
  if (stored === undefined || isEnding(live) || isEnding(stored)) {
    // A finalizer can keep its instances running for ever, and nobody wants them any more.
    await ensureBudget(context, live, false);
    return stored === undefined && !isEnding(live) ? endWithoutApp(context, live) : undefined;
  }
  if (!mayAct(stored)) return undefined;
  const lockMs = untilLockEnds(context, stored);
  // Judged once: a scale would be lost if the lock ended between the look at it and the status.
  const app = lockMs === undefined ? unlocked(stored) : stored;
  const process = await withProcessDefaults(context, live);

  const droplet = dropletOf(app, app.spec.currentDropletRef?.name, context.stores);
  const target = await aimOf(context, app, process, droplet).catch((error: unknown) => tellWhy(context, app, process, error));
  if (target === 'again') return { requeueAfterMs: 1 };
  const outcome = target === undefined ? undefined : await rollouts.step(context, app, process, target);
  const ready: Statement = readyStatement;
  await writeStatus(context, kinds.process, process, {
    ...(outcome === undefined ? withoutGeneration(context, app, process) : withGeneration(app, process, target)),
    actualInstances: 0,
    ...outcome?.status,
    selector: selectorOf(process),
    conditions: conditionsWith(process, ready),
  });
  // Last: a budget that is refused must not hide from the next step what this one found.
  const refusedMs = await tryBudget(context, process, !overdue && (outcome?.guarded ?? wantedInstances(app, process) > 1));
  // No event says that a push was killed.
  const unlockedMs = live.status?.unstartedInstances === undefined ? undefined : lockMs;
  return soonest(outcome?.requeueAfterMs, refusedMs, unlockedMs, target && untilReplaced(context, target.workload));
}

function soonest(...times: (number | undefined)[]): Result | undefined {
  const waits = times.filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : { requeueAfterMs: Math.min(...waits) };
}

/** @returns milliseconds until the next try of a budget that a quota or a policy refuses; the steps of a change do not wait for it */
async function tryBudget(context: Context, process: Stored<CFProcess>, isWanted: boolean): Promise<number | undefined> {
  try {
    await ensureBudget(context, process, isWanted);
    return undefined;
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal === undefined) throw error;
    context.log.warn('disruption budget refused', { process: process.metadata.name, error: refusal.message });
    return refusal.afterMs;
  }
}

/** A process that ran only in a version that was canceled has no generation of its own: when it is scaled, it starts with the app's droplet. */
function withGeneration(app: Stored<CFApp>, process: Stored<CFProcess>, target: Target | undefined): CFProcessStatus {
  const { unstartedInstances: _, ...others } = process.status ?? {};
  return target?.isUnknownBefore === true ? { ...others, unstartedInstances: unstartedOf(app, process) } : others;
}

/** The status of a process that has no generation, and gets none now. What hindered a change is over when the change was canceled. */
function withoutGeneration(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>): CFProcessStatus {
  const { rollout, ...before } = process.status ?? {};
  const status = { ...before, unstartedInstances: unstartedOf(app, process) };
  if (isCanceled(app)) return status;
  const isStarted = app.spec.desiredState === 'STARTED';
  const ended = isStarted ? undefined : endedRollout(process, app.metadata.annotations?.[annotations.deployId] ?? '', context.now());
  return { ...status, ...defined({ rollout: ended ?? rollout }) };
}

/**
 * Ends what still runs of an app that was deleted without its parts, since neither kf nor the people of the space could. A process from a backup may
 * come before its app.
 */
async function endWithoutApp(context: Context, process: Stored<CFProcess>): Promise<Result | undefined> {
  const { namespace, name, uid, creationTimestamp = '' } = process.metadata;
  if (workloadsOf(process, context).length === 0) return undefined;
  const left = Date.parse(creationTimestamp) + appPatienceMs - context.now();
  if (left > 0) return { requeueAfterMs: left };
  if ((await context.cluster.get(kinds.app, namespace, process.spec.appRef.name, context.signal)) !== undefined) return undefined;
  context.log.warn('process without its app deleted', { process: name, app: process.spec.appRef.name });
  await context.cluster.delete(kinds.process, namespace, name, { uid, propagation: 'Background', signal: context.signal });
  return undefined;
}

const isEnding = ({ metadata }: Stored<CFApp> | Stored<CFProcess>): boolean => metadata.deletionTimestamp !== undefined;

/**
 * True when the app has its name and the CFApp reconciler has observed this generation of it. For a deploy-id that reconciler first reads
 * processes and env from the API server, so the rollout never uses state that is older than the user's command.
 */
function mayAct(app: Stored<CFApp>): boolean {
  if (findCondition(app, conditionTypes.claimed)?.status !== 'True') return false;
  const deployId = app.metadata.annotations?.[annotations.deployId];
  const isSeen = app.status?.observedGeneration === app.metadata.generation;
  return isSeen && (deployId === undefined || app.status?.deployment?.id === deployId);
}

/** What the process should come to: the wanted generation, or after a cancellation the one before. */
async function aimOf(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  droplet: Droplet | undefined,
): Promise<Target | 'again' | undefined> {
  const isFirst = droplet !== undefined && wantedInstances(app, process) > 0 && isScaledFirst(app, process);
  if (isCanceled(app) && !isFirst) return targetAfterCancellation(app, process, workloadsOf(process, context), droplet);
  const workload = await targetOf(context, app, process, droplet);
  return workload === undefined || workload === 'again' ? workload : { workload, isUnknownBefore: false };
}

/** When the replacement of a generation that cannot start again was refused, by the uid of its workload. */
const refusedReplacements = new Remembered(() => new BoundedMap<string, number>(5_000));

/** Milliseconds until the next try of a replacement that was refused; undefined without one, or when its time has come. */
function untilReplaced({ memory, now }: Context, { metadata: { uid } }: Stored<AppWorkload>): number | undefined {
  const at = memory.of(refusedReplacements).get(uid);
  const left = at === undefined ? 0 : at + failedRetryMs - now();
  return left > 0 ? left : undefined;
}

/** The generation that should run; created if it does not exist. `again` when an unfinished one was just removed. */
async function targetOf(
  context: Context,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  droplet: Droplet | undefined,
): Promise<Stored<AppWorkload> | 'again' | undefined> {
  const workloads = workloadsOf(process, context);
  if (droplet === undefined) assertNoChangeAsked(app, process, context);
  // A stopped process keeps its last generation without instances: a start without the controller scales that one up.
  if (droplet === undefined || wantedInstances(app, process) === 0) return lastOf(process, workloads);
  if (workloads.length === 0 && waitsForStart(app, process)) return undefined;
  const live = liveInputsOf(app, process, dropletFor(app, process, droplet, context.stores), context);
  const equal = findGeneration(process, workloads, live);
  const held = isScaledFirst(app, process) ? undefined : heldGeneration(app, process, workloads);
  const found = held ?? (equal && (await upToDate(context, app, process, live, equal)));
  if (found === undefined) return createGeneration(context, app, process, live);
  if (!(await makeWhole(context, app, process, live, found))) return 'again';
  if (findCondition(found, conditionTypes.whole)?.status !== 'False') return found;
  if (untilReplaced(context, found) !== undefined) return found;
  try {
    return await replaceLost(context, app, process, live, found);
  } catch (error) {
    const isRefused = refusalIn(error) !== undefined;
    if (isRefused) context.memory.of(refusedReplacements).set(found.metadata.uid, context.now());
    // The running instances stay; `rollout.message` reports that the version cannot start again.
    if (error instanceof WaitingError || isRefused) return found;
    throw error;
  }
}

/** The generation that stays while settings wait for the next start; undefined when none do, or when it is gone. */
function heldGeneration(
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  workloads: readonly Stored<AppWorkload>[],
): Stored<AppWorkload> | undefined {
  const { id, generations = [] } = process.status?.rollout ?? {};
  if (!isHeld(app, process) || id !== app.metadata.annotations?.[annotations.deployId]) return undefined;
  const wanted = generations.find(({ state }) => state !== 'Old')?.hash;
  return workloads.findLast(({ metadata }) => wanted !== undefined && metadata.labels?.[labels.generation] === wanted);
}

/** When this controller first saw what hinders a change, by the uid of the process. */
const hindrances = new Remembered(() => new BoundedMap<string, { what: string; at: number }>(5_000));

/** Since when this controller has seen `what` without a gap: a controller before it may have died before it could mend it. */
function hinderedFrom({ memory, stores, now }: Context, { metadata: { uid } }: Stored<CFProcess>, what: string): number {
  const known = memory.of(hindrances);
  const before = known.get(uid);
  const at = before?.what === what ? before.at : now();
  known.set(uid, { what, at });
  return Math.max(at, stores.of(kinds.process).steadySince);
}

/**
 * While a change is hindered, the version that runs can be scaled, and its instances are told as they are.
 * @returns their part of the status; nothing while several versions run, which the change brings together when it goes on
 */
async function scaleRunning(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>): Promise<Partial<CFProcessStatus>> {
  const [running, ...others] = workloadsOf(process, context).filter(({ spec }) => spec.instances > 0);
  if (running === undefined || others.length > 0) return {};
  const { namespace, name, resourceVersion, annotations: marks } = running.metadata;
  const instances = podInstances(context).of(namespace, process.metadata.name, () => expectationsOf(running));
  const hash = generationOf(running);
  if (marks?.[annotations.spare] === 'true' || instances.some(({ generation }) => generation !== hash)) return {};
  const wanted = wantedInstances(app, process);
  if (wanted > 0 && running.spec.instances !== wanted) {
    const patch = { metadata: { resourceVersion }, spec: { instances: wanted } };
    const patched = context.cluster.mergePatch(kinds.appWorkload, namespace, name, patch, { signal: context.signal });
    // What hinders the change can refuse this too, and is told all the same.
    await patched.catch((error: unknown) => {
      if (refusalIn(error) === undefined) throw error;
    });
  }
  return instancesPart(instancesStatus(instances, hash));
}

/** Reports why no generation can be made, before the next try. */
async function tellWhy(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>, error: unknown): Promise<never> {
  const hindrance = error instanceof WaitingError ? error : refusalIn(error);
  if (hindrance === undefined) throw error;
  const { reason, message } = hindrance;
  const deployId = app.metadata.annotations?.[annotations.deployId] ?? '';
  const times = { now: context.now(), from: hinderedFrom(context, process, `${deployId} ${reason}`) };
  const rollout = hinderedRollout(process, deployId, hindrance, times);
  if (rollout.phase === 'Failed' && process.status?.rollout?.phase !== 'Failed')
    await keepVerdict(context, app, { cause: causeOfReason(reason), message, process: process.spec.processType });
  const instances = await scaleRunning(context, app, process);
  await writeStatus(context, kinds.process, process, {
    ...process.status,
    actualInstances: process.status?.actualInstances ?? 0,
    ...instances,
    ...hinderedUnstartedOf(app, process),
    rollout,
  });
  // Nobody awaits it any more, and each try reads Secrets.
  if (rollout.phase !== 'Failed') throw hindrance;
  const { mostMs } = error instanceof WaitingError ? error : {};
  throw new WaitingError(reason, message, Math.max(hindrance.afterMs ?? 0, failedRetryMs), mostMs);
}

/**
 * Throws when the app's droplet is missing and the user requested a change, because nothing can be started. Without a request the running version
 * stays.
 */
function assertNoChangeAsked(app: Stored<CFApp>, process: Stored<CFProcess>, { stores }: Context): void {
  const name = app.spec.currentDropletRef?.name ?? '';
  const { id, reason } = process.status?.rollout ?? {};
  const isAsked = id !== (app.metadata.annotations?.[annotations.deployId] ?? '') || reason === reasons.cannotResolveDroplet;
  if (name === '' || !isAsked || wantedInstances(app, process) === 0) return;
  throw new WaitingError(
    reasons.cannotResolveDroplet,
    foreignBuild(app, name, stores) ?? `The app's droplet was deleted (build '${name}'); 'kf push' makes a new one.`,
    5_000,
  );
}

/** The generation that runs now, or the last one that served when its successor failed. */
function lastOf(process: Stored<CFProcess>, workloads: readonly Stored<AppWorkload>[]): Stored<AppWorkload> | undefined {
  const known = process.status?.rollout?.generations ?? [];
  const of = (hash: string | undefined): Stored<AppWorkload> | undefined =>
    workloads.findLast((workload) => hash !== undefined && workload.metadata.labels?.[labels.generation] === hash);
  const current = known.find(({ state }) => state === 'Current')?.hash;
  const served = new Set(known.filter((generation) => generation.served === true).map(({ hash }) => hash));
  return of(current) ?? workloads.findLast(({ metadata }) => served.has(metadata.labels?.[labels.generation] ?? '')) ?? workloads.at(-1);
}

/** @param guarded whether evictions must leave some of its instances */
async function ensureBudget(context: Context, process: Stored<CFProcess>, guarded: boolean): Promise<void> {
  const { namespace, name } = process.metadata;
  const live = context.stores.of(podDisruptionBudgetType).get(namespace, name);
  if (guarded && live === undefined) {
    await context.cluster.create(podDisruptionBudgetType, buildBudget(process), { signal: context.signal });
  } else if (!guarded && live?.metadata.uid !== undefined) {
    await context.cluster.delete(podDisruptionBudgetType, namespace, name, { uid: live.metadata.uid, signal: context.signal });
  }
}
