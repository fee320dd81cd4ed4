// BuildWorkload for kf's own builder: runs one pod once and follows it to its end.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { jobType, secretType } from '../../lib/api/core.ts';
import { podType } from '../../lib/api/pod-kind.ts';
import type { Job } from '../../lib/api/core.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import { conditionTypes, kinds, labels, places, reasons } from '../../lib/api/group.ts';
import { pullRepository } from '../../lib/api/repositories.ts';
import type { BuilderInfo, BuildFailure, BuildWorkload, BuildWorkloadStatus, Droplet } from '../../lib/api/types.generated.ts';
import { buildsByApp } from '../relations.ts';
import { index, watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler, Stores } from '../runtime/reconciler.ts';
import { TerminalError, WaitingError } from '../runtime/result.ts';
import type { Result } from '../runtime/result.ts';
import { causesSeenOn, untilCaughtUp } from '../instances/first-sight.ts';
import { abandonPod, abandonPods, lostNodeText, lostSince, nodeIndexes, untilPodAbandoned, watchNodes } from '../instances/nodes.ts';
import { conditionsWith, notReady, readyStatement, writeStatus } from '../runtime/status.ts';
import type { Statement } from '../runtime/status.ts';
import { isOfEarlier } from '../runtime/owner.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { readFacts } from './droplet-facts.ts';
import { withCause, withLastLines } from './last-lines.ts';
import { outcomeOf } from './outcome.ts';
import type { FailedBuild, WaitingBuild } from './outcome.ts';
import { buildRefusal, podRefusal } from './refusal.ts';
import { releaseExport } from './release.ts';
import type { DropletFacts, ExportReport } from './report.ts';
import { appGuidOf, buildTimeoutSeconds, registrySecretName, roomPatienceSeconds, startBuild } from './start.ts';
import type { BuildTools } from './start.ts';
import { defined } from '../../lib/defined.ts';

const byWorkload = 'pod-by-build';
/**
 * How long a build may wait for each of these reasons before it fails: since no node takes it, or since the cause was first seen on its pod. A kubelet
 * that could not read an object has longer.
 */
const patienceMs: Record<string, number> = {
  [reasons.unschedulable]: roomPatienceSeconds * 1_000,
  [reasons.builderNotFound]: 30_000,
  [reasons.buildFailed]: 30_000,
};
const lookAgainMs = 2_000;
const longestPauseMs = 30_000;
/** How long a Job may be without a pod before its Events are read. */
const podPatienceMs = 3_000;
/** The shortest `activeDeadlineSeconds` that Kubernetes allows: it ends a pod at once. */
const endAtOnce = 1;

/** The pause before the next look at something that has lasted for so long already: a tenth of that time, from 2 s to 30 s. */
const pauseAfter = (lastedMs: number): number => Math.max(lookAgainMs, Math.min(longestPauseMs, lastedMs / 10));

const keyOfBuild = (object: Stored<Job> | Stored<Pod>): string[] => {
  const name = object.metadata.labels?.[labels.buildWorkloadName];
  return name === undefined ? [] : [`${object.metadata.namespace}/${name}`];
};
const openWorkloads = (_: unknown, stores: Stores): string[] =>
  stores
    .of(kinds.buildWorkload)
    .list()
    .filter((workload) => !isFinal(workload))
    .map(keyOf);

/** @param tools the key reader, which other reconcilers use as well, and the fetch program's text */
export function buildWorkloadReconciler(tools: BuildTools): Reconciler {
  return {
    name: 'build-workload',
    workers: 4,
    watches: [
      watch(kinds.buildWorkload),
      watch<Job>(jobType, keyOfBuild),
      watch<Pod>(podType, keyOfBuild),
      watch<BuilderInfo>(kinds.builderInfo, openWorkloads),
      watchNodes(keyOfBuild),
    ],
    reads: [kinds.build],
    indexes: [buildsByApp, index(podType, byWorkload, keyOfBuild), ...nodeIndexes],
    reconcile: async (key, context) => {
      const { ns, name } = splitKey(key);
      const live = context.stores.of(kinds.buildWorkload).get(ns, name);
      // The build was deleted, with its app as a rule.
      if (live === undefined || live.metadata.deletionTimestamp !== undefined)
        return abandonPods(context, context.stores.of(podType).by(byWorkload, key));
      if (live.spec.builderName !== context.info().builder.name) return undefined;
      if (isFinal(live)) return tidyUp(context, live);
      return advance(context, live, tools);
    },
  };
}

function isFinal(workload: Stored<BuildWorkload>): boolean {
  const succeeded = findCondition(workload, conditionTypes.succeeded);
  return succeeded !== undefined && succeeded.status !== 'Unknown';
}

