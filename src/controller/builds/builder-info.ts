// Reconciles BuilderInfo and RunnerInfo: what this installation's builder offers, read once from its image by a short-lived pod, and what the
// runner supports.

import type { Stored } from '../../lib/api/object.ts';
import { configMapType } from '../../lib/api/core.ts';
import { podType } from '../../lib/api/pod-kind.ts';
import type { ConfigMap } from '../../lib/api/core.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import { conditionTypes, kinds, places, reasons } from '../../lib/api/group.ts';
import type { KfInfo } from '../../lib/api/kf-info.ts';
import type { BuilderInfo, BuilderInfoStatus, RunnerInfo } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { builderImageAnnotation, builderPod, builderPodName } from '../../templates/builder-pod.ts';
import { watch } from '../runtime/reconciler.ts';
import type { Context, Reconciler } from '../runtime/reconciler.ts';
import type { Result } from '../runtime/result.ts';
import { conditionsWith, readyStatement, writeStatus } from '../runtime/status.ts';
import { readBuilderReport } from './builder-report.ts';
import type { BuilderReport } from './builder-report.ts';
import { lastLine } from './outcome.ts';
import { defined } from '../../lib/defined.ts';

const pollMs = 400;
const slowPollMs = 5_000;

export const builderInfoReconciler: Reconciler = {
  name: 'builder-info',
  workers: 1,
  watches: [
    watch<ConfigMap>(configMapType, (map) => (map.metadata.name === places.info ? ['/info'] : [])),
    watch<BuilderInfo>(kinds.builderInfo, () => ['/info']),
    watch<RunnerInfo>(kinds.runnerInfo, ({ metadata }) => (metadata.name === places.runner ? ['/info'] : [])),
  ],
  reconcile: async (_key, context) => {
    const info = context.info();
    await ensureRunnerInfo(context, info);
    return ensureBuilderInfo(context, info);
  },
};

async function ensureRunnerInfo(context: Context, info: KfInfo): Promise<void> {
  const metadata = { name: places.runner, namespace: info.root };
  const wanted: RunnerInfo = {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'RunnerInfo',
    metadata,
    spec: { runnerName: places.runner },
  };
  const live =
    context.stores.of(kinds.runnerInfo).get(info.root, places.runner) ??
    (await created(() => context.cluster.create(kinds.runnerInfo, wanted, { signal: context.signal })));
  if (live === undefined) return;
  const conditions = conditionsWith(live, readyStatement);
  await writeStatus(context, kinds.runnerInfo, live, { ...live.status, capabilities: { rollingDeploy: true }, conditions });
}

/** Undefined when the object existed already; the cache will report it. */
async function created<T>(create: () => Promise<T>): Promise<T | undefined> {
  try {
    return await create();
  } catch (error) {
    if (isAlreadyExists(error)) return undefined;
    throw error;
  }
}

/** True when the status is about the builder that kf-info names. */
export function isCurrent(live: Stored<BuilderInfo> | undefined, info: KfInfo): boolean {
  const builder = live?.status?.builder;
  return builder?.image === info.builder.image && (builder.runImage ?? '') === (info.builder.runImage ?? '');
}

async function ensureBuilderInfo(context: Context, info: KfInfo): Promise<Result | undefined> {
  const { name } = info.builder;
  const metadata = { name, namespace: info.root };
  const wanted: BuilderInfo = { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'BuilderInfo', metadata, spec: {} };
  const cached = context.stores.of(kinds.builderInfo).get(info.root, name);
  const live = cached ?? (await created(() => context.cluster.create(kinds.builderInfo, wanted, { signal: context.signal })));
  if (live === undefined) return { requeueAfterMs: pollMs };
  if (!isCurrent(live, info)) return inspectBuilder(context, live, info);
  // Another builder may have been asked for meanwhile, and could not be read.
  if (live.status !== undefined)
    await writeStatus(context, kinds.builderInfo, live, { ...live.status, conditions: conditionsWith(live, readyStatement) });
  return removeLeft(context, info);
}

