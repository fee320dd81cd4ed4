// The runner of tasks: makes one Job for each TaskWorkload, once and never again. The Job is suspended until TaskWorkload and CFTask say that it has
// started: whoever is killed on the way, or loses an object, never runs the command twice.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { jobType, type Job } from '../../lib/api/core.ts';
import { podType, type Pod } from '../../lib/api/pod-kind.ts';
import { conditionTypes, kinds, labels, reasons } from '../../lib/api/group.ts';
import type { CFTask, TaskWorkload } from '../../lib/api/types.generated.ts';
import { buildTaskJob, finishedTaskTtlSeconds } from '../../templates/task-job.ts';
import { causesSeenOn, untilCaughtUp } from '../instances/first-sight.ts';
import { abandonPods, lostNodeText, lostSince, nodeIndexes, nodesInMotion, untilPodAbandoned, watchNodes } from '../instances/nodes.ts';
import { problemOf } from '../instances/pod-state.ts';
import { isOfEarlier, isOwnedBy } from '../runtime/owner.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus, type Statement } from '../runtime/status.ts';
import { wholeOf } from '../runtime/whole.ts';
import { splitKey } from '../runtime/store.ts';
import { failureOf, outputOf } from './kept.ts';
import { awaitJob, awaitPod, started } from './refusal.ts';
import { hasStarted, openTask } from './state.ts';

const keyOfTask = (object: Stored<Job> | Stored<Pod>): string[] => {
  const name = object.metadata.labels?.[labels.taskGuid];
  return name === undefined ? [] : [`${object.metadata.namespace}/${name}`];
};
const podsByTask = index<Pod>(podType, 'task', keyOfTask);

export const taskWorkloadReconciler: Reconciler = {
  name: 'task-workload',
  watches: [
    watch(kinds.taskWorkload),
    watch<CFTask>(kinds.task),
    watch<Job>(jobType, keyOfTask),
    watch<Pod>(podType, keyOfTask),
    watchNodes(keyOfTask),
  ],
  indexes: [podsByTask, ...nodeIndexes],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const workload = context.stores.of(kinds.taskWorkload).get(ns, name);
    const pods = context.stores.of(podType).by(podsByTask.name, key);
    // The task was canceled, or deleted.
    if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) return abandonPods(context, pods);
    const has = (type: string): boolean => findCondition(workload, type)?.status === 'True';
    const present = context.stores.of(jobType).get(ns, name);
    const known = ownOf(workload, present);
    // The pod of an earlier run with the same name may take its time to end.
    const podOf = (job: Stored<Job> | undefined): Stored<Pod> | undefined =>
      job === undefined ? pods[0] : pods.find((pod) => !isOfEarlier(pod, job));
    if (has(conditionTypes.succeeded) || has(conditionTypes.failed)) {
      await letGo(context, known, has(conditionTypes.failed));
      return abandonPods(context, pods);
    }
    if (known === undefined && !has(conditionTypes.started)) {
      // The garbage collector deletes the Job of an earlier run, and the watch reports that.
      if (present !== undefined) return undefined;
      const whole = await wholeOf(context, kinds.taskWorkload, workload);
      // The leader before may have made the Job, and the watch will bring the record of it.
      if (hasStarted(whole)) return undefined;
      try {
        await context.cluster.create(jobType, buildTaskJob(whole), { signal: context.signal });
      } catch (error) {
        return awaitJob(context, workload, error);
      }
      await write(context, workload, started);
      return undefined;
    }
    // The cache may not have a Job that the leader before made a moment ago. Without its release the Job would wait for ever.
    const job = known ?? ownOf(workload, await context.cluster.get(jobType, ns, name, context.signal));
    if (job?.spec?.suspend === true) {
      await (has(conditionTypes.started) ? release(context, workload, job) : write(context, workload, started));
      return undefined;
    }
    return observe(context, workload, job, podOf(job));
  },
};

/** The Job unless it is of an earlier run with the same name, which the garbage collector deletes. */
function ownOf(workload: Stored<TaskWorkload>, job: Stored<Job> | undefined): Stored<Job> | undefined {
  return job !== undefined && isOwnedBy(job, workload) ? job : undefined;
}

