// A node is emptied while an app has too few instances that serve, or does not exist any more: its budget may not stop the drain for ever. On a cluster
// in memory.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeType, podDisruptionBudgetType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
let passedMs = 0;
beforeEach(() => void (passedMs = 0));
afterEach(() => scene.stop());

const pod = (index: number): Pod | undefined =>
  scene.cluster.all(podType).find(({ metadata }) => metadata.namespace === ns && metadata.labels?.[labels.podIndex] === String(index));
const budgets = (): (string | undefined)[] => scene.cluster.all(podDisruptionBudgetType).map(({ metadata }) => metadata.name);
const web = (): string => scene.web()?.metadata.name ?? '';
const isGuarded = (): Promise<void> => scene.until(() => expect(budgets()).toEqual([web()]));
const isFree = (): Promise<void> => scene.until(() => expect(budgets()).toEqual([]));

async function serve(instances: number): Promise<void> {
  scene = await startRunScene({ now: () => Date.now() + passedMs });
  const id = await scene.deploy('good:1');
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  await scene.cluster.mergePatch(kinds.process, ns, web(), { spec: { desiredInstances: instances } });
  await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: instances }));
  await isGuarded();
  await scene.cluster.create(nodeType, { metadata: { name: 'old' }, spec: {} });
  await scene.cluster.mergePatch(podType, ns, pod(0)?.metadata.name ?? '', { spec: { nodeName: 'old' } });
}

const cordon = (): Promise<unknown> => scene.cluster.mergePatch(nodeType, undefined, 'old', { spec: { unschedulable: true } });

/** Writes the status of the instance, with a container that ended or one that runs. */
async function report(index: number, isReady: boolean): Promise<void> {
  const { metadata, status } = pod(index) ?? { metadata: { name: '' } };
  const at = new Date().toISOString();
  const state = isReady ? { running: { startedAt: at } } : { terminated: { exitCode: 1, reason: 'Error', startedAt: at, finishedAt: at } };
  const conditions = status?.conditions?.map((one) => (one.type === 'Ready' ? { ...one, status: isReady ? 'True' : 'False' } : one));
  const containerStatuses = status?.containerStatuses?.map((one) => ({ ...one, ready: isReady, restartCount: 3, state }));
  const patch = { status: { ...status, conditions, containerStatuses } };
  await scene.cluster.mergePatch(podType, ns, metadata.name ?? '', patch, { subresource: 'status' });
}

test('the budget of two instances goes when the other one fails for good, and comes back when it serves', async () => {
  await serve(2);
  // The simulated node makes an instance of this image ready again.
  await scene.cluster.mergePatch(podType, ns, pod(1)?.metadata.name ?? '', {
    spec: { containers: [{ ...pod(1)?.spec?.containers[0], image: 'broken:1' }] },
  });
  await report(1, false);
  await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 1 }));
  expect(budgets()).toEqual([web()]);
  await cordon();
  await isFree();
  await report(1, true);
  await isGuarded();
});

test('the budget of an app goes as soon as the app is being deleted, however long a finalizer delays that', async () => {
  await serve(2);
  await scene.patchApp({ metadata: { finalizers: ['attacker.example/stay'], deletionTimestamp: new Date().toISOString() } });
  await isFree();
  expect([pod(0), pod(1)]).not.toContain(undefined);
});

test('an app that cannot be reconciled holds up a drain for ten minutes, and no longer', async () => {
  await serve(1);
  await scene.patchApp({
    metadata: { annotations: { [annotations.appRev]: '9', [annotations.deployId]: 'x' } },
    spec: { envSecretName: 'none' },
  });
  await scene.until(() => expect(scene.web()?.status?.rollout).toMatchObject({ id: 'x' }));
  await cordon();
  await scene.until(() => expect(scene.web()?.status?.rollout?.message).toContain('none'));
  expect(budgets()).toEqual([web()]);
  // The first of these looks is the one from which the ten minutes count.
  await scene.until(() => {
    passedMs += 601_000;
    void scene.cluster.mergePatch(kinds.process, ns, web(), { metadata: { annotations: { look: String(passedMs) } } });
    expect(budgets()).toEqual([]);
  });
  await scene.cluster.mergePatch(nodeType, undefined, 'old', { spec: { unschedulable: null } });
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'y' } }, spec: { envSecretName: 'env' } });
  await isGuarded();
});

test('a process whose app was deleted without it has no budget, and is deleted after a while', async () => {
  await serve(1);
  const name = web();
  await scene.cluster.mergePatch(kinds.process, ns, name, { metadata: { ownerReferences: null } });
  await scene.cluster.delete(kinds.app, ns, scene.app()?.metadata.name ?? '', { propagation: 'Orphan' });
  await isFree();
  expect(web()).toBe(name);
  passedMs = 601_000;
  await scene.cluster.mergePatch(kinds.process, ns, name, { metadata: { annotations: { look: 'again' } } });
  await scene.until(() => expect(scene.web()).toBeUndefined());
});
