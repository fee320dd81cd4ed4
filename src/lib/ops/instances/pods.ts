// Compares the instances in the controller's status with the existing pods, so that the result is right even while no controller runs.

import type { IndexedInstance } from '../../api/app.ts';
import { runningSince, startingSince } from '../../api/instance-since.ts';
import { podType, statusOf, type Pod } from '../../api/pod-kind.ts';
import { labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { ContainerStatus } from '../../api/pod.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ContainerPlace } from '../../kube/last-run.ts';
import type { SpaceSession } from '../../session/session.ts';

const options = ({ space, signal }: SpaceSession, app: Stored<CFApp>) => ({
  ns: space.guid,
  labelSelector: `${labels.appGuid}=${app.metadata.name}`,
  signal,
});

/** All pods of an app; undefined when the user may not read them. */
export async function readPods(session: SpaceSession, app: Stored<CFApp>): Promise<Stored<Pod>[] | undefined> {
  try {
    return (await session.cluster.list(podType, options(session, app))).items;
  } catch (error) {
    if (error instanceof KfError && error.code === 'forbidden') return undefined;
    throw error;
  }
}

/** What the cluster says of a container; undefined when its pod is gone. */
export async function readContainer(
  cluster: Cluster,
  { ns, pod: name, container }: ContainerPlace,
  signal: AbortSignal,
): Promise<ContainerStatus | undefined> {
  const pod = await cluster.get(podType, ns, name, signal);
  return pod === undefined ? undefined : statusOf(pod, container);
}

/** Pods of the space are ending: for a quota they still count. */
export async function areEnding({ cluster, space, signal }: SpaceSession): Promise<boolean> {
  const { items } = await cluster.list(podType, { ns: space.guid, signal });
  return items.some(({ metadata }) => metadata.deletionTimestamp !== undefined);
}

/**
 * Deletes one instance of a process; its StatefulSet creates it again. During a rollout two versions can have an instance of that index: the one in the
 * status counts, as `kf app` shows it.
 * @returns false when no such instance exists
 */
export async function deleteInstance(
  session: SpaceSession,
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  index: number,
): Promise<boolean> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(podType, options(session, app));
  const isOfIndex = ({ metadata }: Stored<Pod>): boolean =>
    metadata.labels?.[labels.guid] === process.metadata.name && metadata.labels[labels.podIndex] === String(index);
  const told = process.status?.instancesStatus?.[String(index)]?.pod;
  const [pod] = items
    .filter((candidate) => isOfIndex(candidate) && candidate.metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => Number(b.metadata.name === told) - Number(a.metadata.name === told));
  if (pod === undefined) return false;
  const { name, uid } = pod.metadata;
  return cluster.delete(podType, space.guid, name, { uid, signal });
}

/** The pod serves. */
export const isReady = (pod: Stored<Pod>): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

function instanceOf(pod: Stored<Pod>): IndexedInstance {
  const ready = isReady(pod);
  const container = pod.status?.containerStatuses?.find(({ name }) => name === 'application');
  const since = (ready ? runningSince(pod) : startingSince(pod, container)) ?? pod.metadata.creationTimestamp;
  return {
    index: Number(pod.metadata.labels?.[labels.podIndex] ?? '0'),
    state: ready ? 'RUNNING' : 'STARTING',
    ready,
    pod: pod.metadata.name,
    ...defined({ timestamp: since }),
  };
}

/** An instance in the status may be of an earlier pod of that name, or its pod has changed since, while no controller looked at it. */
function isOutdated(told: IndexedInstance, pod: Stored<Pod>): boolean {
  const isLater = (time: string | undefined): boolean => Date.parse(time ?? '') > Date.parse(told.timestamp ?? '');
  if (isLater(pod.metadata.creationTimestamp)) return true;
  // Why an instance does not serve, for example because its node is lost, is known to the controller only.
  return (told.cause === undefined || isReady(pod)) && isLater(instanceOf(pod).timestamp);
}

/**
 * Instances without a pod are down, or left out when they are not wanted; pods that are not in the status yet are added, and so is what has happened
 * to a pod since the status was written.
 * @param instances by index, as {@link instancesOf} returns them
 * @param wanted number of instances that should exist
 */
export function withPods(
  instances: readonly IndexedInstance[],
  process: Stored<CFProcess>,
  pods: readonly Stored<Pod>[],
  wanted: number,
): IndexedInstance[] {
  const live = pods.filter(
    ({ metadata }) => metadata.labels?.[labels.guid] === process.metadata.name && metadata.deletionTimestamp === undefined,
  );
  const byName = new Map(live.map((pod) => [pod.metadata.name, pod]));
  const told = instances.flatMap((instance): IndexedInstance[] => {
    const pod = byName.get(instance.pod ?? '');
    if (pod === undefined) return [];
    return [isOutdated(instance, pod) ? { ...instanceOf(pod), index: instance.index } : instance];
  });
  const untold = live
    .map(instanceOf)
    .filter(
      ({ index }, position, all) => !told.some((one) => one.index === index) && all.findIndex((one) => one.index === index) === position,
    );
  const there = new Set([...told, ...untold].map(({ index }) => index));
  const absent = instances
    .filter(({ index, pod }) => !there.has(index) && (index < wanted || pod === undefined))
    .map((instance): IndexedInstance => (instance.pod === undefined ? instance : { index: instance.index, state: 'DOWN' }));
  return [...told, ...untold, ...absent].toSorted((a, b) => a.index - b.index);
}

const bornAt = ({ metadata }: Stored<Pod>): string => metadata.creationTimestamp ?? '';

/** The living pods of a process, by version, the oldest first. While nothing is replaced there is at most one version. */
export function podsByVersion(process: Stored<CFProcess>, pods: readonly Stored<Pod>[]): Stored<Pod>[][] {
  const live = pods.filter(
    ({ metadata }) => metadata.labels?.[labels.guid] === process.metadata.name && metadata.deletionTimestamp === undefined,
  );
  const byBirth = live.toSorted((a, b) => bornAt(a).localeCompare(bornAt(b)));
  return [...Map.groupBy(byBirth, ({ metadata }) => metadata.labels?.[labels.generation] ?? '').values()];
}
