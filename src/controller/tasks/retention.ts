// Deletes finished tasks: the newest of each app stay, and all of a space together leave enough quota for the next task (docs/decisions/0036).
// Unfinished tasks are never touched. Only the status counts, which the controller alone writes; other fields of a task do not.

import type { Stored } from '../../lib/api/object.ts';
import { namespaceType, resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { group, kinds } from '../../lib/api/group.ts';
import { parseQuantity } from '../../lib/api/sizes.ts';
import { endOf } from '../../lib/api/task-end.ts';
import type { CFApp, CFTask } from '../../lib/api/types.generated.ts';
import { defaultTasksKept } from '../../templates/limits.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { splitKey } from '../runtime/store.ts';
import { isOver } from './state.ts';

/** A task that finished more recently is kept if the quota allows it: somebody who waits for its end may not have seen it yet. */
const graceMs = 2 * 60_000;
/** Pause between two looks at a space, however many of its tasks change. In 5 s, scripts fill a space with 200 tasks. */
const pauseMs = 1_000;
const deletionsPerLook = 50;
const rememberedSpaces = 10_000;

/** The part of the quota left by unfinished tasks that finished ones may use, per resource. Pods and Jobs are also used by apps and builds. */
const shares: Record<string, number> = {
  [`count/${kinds.task.plural}.${group}`]: 1 / 2,
  [`count/${kinds.taskWorkload.plural}.${group}`]: 1 / 2,
  'count/jobs.batch': 1 / 4,
  'count/pods': 1 / 4,
};

/** How many finished tasks the quotas of a space allow beside `open` unfinished ones. */
export function mostFinished(quotas: readonly ResourceQuota[], open: number): number {
  const bounds = quotas.flatMap(({ spec }) =>
    Object.entries(shares).flatMap(([resource, share]) => {
      const hard = parseQuantity(spec?.hard?.[resource]);
      return hard === undefined ? [] : [Math.floor(Math.max(0, hard - open) * share)];
    }),
  );
  return Math.min(...bounds);
}

export interface KeptTasks {
  keptPerApp: number;
  /** Limit for all apps of the space together. */
  most: number;
  now: number;
  /** True for an app that does not exist any more. */
  isGone: (app: string) => boolean;
}

export interface TaskSurplus {
  /** Tasks to delete: first those above the limit of each app, then those above the limit of the space. */
  going: Stored<CFTask>[];
  /** More tasks will be deleted when they are old enough. */
  waits: boolean;
}

interface Ended {
  task: Stored<CFTask>;
  at: number;
  /** Number of tasks of the same app that come before it. */
  rank: number;
}

const appOf = ({ spec }: Stored<CFTask>): string => spec.appRef?.name ?? '';

/** True for a task that has finished and is not being deleted. */
const isFinished = (task: Stored<CFTask>): boolean => isOver(task) && task.metadata.deletionTimestamp === undefined;

/** When a task ended, in milliseconds, as the controller wrote it; 0 if that cannot be read. */
const endedMs = (task: Stored<CFTask>): number => Date.parse(endOf(task)?.lastTransitionTime ?? '') || 0;

/** The finished tasks of one app, newest first. The one with the highest number comes first of all, because the next number depends on it. */
function ranked(ofApp: readonly Stored<CFTask>[]): Ended[] {
  const last = Math.max(...ofApp.map(({ status }) => status?.sequenceId ?? 0));
  const isLast = ({ task }: { task: Stored<CFTask> }): number => (last > 0 && task.status?.sequenceId === last ? 1 : 0);
  return ofApp
    .filter(isFinished)
    .map((task) => ({ task, at: endedMs(task) }))
    .toSorted((a, b) => isLast(b) - isLast(a) || b.at - a.at)
    .map((ended, rank) => ({ ...ended, rank }));
}

/** The tasks of one space that are to be deleted. */
export function surplusTasks(tasks: readonly Stored<CFTask>[], { keptPerApp, most, now, isGone }: KeptTasks): TaskSurplus {
  const finished = [...Map.groupBy(tasks, appOf).values()].flatMap((ofApp) => ranked(ofApp));
  const isSurplus = ({ task, rank }: Ended): boolean => rank >= keptPerApp || isGone(appOf(task));
  const mayGo = (ended: Ended): boolean => isSurplus(ended) && (isGone(appOf(ended.task)) || now - ended.at > graceMs);
  const oldestFirst = (a: Ended, b: Ended): number => a.at - b.at;
  const going = finished.filter(mayGo).toSorted(oldestFirst);
  const staying = finished.filter((ended) => !mayGo(ended)).toSorted((a, b) => b.rank - a.rank || oldestFirst(a, b));
  const tooMany = Math.max(0, staying.length - most);
  return {
    going: [...going, ...staying.slice(0, tooMany)].map(({ task }) => task),
    waits: staying.slice(tooMany).some(isSurplus),
  };
}

const keyOfSpace = (ns: string | undefined): string => `/${ns ?? ''}`;
const bySpace = index<CFTask>(kinds.task, 'space', ({ metadata }) => [metadata.namespace]);

/** Keys are `/space`: a space is handled as a whole, and not again for {@link pauseMs}. */
export function taskRetentionReconciler(): Reconciler {
  const looked = new BoundedMap<string, number>(rememberedSpaces);
  return {
    name: 'task-retention',
    workers: 1,
    watches: [
      watch<CFTask>(kinds.task, ({ metadata }) => [keyOfSpace(metadata.namespace)]),
      // After the deletion of an app, tasks remain that were created before tasks had owner references.
      watch<CFApp>(kinds.app, ({ metadata }, stores) =>
        stores.of(kinds.app).get(metadata.namespace, metadata.name) === undefined ? [keyOfSpace(metadata.namespace)] : [],
      ),
    ],
    reads: [namespaceType],
    indexes: [bySpace],
    reconcile: async (key, context) => {
      const { name: ns } = splitKey(key);
      const tasks = context.stores.of(kinds.task).by(bySpace.name, ns);
      const isEnding = context.stores.of(namespaceType).get(undefined, ns)?.metadata.deletionTimestamp !== undefined;
      if (isEnding || !tasks.some(isFinished)) return undefined;
      const left = (looked.get(ns) ?? 0) + pauseMs - context.now();
      if (left > 0) return { requeueAfterMs: Math.min(left, pauseMs) };
      looked.set(ns, context.now());
      return sweep(context, ns, tasks);
    },
  };
}

async function sweep(context: Context, ns: string, tasks: readonly Stored<CFTask>[]): Promise<{ requeueAfterMs: number } | undefined> {
  const { items: quotas } = await context.cluster.list(resourceQuotaType, { ns, signal: context.signal });
  const gone = await goneApps(context, ns, tasks);
  const surplus = surplusTasks(tasks, {
    keptPerApp: context.info().tasksKeptPerApp ?? defaultTasksKept,
    most: mostFinished(quotas, tasks.length - tasks.filter(isFinished).length),
    now: context.now(),
    isGone: (app) => gone.has(app),
  });
  const first = surplus.going.slice(0, deletionsPerLook);
  const refusals: unknown[] = [];
  for (const task of first) await remove(context, task).catch((error: unknown) => refusals.push(error));
  // A task that cannot be deleted does not keep the others.
  if (refusals.length > 0) throw refusals[0];
  if (surplus.going.length > first.length) return { requeueAfterMs: pauseMs };
  return surplus.waits ? { requeueAfterMs: graceMs } : undefined;
}

/** Apps of finished tasks that do not exist any more. Only an answer of the API server counts, because the task is then deleted. */
async function goneApps(context: Context, ns: string, tasks: readonly Stored<CFTask>[]): Promise<Set<string>> {
  const apps = new Set(tasks.filter(isFinished).map(appOf));
  const gone = new Set<string>();
  for (const app of apps) {
    if (context.stores.of(kinds.app).get(ns, app) !== undefined) continue;
    if ((await context.cluster.get(kinds.app, ns, app, context.signal)) === undefined) gone.add(app);
  }
  return gone;
}

async function remove(context: Context, { metadata }: Stored<CFTask>): Promise<void> {
  const { namespace, name, uid } = metadata;
  await context.cluster.delete(kinds.task, namespace, name, { uid, propagation: 'Background', signal: context.signal });
}
