// The runner `kf-runner`: makes one StatefulSet for each AppWorkload with its runner name. The set is written once; later only its number
// of instances changes.

import type { Stored } from '../../lib/api/object.ts';
import { statefulSetType, type StatefulSet } from '../../lib/api/core.ts';
import { kinds, labels, places } from '../../lib/api/group.ts';
import type { AppWorkload, CFApp, CFProcess, DeploymentStatus } from '../../lib/api/types.generated.ts';
import { buildStatefulSet, generationOf, statefulSetNameOf } from '../../templates/stateful-set.ts';
import type { Instance } from '../instances/instances.ts';
import { untilAbandoned } from '../instances/nodes.ts';
import {
  abandonInstances,
  instancesByProcess,
  instancesByWorkload,
  nodeIndexes,
  podInstances,
  watchInstances,
  watchNodesOfInstances,
} from '../instances/pod-instances.ts';
import { isOwnedBy } from '../runtime/owner.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { conditionsWith, readyStatement, writeMetadata, writeStatus } from '../runtime/status.ts';
import { wholeOf } from '../runtime/whole.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { appIndexes, processKeys, wantedInstances, workloadsByProcess } from '../relations.ts';
import { expectationsOf } from './assessment.ts';
import { setRefusalOf, setRefusedBy } from './refusal.ts';
import { instancesStatus, summaryOf } from './status.ts';

const shortestPauseMs = 250;

const workloadKeys = (processKey: string, stores: Context['stores']): string[] =>
  stores.of(kinds.appWorkload).by(workloadsByProcess.name, processKey).map(keyOf);

export const appWorkloadReconciler: Reconciler = {
  name: 'app-workload',
  workers: 8,
  watches: [
    watch(kinds.appWorkload),
    watch<StatefulSet>(statefulSetType, (set) => owned(set)),
    watchInstances((instance) => owned(instance)),
    watchNodesOfInstances(owned),
    watch<CFProcess>(kinds.process, (process, stores) => workloadKeys(keyOf(process), stores)),
    watch<CFApp>(kinds.app, (app, stores) => processKeys(keyOf(app), stores).flatMap((key) => workloadKeys(key, stores))),
  ],
  indexes: [...appIndexes, instancesByProcess, instancesByWorkload, ...nodeIndexes],
  reconcile: async (key, context) => {
    const { ns, name } = splitKey(key);
    const found = context.stores.of(kinds.appWorkload).get(ns, name);
    if (found === undefined) return abandonInstances(context, key);
    if (found.spec.runnerName !== places.runner) return undefined;
    const workload = await writeMetadata(context, kinds.appWorkload, found, {});
    if (workload.metadata.deletionTimestamp !== undefined) return abandonInstances(context, key);
    const refused = await trySet(context, workload);
    const overdueMs = await releaseOverdue(context, workload);
    // Meanwhile the process may have changed the number of instances; with the version of before, the status would be refused.
    const latest = workload === found ? context.stores.of(kinds.appWorkload).get(ns, name) : undefined;
    await report(context, latest ?? workload, refused?.statement);
    const waits = [overdueMs, refused?.afterMs].filter((wait) => wait !== undefined);
    return waits.length === 0 ? undefined : { requeueAfterMs: Math.min(...waits) };
  },
};

function owned(object: { metadata: { namespace?: string; labels?: Record<string, string> } }): string[] {
  const name = object.metadata.labels?.[labels.appWorkloadGuid];
  return name === undefined ? [] : [`${object.metadata.namespace ?? ''}/${name}`];
}

/** A set that a quota or a policy refuses is a reason for the version to fail, not an error of the controller. */
async function trySet(context: Context, workload: Stored<AppWorkload>): Promise<ReturnType<typeof setRefusedBy>> {
  try {
    await ensureSet(context, workload);
    return undefined;
  } catch (error) {
    const refused = setRefusedBy(error, workload, context.now());
    if (refused === undefined) throw error;
    if (setRefusalOf(workload, context.now()) === undefined)
      context.log.warn('set refused', { workload: workload.metadata.name, error: refused.statement.message });
    return refused;
  }
}