async function write(context: Context, workload: Stored<TaskWorkload>, ...statements: Statement[]): Promise<void> {
  await writeStatus(context, kinds.taskWorkload, workload, {
    ...workload.status,
    conditions: conditionsWith(workload, ...statements, readyStatement),
  });
}

/** Lets the Job run when its task has recorded the start too. A TaskWorkload without a task needs no other record. */
async function release(context: Context, workload: Stored<TaskWorkload>, job: Stored<Job>): Promise<void> {
  const { namespace, name, ownerReferences = [] } = workload.metadata;
  const owner = ownerReferences.find(({ kind }) => kind === kinds.task.kind);
  if (owner !== undefined) {
    const task = context.stores.of(kinds.task).get(namespace, name);
    if (task?.metadata.uid !== owner.uid || !hasStarted(task)) return;
    if ((await openTask(context, task)) === undefined) return;
  }
  const patch = { metadata: { uid: job.metadata.uid }, spec: { suspend: false } };
  await context.cluster.mergePatch(jobType, namespace, name, patch, { signal: context.signal });
}

/** The pod of a Job that is complete. The watch of pods may be behind that of Jobs: then the API server is asked. */
async function endedPodOf(context: Context, job: Stored<Job>, known: Stored<Pod> | undefined): Promise<Stored<Pod> | undefined> {
  if (endOf(known) !== undefined) return known;
  const { namespace: ns, name } = job.metadata;
  const { items } = await context.cluster.list(podType, { ns, labelSelector: `${labels.taskGuid}=${name}`, signal: context.signal });
  return items.find((pod) => !isOfEarlier(pod, job));
}

/** Records that a run has succeeded, with its last lines, before anything removes its pod. */
async function writeSuccess(context: Context, workload: Stored<TaskWorkload>, pod: Stored<Pod> | undefined): Promise<void> {
  const succeeded: Statement = { type: conditionTypes.succeeded, status: 'True', reason: 'JobSucceeded', message: '' };
  await writeStatus(context, kinds.taskWorkload, workload, {
    ...workload.status,
    output: await outputOf(context, pod),
    conditions: conditionsWith(workload, started, succeeded, readyStatement),
  });
}

/** Records why a run has failed, with its last lines, before anything removes its pod. */
async function writeFailure(
  context: Context,
  workload: Stored<TaskWorkload>,
  pod: Stored<Pod> | undefined,
  said: { reason: string; message: string },
): Promise<void> {
  await writeStatus(context, kinds.taskWorkload, workload, {
    ...workload.status,
    failure: await failureOf(context, pod, said),
    conditions: conditionsWith(workload, started, { type: conditionTypes.failed, status: 'True', ...said }, readyStatement),
  });
}

const conditionOf = (job: Job, name: 'Complete' | 'Failed') =>
  job.status?.conditions?.find(({ type, status }) => type === name && status === 'True');
const hasEnded = (job: Job): boolean => (conditionOf(job, 'Complete') ?? conditionOf(job, 'Failed')) !== undefined;

/**
 * Lets the cluster delete the Job of a finished task, with its pod, after a while. This is set only when the task's end is in its status.
 * Otherwise a controller that was away for longer would find no Job, and report a successful task as deleted.
 */
async function letGo(context: Context, job: Stored<Job> | undefined, hasFailed: boolean): Promise<void> {
  if (job === undefined || job.metadata.deletionTimestamp !== undefined) return;
  if (hasFailed && !hasEnded(job)) {
    await removeOpen(context, job);
    return;
  }
  if (job.spec?.ttlSecondsAfterFinished === finishedTaskTtlSeconds) return;
  const { namespace, name, uid } = job.metadata;
  const patch = { metadata: { uid }, spec: { ttlSecondsAfterFinished: finishedTaskTtlSeconds } };
  await context.cluster.mergePatch(jobType, namespace, name, patch, { signal: context.signal });
}

/**
 * Deletes the Job of a task that has failed: it could still run the command, and its TTL would never begin. The API server is asked, because the cache
 * may not know yet that the Job has ended.
 */
