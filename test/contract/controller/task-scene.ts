// A cluster in memory with the controller of tasks, and an app that tasks belong to.

import { afterEach, beforeEach, expect, vi } from 'vitest';
import { taskReconciler } from '../../../src/controller/tasks/task.ts';
import { taskWorkloadReconciler } from '../../../src/controller/tasks/workload.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { configMapType, jobType, secretType } from '../../../src/lib/api/core.ts';
import type { CoreCondition } from '../../../src/lib/api/pod.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { CFApp, CFTask } from '../../../src/lib/api/types.generated.ts';
import { defined } from '../../../src/lib/defined.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { info } from './build-scene.ts';

export const ns = 'space-1';
export let cluster: MemoryCluster;
export let stop: () => Promise<void>;

/** Each test of the file gets a cluster and a controller. */
export function useTaskScene(): void {
  beforeEach(async () => {
    cluster = new MemoryCluster();
    await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': JSON.stringify(info) } });
    await cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: Buffer.from('red').toString('base64') } });
    startController();
  });
  afterEach(async () => {
    await stop();
    cluster.close();
  });
}

export function startController(identity = 'one'): void {
  const aborter = new AbortController();
  const running = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [taskReconciler, taskWorkloadReconciler],
    leader: { ns: 'kf-system', name: 'kf-controller', identity, followMs: 20 },
    rootNamespace: 'cf',
    log: createLogger('error', () => undefined),
  }).run(aborter.signal);
  stop = async () => {
    aborter.abort();
    await running;
  };
}

export const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: patienceMs, interval: 5 });

/** An app with a droplet and a process of type `worker`, which has sizes and a command. */
export async function makeApp(type: 'docker' | 'buildpack' = 'docker', more: Partial<CFApp['spec']> = {}): Promise<void> {
  const lifecycle = { type, data: { stack: '' } };
  await cluster.create(kinds.app, {
    metadata: { name: 'app', namespace: ns },
    spec: {
      displayName: 'shop',
      desiredState: 'STARTED',
      lifecycle,
      envSecretName: 'env',
      currentDropletRef: { name: 'build-1' },
      ...more,
    },
  });
  await cluster.create(kinds.build, {
    metadata: { name: 'build-1', namespace: ns },
    spec: { appRef: { name: 'app' }, packageRef: { name: 'p' }, lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1 },
  });
  const droplet = { registry: { image: 'shop:1', imagePullSecrets: [{ name: 'pull' }] } };
  await cluster.mergePatch(kinds.build, ns, 'build-1', { status: { state: 'STAGED', droplet } }, { subresource: 'status' });
  await cluster.create(kinds.process, {
    metadata: { name: 'worker', namespace: ns, labels: { [labels.appGuid]: 'app', [labels.processType]: 'worker' } },
    spec: {
      appRef: { name: 'app' },
      processType: 'worker',
      command: 'work --hard',
      memoryMB: 64,
      diskQuotaMB: 512,
      healthCheck: { type: 'process', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } },
    },
  });
}

export const makeTask = (name: string, spec: Partial<CFTask['spec']> = { command: 'rake' }) =>
  cluster.create(kinds.task, { metadata: { name, namespace: ns }, spec: { appRef: { name: 'app' }, ...spec } });

export const task = (name: string) => cluster.peek(kinds.task, ns, name);
export const job = (name: string) => cluster.peek(jobType, ns, name);
export const condition = (name: string, type: string) => findCondition(task(name) ?? { metadata: {} }, type);
export const jobsMade = (): string[] =>
  cluster.writes.filter(({ verb, kind }) => verb === 'create' && kind === 'Job').map(({ name }) => name);

/** The pod of the task's Job with one container in that state, as the Job controller and the kubelet make it. */
export async function givePod(
  name: string,
  state: object,
  phase: 'Pending' | 'Running' | 'Failed' | 'Succeeded' = 'Running',
  { nodeName, conditions, ...metadata }: { nodeName?: string; conditions?: CoreCondition[]; deletionTimestamp?: string } = {},
): Promise<void> {
  const made = job(name);
  // A container that only waits has no id.
  const id = 'waiting' in state ? {} : { containerID: `containerd://${name}` };
  const container = { name: 'workload', image: 'shop:1', imageID: '', ready: false, restartCount: 0, state, ...id };
  await cluster.create<Pod>(podType, {
    metadata: {
      ...metadata,
      name: `${name}-pod`,
      namespace: ns,
      labels: { ...made?.spec?.template.metadata?.labels },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid: made?.metadata.uid ?? '' }],
    },
    spec: { containers: [], ...defined({ nodeName }) },
    status: { phase, containerStatuses: [container], ...defined({ conditions }) },
  });
}

export async function endJob(name: string, type: 'Complete' | 'Failed', reason = ''): Promise<void> {
  const conditions = [{ type, status: 'True', reason, message: 'Job has reached the specified backoff limit' }];
  await cluster.mergePatch(jobType, ns, name, { status: { conditions } }, { subresource: 'status' });
}

/** A task of the app, whose Job may begin. */
export async function releasedTask(name: string): Promise<void> {
  await makeApp();
  await makeTask(name);
  await until(() => expect(job(name)?.spec?.suspend).toBe(false));
}

export const ended = (exitCode: number, reason: string) => ({ terminated: { exitCode, reason } });

/** Conditions of these types, all True. */
export const areTrue = (...types: string[]) =>
  types.map((type) => ({ type, status: 'True' as const, reason: 'Done', message: '', lastTransitionTime: '' }));
