// How the runner of tasks judges a pod that does not start, and a Job or a TaskWorkload that its caches do not have.

import { beforeEach, describe, expect, test } from 'vitest';
import { taskReconciler } from '../../../src/controller/tasks/task.ts';
import { taskWorkloadReconciler } from '../../../src/controller/tasks/workload.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import type { Result } from '../../../src/controller/runtime/result.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { jobType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { Condition, KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 's-1';
const seconds = 1_000;
const start = Date.parse('2030-01-01T00:00:00Z');

let cluster: MemoryCluster;
let memory: Memory;
let now: number;
/** Since when every change of a pod has been seen. */
let steadySince: number;
/** Kinds of which the caches have nothing: their watch is interrupted. */
let unseen: ResourceType[];

beforeEach(async () => {
  cluster = new MemoryCluster();
  memory = new Memory();
  now = start;
  steadySince = 0;
  unseen = [];
  const spec = { command: ['rake'], image: 'shop:1' };
  const metadata = { name: 't-1', namespace: ns, labels: { [labels.taskGuid]: 't-1' } };
  await cluster.create(kinds.taskWorkload, { metadata, spec });
  // Makes the Job, and lets it run.
  for (let looks = 0; looks < 2; looks += 1) await reconcile();
});

const failed = (): Condition | undefined => findCondition(cluster.peek(kinds.taskWorkload, ns, 't-1') ?? { metadata: {} }, 'Failed');

/** Reconciles the task with stores that have what the cluster has. */
async function reconcile(reconciler = taskWorkloadReconciler): Promise<Result | undefined> {
  const stores = new Map<string, Store<KubeObject>>();
  const of = (type: ResourceType): Store<KubeObject> => {
    const known = stores.get(type.kind);
    if (known !== undefined) return known;
    const store = new Store<KubeObject>();
    for (const index of reconciler.indexes ?? []) if (index.type.kind === type.kind) store.addIndex(index.name, index.of);
    if (!unseen.includes(type)) for (const object of cluster.all(type)) store.put(object);
    store.steadySince = steadySince;
    stores.set(type.kind, store);
    return store;
  };
  const context = {
    cluster,
    memory,
    stores: { of: of as Stores['of'], has: () => true },
    event: () => undefined,
    now: () => now,
  } as unknown as Context;
  return reconciler.reconcile(`${ns}/t-1`, context);
}

/** Reconciles the task after its pod, which was made at the start, came to wait for that. */
async function waitFor(reason: string, message: string): Promise<Result | undefined> {
  const status = {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'True' }],
    containerStatuses: [{ name: 'workload', image: 'shop:1', restartCount: 0, ready: false, state: { waiting: { reason, message } } }],
  };
  if (cluster.peek(podType, ns, 't-1-x') === undefined) {
    const metadata = { name: 't-1-x', namespace: ns, labels: { [labels.taskGuid]: 't-1' } };
    await cluster.create(podType, { metadata, spec: { containers: [] } });
    await cluster.mergePatch(podType, ns, 't-1-x', { metadata: { creationTimestamp: '2030-01-01T00:00:00Z' } });
  }
  await cluster.mergePatch(podType, ns, 't-1-x', { status }, { subresource: 'status' });
  return reconcile();
}

describe('a task whose pod waited for a node for a minute', () => {
  beforeEach(() => void (now += 60 * seconds));

  test.each([
    ['a Secret that its kubelet cannot read', 'CreateContainerConfigError', 'failed to sync secret cache: timed out', 45],
    ['its image', 'ErrImagePull', 'connection reset', 8],
  ])('gets the whole time for %s, and fails after it', async (_, reason, message, patience) => {
    expect(await waitFor(reason, message)).toEqual({ requeueAfterMs: patience * seconds });
    now += (patience - 1) * seconds;
    expect(await waitFor(reason, message)).toEqual({ requeueAfterMs: seconds });
    expect([failed(), cluster.peek(jobType, ns, 't-1') === undefined]).toEqual([undefined, false]);
    now += seconds;
    await waitFor(reason, message);
    expect(failed()).toMatchObject({ status: 'True' });
    expect(cluster.peek(jobType, ns, 't-1')).toBeUndefined();
  });

  test('fails at once for an image that does not exist', async () => {
    await waitFor('ErrImagePull', 'shop:1: not found');
    expect(failed()).toMatchObject({ status: 'True', reason: 'ImagePull' });
  });
});

test('a task does not fail for the time that passed until kubelets have reported what happened while the API server was away', async () => {
  await waitFor('ErrImagePull', 'connection reset');
  now += 9 * seconds;
  steadySince = now - 2 * seconds;
  expect(await waitFor('ErrImagePull', 'connection reset')).toEqual({ requeueAfterMs: 10 * seconds });
  expect(failed()).toBeUndefined();
  now += 10 * seconds;
  await waitFor('ErrImagePull', 'connection reset');
  expect(failed()).toMatchObject({ status: 'True', reason: 'ImagePull' });
});

describe('a leader whose watch is interrupted', () => {
  const job = () => cluster.peek(jobType, ns, 't-1');
  const conditionOf = (type: string) => findCondition(cluster.peek(kinds.task, ns, 't-1') ?? { metadata: {} }, type);

  test('lets the Job run that the leader before made, and says that it was deleted only when it was', async () => {
    await cluster.mergePatch(jobType, ns, 't-1', { spec: { suspend: true } });
    unseen = [jobType];
    await reconcile();
    expect([job()?.spec?.suspend, failed()]).toEqual([false, undefined]);
    await cluster.delete(jobType, ns, 't-1');
    await reconcile();
    expect([job(), failed()?.reason]).toEqual([undefined, 'JobDeleted']);
  });

  describe('of TaskWorkloads', () => {
    beforeEach(async () => {
      unseen = [kinds.taskWorkload];
      await cluster.create(kinds.task, { metadata: { name: 't-1', namespace: ns }, spec: { appRef: { name: 'a-1' }, command: 'rake' } });
      const conditions = [
        { type: 'Started', status: 'True', reason: 'JobStarted', message: '', lastTransitionTime: '2030-01-01T00:00:00Z' },
      ];
      const status = { sequenceId: 1, dropletRef: { name: 'b-1' }, conditions };
      await cluster.mergePatch(kinds.task, ns, 't-1', { status }, { subresource: 'status' });
    });

    test('follows the run that the leader before made, and says that it was deleted only when it was', async () => {
      await reconcile(taskReconciler);
      expect([conditionOf('Started')?.status, conditionOf('Failed')]).toEqual(['True', undefined]);
      await cluster.delete(kinds.taskWorkload, ns, 't-1');
      await reconcile(taskReconciler);
      expect(conditionOf('Failed')).toMatchObject({ status: 'True', reason: 'TaskWorkloadDeleted' });
      expect(cluster.peek(kinds.taskWorkload, ns, 't-1')).toBeUndefined();
    });

    test('ends that run when its task is cancelled', async () => {
      await cluster.mergePatch(kinds.task, ns, 't-1', { spec: { canceled: true } });
      await reconcile(taskReconciler);
      expect(conditionOf('Failed')).toMatchObject({ status: 'True', reason: 'TaskCanceled' });
      expect(cluster.peek(kinds.taskWorkload, ns, 't-1')).toBeUndefined();
    });
  });
});