async function advance(context: Context, live: Stored<BuildWorkload>, tools: BuildTools): Promise<Result | undefined> {
  const job = await findJob(context, live);
  // Its end would say nothing about this build.
  if (job !== undefined && isOfEarlier(job, live)) return { requeueAfterMs: lookAgainMs };
  const hasStarted = findCondition(live, conditionTypes.succeeded)?.reason === reasons.buildRunning;
  if (job === undefined && hasStarted)
    return failRun(context, live, podOf(context, live), {
      failure: { reason: reasons.buildFailed },
      message: 'The Job of the build was deleted while it ran.',
    });
  if (job === undefined) return start(context, live, tools);
  return followJob(context, live, job);
}

async function findJob(context: Context, live: Stored<BuildWorkload>): Promise<Stored<Job> | undefined> {
  const { namespace, name } = live.metadata;
  // The cache may not have a Job that was made a moment ago, and a build must not start twice.
  return context.stores.of(jobType).get(namespace, name) ?? context.cluster.get(jobType, namespace, name, context.signal);
}

async function start(context: Context, live: Stored<BuildWorkload>, tools: BuildTools): Promise<Result | undefined> {
  try {
    await startBuild(context, live, tools);
  } catch (error) {
    if (error instanceof TerminalError) return fail(context, live, { failure: { reason: error.reason }, message: error.message });
    if (error instanceof WaitingError) await write(context, live, {}, [running(error.reason, error.message), notReady(error)]);
    const refusal = buildRefusal(context, live, error);
    if (refusal === undefined) throw error;
    if (refusal.isFinal) return fail(context, live, refusal);
    await write(context, live, {}, [running(reasons.buildNotRunning, refusal.message), readyStatement]);
    return { requeueAfterMs: refusal.retryAfterMs };
  }
  await write(context, live, {}, [running(reasons.buildRunning, ''), readyStatement]);
  return { requeueAfterMs: podPatienceMs };
}

const running = (reason: string, message: string): Statement => ({ type: conditionTypes.succeeded, status: 'Unknown', reason, message });

async function followJob(context: Context, live: Stored<BuildWorkload>, job: Stored<Job>): Promise<Result | undefined> {
  const pod = podOf(context, live, job);
  if (pod === undefined) return followJobWithoutPod(context, live, job);
  await releaseExport(context, pod);
  // The pod's own deadline: a policy of the cluster may have shortened it.
  const timeoutSeconds = pod.spec?.activeDeadlineSeconds ?? buildTimeoutSeconds;
  const { wasSeen } = causesSeenOn(context, pod.metadata.uid, context.now());
  const outcome = outcomeOf(pod, { memoryMB: context.info().staging.memoryMB, timeoutSeconds }, wasSeen);
  switch (outcome.state) {
    case 'succeeded':
      return succeed(context, live, pod, outcome.report);
    case 'failed':
      return endsByDeletion(pod) ? followEnd(context, live, pod) : failRun(context, live, pod, outcome);
    case 'running':
      await write(context, live, {}, [running(reasons.buildRunning, ''), readyStatement]);
      return followEnd(context, live, pod);
    case 'waiting':
      return lostSince(context.stores, pod.spec?.nodeName) === undefined
        ? wait(context, live, pod, outcome)
        : waitOnLostNode(context, live, pod);
  }
}

/** A pod that ends, and whose node does not answer, never says how it ended. */
async function followEnd(context: Context, live: Stored<BuildWorkload>, pod: Stored<Pod>): Promise<Result | undefined> {
  const wait = await untilPodAbandoned(context, pod);
  if (wait === undefined) return undefined;
  if (wait > 0) return { requeueAfterMs: wait };
  return failRun(context, live, pod, {
    failure: { reason: reasons.nodeLost },
    message: `${lostNodeText(pod.spec?.nodeName)}; the build ran there.`,
  });
}

/** What the status of a pod on a silent node says of it is old: the build goes on when the node answers again, or ends with the pod. */
async function waitOnLostNode(context: Context, live: Stored<BuildWorkload>, pod: Stored<Pod>): Promise<Result | undefined> {
  const silent = running(reasons.buildRunning, `${lostNodeText(pod.spec?.nodeName)}.`);
  return followEnd(context, await write(context, live, {}, [silent, readyStatement]), pod);
}

function podOf(context: Context, live: Stored<BuildWorkload>, job?: Stored<Job>): Stored<Pod> | undefined {
  const all = context.stores.of(podType).by(byWorkload, keyOf(live));
  const pods = job === undefined ? all : all.filter((pod) => !isOfEarlier(pod, job));
  return pods.find((pod) => pod.metadata.deletionTimestamp === undefined) ?? pods[0];
}