async function removeOpen(context: Context, { metadata: { namespace, name, uid } }: Stored<Job>): Promise<void> {
  const live = await context.cluster.get(jobType, namespace, name, context.signal);
  if (live?.metadata.uid !== uid || hasEnded(live)) return;
  await context.cluster.delete(jobType, namespace, name, { uid, propagation: 'Background', signal: context.signal });
}

const endOf = (pod: Stored<Pod> | undefined) => pod?.status?.containerStatuses?.[0]?.state?.terminated;

async function observe(
  context: Context,
  workload: Stored<TaskWorkload>,
  job: Stored<Job> | undefined,
  pod: Stored<Pod> | undefined,
): Promise<Result | undefined> {
  if (job === undefined) {
    await writeFailure(context, workload, pod, { reason: 'JobDeleted', message: 'The Job of the task was deleted.' });
    return undefined;
  }
  const ended = endOf(pod);
  if (conditionOf(job, 'Complete') !== undefined) {
    await writeSuccess(context, workload, await endedPodOf(context, job, pod));
    return undefined;
  }
  const failure = conditionOf(job, 'Failed');
  if (failure !== undefined) return fail(context, workload, failure, pod);
  if (pod === undefined) return awaitPod(context, workload, job);
  await write(context, workload, started);
  if (ended !== undefined) return undefined;
  const wait = await untilPodAbandoned(context, pod);
  if (wait === 0) return failLost(context, workload, pod);
  return wait === undefined ? giveUp(context, workload, job, pod) : { requeueAfterMs: wait };
}

/** @param failure the condition of the Job */
async function fail(
  context: Context,
  workload: Stored<TaskWorkload>,
  failure: { reason?: string; message?: string },
  pod: Stored<Pod> | undefined,
): Promise<Result | undefined> {
  const ended = endOf(pod);
  if (ended === undefined && isOnLostNode(context, pod)) return failLost(context, workload, pod);
  const message = ended === undefined ? (failure.message ?? '') : `Failed with exit code: ${String(ended.exitCode)}`;
  await writeFailure(context, workload, pod, { reason: ended?.reason ?? failure.reason ?? 'Unknown', message });
  return undefined;
}

const isOnLostNode = ({ stores }: Context, pod: Stored<Pod> | undefined): pod is Stored<Pod> =>
  pod?.metadata.deletionTimestamp !== undefined && lostSince(stores, pod.spec?.nodeName) !== undefined;

/** The end of the task is in its status before its pod is removed, so that the Job has no say in the reason. */
async function failLost(context: Context, workload: Stored<TaskWorkload>, pod: Stored<Pod>): Promise<Result | undefined> {
  const message = `${lostNodeText(pod.spec?.nodeName)}. How far the task came there is not known; it is not run again.`;
  await writeFailure(context, workload, pod, { reason: reasons.nodeLost, message });
  return abandonPods(context, [pod]);
}

/** A pod that cannot start would wait for ever, so the task fails with the cause and the Job is deleted. */
async function giveUp(context: Context, workload: Stored<TaskWorkload>, job: Stored<Job>, pod: Stored<Pod>): Promise<Result | undefined> {
  const now = context.now();
  const problem = problemOf(pod, {
    now,
    expectations: { startSeconds: 0 },
    ...causesSeenOn(context, pod.metadata.uid, now),
    lostSince: lostSince(context.stores, pod.spec?.nodeName),
    nodesInMotion: () => nodesInMotion(context.stores),
  });
  if (problem === undefined) return undefined;
  if (!problem.final) return { requeueAfterMs: problem.lookAgainMs ?? 2_000 };
  // Running tasks have no time limit.
  if (problem.reason === 'StartTimeout') return undefined;
  const left = problem.byTime === true ? untilCaughtUp(context.stores.of(podType).steadySince, now) : 0;
  if (left > 0) return { requeueAfterMs: left };
  await writeFailure(context, workload, pod, { reason: problem.reason, message: problem.message });
  await removeOpen(context, job);
  return undefined;
}
