// Reconciles CFProcess: finds the wanted generation, replaces the one before with it, and reports the result.

import type { Stored } from '../../lib/api/object.ts';
import { causeOfReason } from '../../lib/api/causes.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType, podDisruptionBudgetType, type PodDisruptionBudget } from '../../lib/api/core.ts';
import { httpRouteType, type HttpRoute } from '../../lib/api/gateway.ts';
import { annotations, conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import { isHeld } from '../../lib/api/held.ts';
import { isCanceled } from '../../lib/api/rollout.ts';
import type { AppWorkload, CFApp, CFBuild, CFProcess, CFRoute, Droplet } from '../../lib/api/types.generated.ts';
import { buildBudget } from '../../templates/stateful-set.ts';
import { instancesByProcess, nodeIndexes, watchInstances, watchNodesOfInstances } from '../instances/pod-instances.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { WaitingError, type Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus, type Statement } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { appIndexes, appsByDroplet, dropletOf, foreignBuild, processKeys, wantedInstances } from '../relations.ts';
import { halvesByOwner, halvesOf } from '../shared-routes.ts';
import { withProcessDefaults } from './process-defaults.ts';
import { targetAfterCancellation, type Target } from './cancellation.ts';
import { createGeneration, findGeneration, isWhole, liveInputsOf, replaceLost, workloadsOf } from './generation.ts';
import { lookAtDrain, setsByProcess } from './held-drain.ts';
import { Proofs } from './traffic-probe.ts';
import { Rollouts } from './step.ts';
import { hinderedRollout, selectorOf } from './status.ts';
import { keepVerdict } from './verdict.ts';

/** As long as for tasks: an app that is missing for this long was deleted. */
const appPatienceMs = 10 * 60_000;

const ownKey = (object: { metadata: { namespace?: string } }, guid: string | undefined): string[] =>
  guid === undefined || guid === '' ? [] : [`${object.metadata.namespace ?? ''}/${guid}`];

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
      watch<AppWorkload>(kinds.appWorkload, (workload) => ownKey(workload, workload.spec.GUID)),
      watchInstances((instance) => ownKey(instance, instance.metadata.labels?.[labels.guid])),
      watchNodesOfInstances((instance) => ownKey(instance, instance.metadata.labels?.[labels.guid])),
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
      watch<PodDisruptionBudget>(podDisruptionBudgetType, (budget) => ownKey(budget, budget.metadata.labels?.[labels.guid])),
    ],
    reads: [kinds.space, kinds.org, kinds.domain, namespaceType],
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
  const app = context.stores.of(kinds.app).get(live.metadata.namespace, live.spec.appRef.name);
  if (app === undefined || isEnding(live) || isEnding(app)) {
    // A finalizer can keep its instances running for ever, and nobody wants them any more.
    await ensureBudget(context, live, false);
    return app === undefined && !isEnding(live) ? endWithoutApp(context, live) : undefined;
  }
  if (!mayAct(app)) return undefined;
  const process = await withProcessDefaults(context, live);

  const droplet = dropletOf(app, app.spec.currentDropletRef?.name, context.stores);
  const target = await aimOf(context, app, process, droplet).catch((error: unknown) => tellWhy(context, app, process, error));
  if (target === 'again') return { requeueAfterMs: 1 };
  const outcome = target === undefined ? undefined : await rollouts.step(context, app, process, target);
  await ensureBudget(context, process, !overdue && (outcome?.guarded ?? wantedInstances(app, process) > 1));
  const ready: Statement = readyStatement;
  await writeStatus(context, kinds.process, process, {
    ...process.status,
    actualInstances: 0,
    ...outcome?.status,
    selector: selectorOf(process),
    conditions: conditionsWith(process, ready),
  });
  return outcome?.requeueAfterMs === undefined ? undefined : { requeueAfterMs: outcome.requeueAfterMs };
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
  if (isCanceled(app)) return targetAfterCancellation(app, process, workloadsOf(process, context), droplet);
  const workload = await targetOf(context, app, process, droplet);
  return workload === undefined || workload === 'again' ? workload : { workload, isUnknownBefore: false };
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
  // As in cf, a process that a manifest adds to a running app gets its instances with the next start.
  if (isHeld(app, process) && workloads.length === 0 && process.status?.rollout === undefined) return undefined;
  const live = liveInputsOf(app, process, droplet, context);
  const found = heldGeneration(app, process, workloads) ?? findGeneration(workloads, live);
  if (found === undefined) return createGeneration(context, app, process, live);
  if (!(await isWhole(context, process, found))) return 'again';
  if (findCondition(found, conditionTypes.whole)?.status !== 'False') return found;
  try {
    return await replaceLost(context, app, process, live, found);
  } catch (error) {
    // The running instances stay; `rollout.message` reports that the version cannot start again.
    if (error instanceof WaitingError) return found;
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

/** Reports why no generation can be made, before the next try. */
async function tellWhy(context: Context, app: Stored<CFApp>, process: Stored<CFProcess>, error: unknown): Promise<never> {
  if (error instanceof WaitingError) {
    const deployId = app.metadata.annotations?.[annotations.deployId] ?? '';
    const times = { now: context.now(), from: hinderedFrom(context, process, `${deployId} ${error.reason}`) };
    const rollout = hinderedRollout(process, deployId, error, times);
    if (rollout.phase === 'Failed' && process.status?.rollout?.phase !== 'Failed') {
      const cause = causeOfReason(error.reason);
      await keepVerdict(context, app, { cause, message: error.message, process: process.spec.processType });
    }
    await writeStatus(context, kinds.process, process, {
      ...process.status,
      actualInstances: process.status?.actualInstances ?? 0,
      rollout,
    });
  }
  throw error;
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