async function wait(context: Context, live: Stored<BuildWorkload>, pod: Stored<Pod>, waiting: WaitingBuild): Promise<Result | undefined> {
  const { reason, message, cause } = waiting;
  const patience = waiting.patienceMs ?? patienceMs[reason];
  const now = context.now();
  const since = cause === undefined ? Date.parse(waiting.since ?? '') : causesSeenOn(context, pod.metadata.uid, now).firstSeen(cause);
  const isTooLong = patience !== undefined && now - since > patience;
  if (isTooLong && untilCaughtUp(context.stores.of(podType).steadySince, now) <= 0)
    return fail(context, live, { failure: { reason }, message });
  // The reason stays BuildRunning: it says that the Job was made, and must not be made again.
  await write(context, live, {}, [running(reasons.buildRunning, reason === reasons.buildRunning ? '' : message), readyStatement]);
  return patience === undefined ? undefined : { requeueAfterMs: lookAgainMs };
}

async function followJobWithoutPod(context: Context, live: Stored<BuildWorkload>, job: Stored<Job>): Promise<Result | undefined> {
  const ended = (end: string) => job.status?.conditions?.find(({ type, status }) => type === end && status === 'True');
  const fails = (message: string) => failRun(context, live, undefined, { failure: { reason: reasons.buildFailed }, message });
  const failed = ended('Failed');
  if (failed !== undefined) return fails(`The build's pod is gone: ${failed.message ?? failed.reason ?? 'deleted'}.`);
  // The cache may not have the pod yet.
  if (ended('Complete') !== undefined && !(await hasPod(context, live, job)))
    return fails('The build ended well, but its pod was deleted before the controller had read which droplet it made.');
  const age = context.now() - Date.parse(job.metadata.creationTimestamp ?? '');
  if (age > podPatienceMs) {
    const refusal = await podRefusal(context, job);
    if (refusal !== undefined && age > podPatienceMs * 3) return fail(context, live, refusal);
    if (refusal !== undefined) await write(context, live, {}, [running(reasons.buildRunning, refusal.message), readyStatement]);
  }
  return { requeueAfterMs: pauseAfter(age) };
}

/** By the API server. */
async function hasPod(
  { cluster, signal }: Context,
  { metadata: { namespace: ns, name } }: Stored<BuildWorkload>,
  job: Stored<Job>,
): Promise<boolean> {
  const { items } = await cluster.list(podType, { ns, labelSelector: `${labels.buildWorkloadName}=${name}`, signal });
  return items.some((pod) => !isOfEarlier(pod, job));
}

async function succeed(context: Context, live: Stored<BuildWorkload>, pod: Stored<Pod>, report: ExportReport): Promise<Result | undefined> {
  if (report.facts !== undefined) return keepDroplet(context, live, report.digest, report.facts);
  const waitedMs = context.now() - endOf(pod);
  const read = await readFacts(context, live, report.digest, waitedMs);
  switch (read.state) {
    case 'asked':
      return { requeueAfterMs: lookAgainMs };
    case 'read':
      return keepDroplet(context, live, report.digest, read.facts);
    case 'failed':
      return fail(context, live, read);
    case 'unanswered':
      await write(context, live, {}, [running(reasons.buildRunning, read.message), readyStatement]);
      return { requeueAfterMs: pauseAfter(waitedMs) };
  }
}

/** Milliseconds by the API server's clock at which the last container ended. */
function endOf({ metadata, status }: Stored<Pod>): number {
  const ends = (status?.containerStatuses ?? []).map(({ state }) => Date.parse(state?.terminated?.finishedAt ?? ''));
  return Math.max(Date.parse(metadata.creationTimestamp ?? ''), ...ends.filter((end) => !Number.isNaN(end)));
}

/** A container ended after somebody had deleted the pod, for example to empty its node: how it ended is no cause. What counts is that the pod will be gone. */
function endsByDeletion({ metadata, status }: Stored<Pod>): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return false;
  const deletedAt = Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1_000;
  return status?.containerStatuses?.some(({ state }) => Date.parse(state?.terminated?.finishedAt ?? '') >= deletedAt) === true;
}

async function keepDroplet(
  context: Context,
  live: Stored<BuildWorkload>,
  digest: string,
  facts: DropletFacts,
): Promise<Result | undefined> {
  const info = context.info();
  const { namespace: space } = live.metadata;
  const builder = context.stores.of(kinds.builderInfo).get(info.root, info.builder.name)?.status;
  const architecture = builder?.builder?.architecture;
  const stack = builder?.stacks[0]?.name;
  const droplet: Droplet = {
    registry: {
      image: `${pullRepository(info.registry, space, appGuidOf(context, live), 'droplets')}@${digest}`,
      imagePullSecrets: [{ name: places.pullSecret }],
    },
    processTypes: facts.processTypes,
    buildpacks: facts.buildpacks,
    // A builder has one stack, so it is known even when the push named none.
    ...defined({ architecture, stack }),
  };
  const statement: Statement = { type: conditionTypes.succeeded, status: 'True', reason: reasons.buildSucceeded, message: '' };
  const written = await write(context, live, { droplet }, [statement, readyStatement]);
  return tidyUp(context, written);
}