/**
 * Makes the set, or gives it the number of instances. A set of an AppWorkload that was deleted and made again under the same name goes first: the
 * garbage collector does not remove it when it missed the deletion, as it does while the API server is restarted.
 */
async function ensureSet(context: Context, workload: Stored<AppWorkload>): Promise<void> {
  const ns = workload.metadata.namespace;
  const name = statefulSetNameOf(workload);
  const live = context.stores.of(statefulSetType).get(ns, name);
  if (live === undefined) {
    const whole = await wholeOf(context, kinds.appWorkload, workload);
    await context.cluster.create(statefulSetType, buildStatefulSet(whole), { signal: context.signal });
    return;
  }
  // A set that is being deleted is created again when it is gone, so its number is not worth a write.
  if (live.metadata.deletionTimestamp !== undefined) return;
  if (!isOwnedBy(live, workload)) {
    const { uid } = live.metadata;
    context.log.warn('set of an earlier workload of the same name deleted', { set: name });
    await context.cluster.delete(statefulSetType, ns, name, { uid, propagation: 'Foreground', signal: context.signal });
    return;
  }
  if (live.spec?.replicas === workload.spec.instances) return;
  if (!isDecided(context, workload, live.spec?.replicas ?? 0)) return;
  const patch = { metadata: { resourceVersion: live.metadata.resourceVersion }, spec: { replicas: workload.spec.instances } };
  await context.cluster.mergePatch(statefulSetType, ns, name, patch, { signal: context.signal });
}

/**
 * Whether the number in the AppWorkload is what the user wants now. While the controller is away, people scale the set directly and write
 * the same number to process and app. The set must not go back to an old number before the controller has observed those, and has taken up a stop
 * or a start.
 * @param running the number of the set
 */
function isDecided(context: Context, workload: Stored<AppWorkload>, running: number): boolean {
  const { namespace } = workload.metadata;
  const process = context.stores.of(kinds.process).get(namespace, workload.spec.GUID);
  const app = context.stores.of(kinds.app).get(namespace, workload.spec.appGUID);
  const isSeen = (object: Stored<CFProcess> | Stored<CFApp> | undefined): boolean =>
    object === undefined || object.status?.observedGeneration === object.metadata.generation;
  if (!isSeen(process) || !isSeen(app)) return false;
  if (process === undefined || app === undefined) return true;
  const isUp = workload.spec.instances > running;
  return wantedInstances(app, process) === 0 ? !isUp : isUp || !isStopped(process.status?.rollout);
}

/** What the rollout said before a start was taken up. */
const isStopped = (rollout: DeploymentStatus | undefined): boolean => rollout?.phase === 'Stopped' || rollout?.reason === 'Stopping';

/** Deletes ending instances whose node is silent, so that others can take their place. Returns when to look again. */
async function releaseOverdue(context: Context, workload: Stored<AppWorkload>): Promise<number | undefined> {
  const waits: number[] = [];
  for (const instance of instancesOf(context, workload)) {
    const wait = await untilAbandoned(context, instance);
    if (wait === undefined) continue;
    waits.push(wait);
    if (wait > 0) continue;
    context.log.warn('instance on a silent node deleted', { pod: instance.pod, node: instance.node });
    await podInstances(context).abandon(workload.metadata.namespace, instance);
  }
  return waits.length === 0 ? undefined : Math.max(shortestPauseMs, Math.min(...waits));
}

/** Instances of this generation. */
function instancesOf(context: Context, workload: Stored<AppWorkload>): Instance[] {
  const generation = generationOf(workload);
  const expectations = expectationsOf(workload);
  return podInstances(context)
    .of(workload.metadata.namespace, workload.spec.GUID, () => expectations)
    .filter((instance) => instance.generation === generation);
}

async function report(context: Context, workload: Stored<AppWorkload>, statement = readyStatement): Promise<void> {
  const generation = generationOf(workload);
  const instances = instancesOf(context, workload);
  await writeStatus(context, kinds.appWorkload, workload, {
    ...workload.status,
    actualInstances: instances.filter(({ ready }) => ready).length,
    instancesStatus: summaryOf(instancesStatus(instances, generation)).instancesStatus,
    conditions: conditionsWith(workload, statement),
  });
}