/** Removes the pod of a controller that was killed, or refused, when it had written what the pod said. */
async function removeLeft(context: Context, { controller }: KfInfo): Promise<undefined> {
  const pod = await context.cluster.get(podType, controller.namespace, builderPodName, context.signal);
  if (pod !== undefined) await removePod(context, pod);
}

async function inspectBuilder(context: Context, live: Stored<BuilderInfo>, info: KfInfo): Promise<Result | undefined> {
  const ns = info.controller.namespace;
  const pod = await context.cluster.get(podType, ns, builderPodName, context.signal);
  if (pod === undefined) {
    await created(() => context.cluster.create(podType, builderPod(ns, info.builder.image), { signal: context.signal }));
    return { requeueAfterMs: pollMs };
  }
  if (pod.metadata.annotations?.[builderImageAnnotation] !== info.builder.image) {
    await removePod(context, pod);
    return { requeueAfterMs: pollMs };
  }
  const status = pod.status?.containerStatuses?.[0];
  const ended = status?.state?.terminated;
  if (ended === undefined && pod.status?.phase !== 'Failed') return awaitPod(context, live, pod);
  // The pod ended before its container ran: the node was full or went down.
  if (ended === undefined) return lookAgain(context, live, pod, pod.status?.message ?? pod.status?.reason ?? 'its pod failed');
  const { exitCode, message = '' } = ended;
  if (exitCode !== 0) return lookAgain(context, live, pod, message);
  await writeFacts(context, live, info, readBuilderReport(message), status?.imageID ?? '');
  await removePod(context, pod);
  return undefined;
}

async function lookAgain(context: Context, live: Stored<BuilderInfo>, pod: Stored<Pod>, why: string): Promise<Result> {
  await writeFailure(context, live, `The builder image could not be read: ${lastLine(why)}`);
  await removePod(context, pod);
  return { requeueAfterMs: slowPollMs };
}

async function awaitPod(context: Context, live: Stored<BuilderInfo>, pod: Stored<Pod>): Promise<Result> {
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting;
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  if (waiting !== undefined && /Image|Pull/.test(waiting.reason ?? ''))
    await writeFailure(
      context,
      live,
      `The builder image '${pod.spec?.containers[0]?.image ?? ''}' cannot be pulled: ${waiting.message ?? waiting.reason ?? ''}`,
    );
  else if (scheduled?.status === 'False')
    await writeFailure(context, live, `The builder image cannot be looked at: ${scheduled.message ?? 'no node can run its pod'}`);
  else return { requeueAfterMs: pollMs };
  return { requeueAfterMs: slowPollMs };
}

async function removePod(context: Context, pod: Stored<Pod>): Promise<void> {
  const { namespace, name, uid } = pod.metadata;
  await context.cluster.delete(podType, namespace, name, { uid, gracePeriodSeconds: 0, signal: context.signal });
}

async function writeFailure(context: Context, live: Stored<BuilderInfo>, message: string): Promise<void> {
  const conditions = conditionsWith(live, { type: conditionTypes.ready, status: 'False', reason: reasons.builderNotFound, message });
  await writeStatus(context, kinds.builderInfo, live, { stacks: [], buildpacks: [], ...live.status, conditions });
}

async function writeFacts(
  context: Context,
  live: Stored<BuilderInfo>,
  info: KfInfo,
  report: BuilderReport,
  imageId: string,
): Promise<void> {
  const time = `${new Date(context.now()).toISOString().slice(0, 19)}Z`;
  const stamps = { creationTimestamp: time, updatedTimestamp: time };
  const { image, runImage } = info.builder;
  const status: BuilderInfoStatus = {
    conditions: conditionsWith(live, readyStatement),
    stacks: [{ name: report.stack, description: report.description, ...stamps }],
    buildpacks: report.buildpacks.map(({ id, version }) => ({ name: id, version, stack: report.stack, ...stamps })),
    builder: {
      image,
      digest: /sha256:[0-9a-f]{64}/.exec(imageId)?.[0] ?? imageId,
      ...defined({ runImage }),
      uid: report.uid,
      gid: report.gid,
      architecture: report.architecture,
    },
  };
  await writeStatus(context, kinds.builderInfo, live, status);
}