/** Ends a build none of whose containers has failed: what they printed does not say why. */
async function fail(context: Context, live: Stored<BuildWorkload>, failed: FailedBuild): Promise<Result | undefined> {
  return end(context, live, withCause(failed), failed.message);
}

/** Ends a build that failed while it ran; its last lines are kept before anything of it is removed. @param pod undefined when it is gone */
async function failRun(
  context: Context,
  live: Stored<BuildWorkload>,
  pod: Stored<Pod> | undefined,
  failed: FailedBuild,
): Promise<Result | undefined> {
  return end(context, live, await withLastLines(context, pod, failed), failed.message);
}

async function end(context: Context, live: Stored<BuildWorkload>, failure: BuildFailure, message: string): Promise<Result | undefined> {
  const statement: Statement = { type: conditionTypes.succeeded, status: 'False', reason: failure.reason, message };
  const written = await write(context, live, { failure }, [statement, readyStatement]);
  return tidyUp(context, written);
}

/** Cleans up after a build that has ended. Containers that still wait for a dead one are ended, and their logs stay; then the credential is deleted. */
async function tidyUp(context: Context, live: Stored<BuildWorkload>): Promise<Result | undefined> {
  const { namespace, name } = live.metadata;
  const pod = podOf(context, live);
  const isOver = pod === undefined || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
  if (!isOver && isPlaced(pod)) return endContainers(context, live, pod);
  if (pod === undefined || !isPlaced(pod)) await removeJob(context, live);
  // The end of its pod is another event.
  if (!isOver) return undefined;
  const secret = await context.cluster.get(secretType, namespace, registrySecretName(name), context.signal);
  if (secret !== undefined)
    await context.cluster.delete(secretType, namespace, secret.metadata.name, { uid: secret.metadata.uid, signal: context.signal });
  return undefined;
}

/** A node has the pod. Only a kubelet ends a pod by its deadline, so one that no node has would wait for ever, count in the quota, and run later. */
const isPlaced = ({ spec, status }: Stored<Pod>): boolean => spec?.nodeName !== undefined || status?.containerStatuses !== undefined;

/** Deletes a Job that has not made its pod, or whose pod has no node: it could still run later, although the build has failed. */
async function removeJob(context: Context, live: Stored<BuildWorkload>): Promise<void> {
  const job = context.stores.of(jobType).get(live.metadata.namespace, live.metadata.name);
  const isOver = job?.status?.conditions?.some(({ type, status }) => (type === 'Failed' || type === 'Complete') && status === 'True');
  if (job === undefined || isOver === true) return;
  const { namespace, name, uid } = job.metadata;
  await context.cluster.delete(jobType, namespace, name, { uid, propagation: 'Background', signal: context.signal });
}

/** Ends the pod when its containers do not end by themselves, as one does not that waits for a container that was killed. */
async function endContainers(context: Context, live: Stored<BuildWorkload>, pod: Stored<Pod>): Promise<Result | undefined> {
  const { namespace, name, uid } = pod.metadata;
  const wait = await untilPodAbandoned(context, pod);
  if (wait === 0) await abandonPod(context, pod);
  if (wait !== undefined) return wait === 0 ? undefined : { requeueAfterMs: wait };
  const stillRuns = pod.status?.containerStatuses?.some((status) => status.state?.terminated === undefined) ?? true;
  if (!stillRuns || pod.spec?.activeDeadlineSeconds === endAtOnce) return undefined;
  const since = Date.parse(findCondition(live, conditionTypes.succeeded)?.lastTransitionTime ?? '');
  if (context.now() - since < lookAgainMs) return { requeueAfterMs: lookAgainMs };
  // A pod's deadline can be shortened while it runs, and unlike a deleted pod it keeps its logs.
  await context.cluster.mergePatch(
    podType,
    namespace,
    name,
    { metadata: { uid }, spec: { activeDeadlineSeconds: endAtOnce } },
    { signal: context.signal },
  );
  return undefined;
}

async function write(
  context: Context,
  live: Stored<BuildWorkload>,
  status: Partial<BuildWorkloadStatus>,
  statements: Statement[],
): Promise<Stored<BuildWorkload>> {
  const conditions = conditionsWith(live, ...statements);
  return writeStatus(context, kinds.buildWorkload, live, { ...live.status, ...status, conditions });
}
