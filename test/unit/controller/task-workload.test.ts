// How the runner of tasks judges a pod that does not start, and a Job or a TaskWorkload that its caches do not have.

import { beforeEach, describe, expect, test } from 'vitest';
import { taskReconciler } from '../../../src/controller/tasks/task.ts';
import { taskWorkloadReconciler } from '../../../src/controller/tasks/workload.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import type { Result } from '../../../src/controller/runtime/result.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { jobType, namespaceType, nodeType, type Node } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { Condition, KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { apiError, MemoryCluster } from '../../support/memory-cluster.ts';

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
/** What was logged. */
let logged: string[];
/** Objects as the caches have them, in place of what the cluster has by now. */
let old: Stored[];

beforeEach(async () => {
  cluster = new MemoryCluster();
  memory = new Memory();
  now = start;
  steadySince = 0;
  unseen = [];
  logged = [];
  old = [];
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
    for (const object of old.filter(({ kind }) => kind === type.kind)) {
      store.clear();
      store.put(object);
    }
    store.steadySince = steadySince;
    stores.set(type.kind, store);
    return store;
  };
  const context = {
    cluster,
    memory,
    stores: { of: of as Stores['of'], has: () => true },
    event: () => undefined,
    log: { warn: (text: string) => logged.push(text) },
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
    await cluster.create(podType, { metadata, spec: { containers: [], nodeName: 'n-1' } });
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

  test.each([
    ['an image that does not exist', 'ErrImagePull', 'shop:1: not found'],
    ['a cause that lasts for long', 'CreateContainerError', 'device busy'],
  ])('does not fail for what its pod said of %s before its node went silent', async (_, reason, message) => {
    const ready = (status: string) => ({ status: { conditions: [{ type: 'Ready', status, lastTransitionTime: '2030-01-01T00:00:50Z' }] } });
    await cluster.create(nodeType, { metadata: { name: 'n-1' }, ...ready('Unknown') } as Node);
    for (let looks = 0; looks < 2; looks += 1) {
      expect(await waitFor(reason, message)).toEqual({ requeueAfterMs: 2 * seconds });
      now += 60 * seconds;
    }
    expect([failed(), cluster.peek(jobType, ns, 't-1') === undefined]).toEqual([undefined, false]);
    await cluster.mergePatch(nodeType, undefined, 'n-1', ready('True'), { subresource: 'status' });
    await waitFor(reason, message);
    now += 60 * seconds;
    await waitFor(reason, message);
    expect(failed()).toMatchObject({ status: 'True' });
  });
});

test('a task takes an image that the node has', () => {
  expect(cluster.peek(jobType, ns, 't-1')?.spec?.template.spec?.containers[0]).toMatchObject({
    image: 'shop:1',
    imagePullPolicy: 'IfNotPresent',
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

test.each([
  ['10 s', 10, 3],
  ['5 minutes', 300, 30],
  ['an hour', 3_600, 60],
])('a task whose Job is refused for %s is tried again after a part of that time', async (_, age, pause) => {
  await cluster.delete(jobType, ns, 't-1');
  await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { metadata: { creationTimestamp: '2030-01-01T00:00:00Z' } });
  await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { status: { conditions: null } }, { subresource: 'status' });
  cluster.intercept = (verb) => {
    if (verb === 'create') throw apiError(403, 'Forbidden', 'jobs.batch "t-1" is forbidden: exceeded quota: q');
  };
  now += age * seconds;
  expect(await reconcile()).toEqual({ requeueAfterMs: pause * seconds });
});

describe('the pod of a deleted task on a silent node', () => {
  const pod = () => cluster.peek(podType, ns, 't-1-x');
  const gone = '2030-01-01T00:00:00Z';

  beforeEach(async () => {
    await cluster.delete(kinds.taskWorkload, ns, 't-1');
    const status = { conditions: [{ type: 'Ready', status: 'Unknown' as const, lastTransitionTime: gone }] };
    await cluster.create(nodeType, { metadata: { name: 'n-1' }, status });
    const metadata = { name: 't-1-x', namespace: ns, labels: { [labels.taskGuid]: 't-1' }, deletionTimestamp: gone };
    await cluster.create(podType, { metadata, spec: { containers: [], nodeName: 'n-1' } });
    now += 300 * seconds;
    // The right to delete pods is in a RoleBinding of the space.
    cluster.intercept = (verb) => {
      if (verb === 'delete') throw apiError(403, 'Forbidden', 'pods "t-1-x" is forbidden: cannot delete resource "pods"');
    };
  });

  test('is said to be removed only when it is', async () => {
    await expect(reconcile()).rejects.toThrow('cannot delete');
    expect(logged).toEqual([]);
    cluster.intercept = () => undefined;
    await reconcile();
    expect([pod(), logged]).toEqual([undefined, ['pod on a silent node deleted']]);
  });

  test('stays while its space is being deleted, without a request', async () => {
    await cluster.create(namespaceType, { metadata: { name: ns, deletionTimestamp: gone } });
    cluster.intercept = (verb) => expect.unreachable(verb);
    expect(await reconcile()).toEqual({ requeueAfterMs: 10 * seconds });
    expect([pod() === undefined, logged]).toEqual([false, []]);
  });
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

test('a run waits until the Job of an earlier run with its name is gone, and then makes its own', async () => {
  const job = () => cluster.peek(jobType, ns, 't-1');
  const ownerReferences = [{ apiVersion: 'v1', kind: 'TaskWorkload', name: 't-1', uid: 'earlier' }];
  await cluster.mergePatch(jobType, ns, 't-1', { metadata: { ownerReferences }, spec: { suspend: true } });
  await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { status: { conditions: null } }, { subresource: 'status' });
  const before = cluster.writes.length;
  for (let looks = 0; looks < 2; looks += 1) await reconcile();
  expect(cluster.writes.slice(before)).toEqual([]);
  await cluster.delete(jobType, ns, 't-1');
  for (let looks = 0; looks < 2; looks += 1) await reconcile();
  expect([job()?.metadata.ownerReferences?.[0]?.uid, job()?.spec?.suspend]).toEqual([
    cluster.peek(kinds.taskWorkload, ns, 't-1')?.metadata.uid,
    false,
  ]);
  expect(failed()).toBeUndefined();
});

describe('a leader whose caches lag behind does not run a task', () => {
  const uid = (): string => cluster.peek(kinds.task, ns, 't-1')?.metadata.uid ?? '';
  const job = () => cluster.peek(jobType, ns, 't-1');
  const jobsMade = (): number => cluster.writes.filter(({ verb, kind }) => verb === 'create' && kind === 'Job').length;
  const say = (type: string) => ({
    type,
    status: 'True' as const,
    reason: 'Said',
    message: '',
    lastTransitionTime: '2030-01-01T00:00:00Z',
  });

  /** What the cluster has of the object now stays in the caches. */
  function remember(type: ResourceType): void {
    const object = cluster.peek(type, ns, 't-1');
    if (object !== undefined) old.push({ ...object, kind: type.kind });
  }

  /** Writes the conditions of the task that the leader before saw, beside what the task has fixed when it began. */
  const write = (...types: string[]) =>
    cluster.mergePatch(
      kinds.task,
      ns,
      't-1',
      { status: { sequenceId: 1, dropletRef: { name: 'b-1' }, conditions: types.map(say) } },
      { subresource: 'status' },
    );

  beforeEach(async () => {
    const lifecycle = { type: 'docker' as const, data: { stack: '' } };
    const appRef = { name: 'a-1' };
    const app = await cluster.create(kinds.app, {
      metadata: { name: 'a-1', namespace: ns },
      spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle, currentDropletRef: { name: 'b-1' } },
    });
    await cluster.create(kinds.build, {
      metadata: { name: 'b-1', namespace: ns },
      spec: { appRef, packageRef: { name: 'p' }, lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1 },
    });
    const status = { state: 'STAGED', droplet: { registry: { image: 'shop:1' } } };
    await cluster.mergePatch(kinds.build, ns, 'b-1', { status }, { subresource: 'status' });
    const owner = { apiVersion: 'v1', kind: 'CFApp', name: 'a-1', uid: app.metadata.uid, controller: true };
    await cluster.create(kinds.task, {
      metadata: { name: 't-1', namespace: ns, ownerReferences: [owner] },
      spec: { appRef, command: 'rake' },
    });
    await write();
  });

  /** Reconciles task and run as the caches have them, and then as the cluster has them. */
  async function catchUp(): Promise<void> {
    const both = [taskReconciler, taskWorkloadReconciler];
    // A write that meets a newer version is refused, and the queue tries again.
    for (const reconciler of both) await reconcile(reconciler).catch(() => undefined);
    old = [];
    for (const reconciler of [...both, ...both]) await reconcile(reconciler);
  }

  test('a second time when its run was deleted after the start', async () => {
    remember(kinds.task);
    await write('Started');
    await cluster.delete(kinds.taskWorkload, ns, 't-1');
    await cluster.delete(jobType, ns, 't-1');
    await catchUp();
    expect([job()?.spec?.suspend, jobsMade()]).toEqual([undefined, 1]);
    expect(findCondition(cluster.peek(kinds.task, ns, 't-1') ?? { metadata: {} }, 'Failed')?.reason).toBe('TaskWorkloadDeleted');
  });

  test('a second time when its Job was deleted after the start', async () => {
    await write('Started');
    await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { status: { conditions: [] } }, { subresource: 'status' });
    remember(kinds.taskWorkload);
    await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { status: { conditions: [say('Started')] } }, { subresource: 'status' });
    await cluster.delete(jobType, ns, 't-1');
    await catchUp();
    expect([job()?.spec?.suspend, jobsMade()]).toEqual([undefined, 1]);
    expect(failed()?.reason).toBe('JobDeleted');
  });

  describe('whose Job waits for its release', () => {
    beforeEach(async () => {
      const ownerReferences = [{ apiVersion: 'v1', kind: 'CFTask', name: 't-1', uid: uid() }];
      await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { metadata: { ownerReferences } });
      await cluster.mergePatch(jobType, ns, 't-1', { spec: { suspend: true } });
      await write('Started');
      remember(kinds.task);
      remember(kinds.taskWorkload);
      // The garbage collector has not come to the run of a deleted task yet.
      await cluster.mergePatch(kinds.taskWorkload, ns, 't-1', { metadata: { ownerReferences: null } });
    });
    const end = { finalizers: ['x'], deletionTimestamp: '2030-01-01T00:00:00Z' };
    const again = () => cluster.create(kinds.task, { metadata: { name: 't-1', namespace: ns }, spec: { appRef: { name: 'a-1' } } });

    test.each([
      ['has ended', () => write('Started', 'Failed')],
      ['is cancelled', () => cluster.mergePatch(kinds.task, ns, 't-1', { spec: { canceled: true } })],
      ['is being deleted', () => cluster.mergePatch(kinds.task, ns, 't-1', { metadata: end })],
      ['is gone', () => cluster.delete(kinds.task, ns, 't-1')],
      ['is another one', () => cluster.delete(kinds.task, ns, 't-1').then(again).then(() => write('Started'))], // prettier-ignore
    ])('and that %s by now', async (_, change) => {
      await change();
      await reconcile();
      expect(job()?.spec?.suspend).toBe(true);
    });

    test('unless it is still to run', async () => {
      await reconcile();
      expect(job()?.spec?.suspend).toBe(false);
    });
  });
});
