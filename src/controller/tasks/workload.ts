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
import { abandonPod, lostNodeText, lostSince, nodeIndexes, nodesInMotion, untilPodAbandoned, watchNodes } from '../instances/nodes.ts';
import { problemOf } from '../instances/pod-state.ts';
import { index, watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus, type Statement } from '../runtime/status.ts';
import { wholeOf } from '../runtime/whole.ts';
import { splitKey } from '../runtime/store.ts';
import { awaitPod, started } from './refusal.ts';

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
    if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) return undefined;
    const has = (type: string): boolean => findCondition(workload, type)?.status === 'True';
    const known = context.stores.of(jobType).get(ns, name);
    const pod = context.stores.of(podType).by(podsByTask.name, key)[0];
    if (has(conditionTypes.succeeded) || has(conditionTypes.failed)) {
      await letGo(context, workload, known);
      return abandon(context, pod);
    }
    if (known === undefined && !has(conditionTypes.started)) {
      const whole = await wholeOf(context, kinds.taskWorkload, workload);
      await context.cluster.create(jobType, buildTaskJob(whole), { signal: context.signal });
      await write(context, workload, started);
      return undefined;
    }
    // The cache may not have a Job that the leader before made a moment ago. Without its release the Job would wait for ever.
    const job = known ?? (await context.cluster.get(jobType, ns, name, context.signal));
    if (job?.spec?.suspend === true) {
      await (has(conditionTypes.started) ? release(context, workload, job) : write(context, workload, started));
      return undefined;
    }
    return observe(context, workload, job, pod);
  },
};

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
    if (task?.metadata.uid !== owner.uid || findCondition(task, conditionTypes.started)?.status !== 'True') return;
  }
  const patch = { metadata: { uid: job.metadata.uid }, spec: { suspend: false } };
  await context.cluster.mergePatch(jobType, namespace, name, patch, { signal: context.signal });
}

const failed = (reason: string, message: string): Statement => ({ type: conditionTypes.failed, status: 'True', reason, message });

/**
 * Lets the cluster delete the Job of a finished task, with its pod, after a while. This is set only when the task's end is in its status.
 * Otherwise a controller that was away for longer would find no Job, and report a successful task as deleted.
 */
async function letGo(context: Context, workload: Stored<TaskWorkload>, job: Stored<Job> | undefined): Promise<void> {
  const { namespace, name = '', uid, deletionTimestamp, ownerReferences = [] } = job?.metadata ?? {};
  const isOwn = ownerReferences.some((owner) => owner.uid === workload.metadata.uid);
  if (uid === undefined || !isOwn || deletionTimestamp !== undefined) return;
  if (job?.spec?.ttlSecondsAfterFinished === finishedTaskTtlSeconds) return;
  const patch = { metadata: { uid }, spec: { ttlSecondsAfterFinished: finishedTaskTtlSeconds } };
  await context.cluster.mergePatch(jobType, namespace, name, patch, { signal: context.signal });
}

const endOf = (pod: Stored<Pod> | undefined) => pod?.status?.containerStatuses?.[0]?.state?.terminated;

async function observe(
  context: Context,
  workload: Stored<TaskWorkload>,
  job: Stored<Job> | undefined,
  pod: Stored<Pod> | undefined,
): Promise<Result | undefined> {
  if (job === undefined) {
    await write(context, workload, failed('JobDeleted', 'The Job of the task was deleted.'));
    return undefined;
  }
  const ended = endOf(pod);
  if (job.status?.conditions?.some(({ type, status }) => type === 'Complete' && status === 'True') === true) {
    await write(context, workload, started, { type: conditionTypes.succeeded, status: 'True', reason: 'JobSucceeded', message: '' });
    return undefined;
  }
  const failure = job.status?.conditions?.find(({ type, status }) => type === 'Failed' && status === 'True');
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
  await write(context, workload, started, failed(ended?.reason ?? failure.reason ?? 'Unknown', message));
  return undefined;
}

const isOnLostNode = ({ stores }: Context, pod: Stored<Pod> | undefined): pod is Stored<Pod> =>
  pod?.metadata.deletionTimestamp !== undefined && lostSince(stores, pod.spec?.nodeName) !== undefined;

/** The end of the task is in its status before its pod is removed, so that the Job has no say in the reason. */
async function failLost(context: Context, workload: Stored<TaskWorkload>, pod: Stored<Pod>): Promise<Result | undefined> {
  const message = `${lostNodeText(pod.spec?.nodeName)}. How far the task came there is not known; it is not run again.`;
  await write(context, workload, started, failed(reasons.nodeLost, message));
  return abandon(context, pod);
}

/** Removes the pod of a finished task that its node does not end; until then it counts in the quota. */
async function abandon(context: Context, pod: Stored<Pod> | undefined): Promise<Result | undefined> {
  const wait = await untilPodAbandoned(context, pod);
  if (pod === undefined || wait === undefined) return undefined;
  if (wait > 0) return { requeueAfterMs: wait };
  await abandonPod(context, pod);
  return undefined;
}

/** A pod that cannot start would wait for ever, so the task fails with the cause and the Job is deleted. */
async function giveUp(context: Context, workload: Stored<TaskWorkload>, job: Stored<Job>, pod: Stored<Pod>): Promise<Result | undefined> {
  const now = context.now();
  const problem = problemOf(pod, {
    now,
    expectations: { startSeconds: 0 },
    ...causesSeenOn(context, pod.metadata.uid, now),
    nodesInMotion: () => nodesInMotion(context.stores),
  });
  if (problem === undefined) return undefined;
  if (!problem.final) return { requeueAfterMs: problem.lookAgainMs ?? 2_000 };
  // Running tasks have no time limit.
  if (problem.reason === 'StartTimeout') return undefined;
  const left = problem.byTime === true ? untilCaughtUp(context.stores.of(podType).steadySince, now) : 0;
  if (left > 0) return { requeueAfterMs: left };
  await write(context, workload, failed(problem.reason, problem.message));
  const { namespace, name, uid } = job.metadata;
  await context.cluster.delete(jobType, namespace, name, { uid, propagation: 'Background', signal: context.signal });
  return undefined;
}
