// A version that has served fails while the version before still has its instances: that one serves again, and the change has failed.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { annotations, labels } from '../../../src/lib/api/group.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { processOf, reported, running, scaled, wanted, weights } from './deployment-scene.ts';
import { upsetBy } from './run-node.ts';
import { settled } from './settled.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

/** How long the instances of the version before stay after their last request. */
async function drain(seconds: number): Promise<void> {
  const map = await scene.cluster.get(configMapType, 'cf', 'kf-info');
  const settings = JSON.parse(map?.data?.['info.json'] ?? '') as object;
  const data = { 'info.json': JSON.stringify({ ...settings, drainSeconds: seconds }) };
  await scene.cluster.mergePatch(configMapType, 'cf', 'kf-info', { data });
}

beforeEach(async () => {
  scene = await startRunScene();
  await drain(6);
  await scene.deploy('good:1', { annotations: { 'kf.cloudfoundry.org/app-rev': '1' } });
});

const podsOf = (image: string) => scene.cluster.all(podType).filter(({ spec }: Pod) => spec?.containers[0]?.image === image);

async function upset(pods: readonly Pod[], how: 'restarted' | 'crashing' | null): Promise<void> {
  for (const { metadata } of pods)
    await scene.cluster.mergePatch(podType, ns, metadata.name ?? '', { metadata: { annotations: { [upsetBy]: how } } });
}

const deployed = () => scene.app()?.status?.revision?.deployed;

test('a version that crashes before the version before has been let go has failed, and that one is deployed again', async () => {
  await reported(scene, 'deploy-1', 'Serving');
  await reported(scene, await scene.deploy('good:2'), 'Serving');
  expect([deployed(), running(scene), weights(scene)]).toEqual([2, { 'good:1': 1, 'good:2': 1 }, { 'good:2': 1 }]);
  await upset(podsOf('good:2'), 'crashing');
  await reported(scene, 'deploy-2', 'Failed', { cause: 'exit-code' });
  await scene.until(() => expect([deployed(), running(scene), weights(scene)]).toEqual([1, { 'good:1': 1 }, { 'good:1': 1 }]));
  // The next change replaces it as any other.
  await reported(scene, await scene.deploy('good:3'), 'Serving');
  expect(deployed()).toBe(3);
  await scene.until(() => expect(running(scene)).toEqual({ 'good:3': 1 }));
});

test('a version that crashes after that stays deployed: its instances say how they are', async () => {
  await drain(1);
  await reported(scene, 'deploy-1', 'Serving');
  await reported(scene, await scene.deploy('good:2'), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 1 }));
  await scene.until(() => expect(scene.app()?.status?.revision).not.toHaveProperty('replaced'));
  await upset(podsOf('good:2'), 'crashing');
  await scene.until(() => expect(scene.web()?.status?.instancesStatus?.['0']?.state).toBe('CRASHED'));
  await settled(scene.cluster);
  expect([scene.app()?.status?.deployment?.phase, deployed()]).toEqual(['Serving', 2]);
});

test('the version before stays longer beside one that has crashed once: the next crash comes about as late', async () => {
  await reported(scene, 'deploy-1', 'Serving');
  await reported(scene, await scene.deploy('good:2'), 'Serving');
  await upset(podsOf('good:2'), 'restarted');
  await scene.until(() => expect(weights(scene)).toEqual({ 'good:1': 1 }));
  await drain(2);
  await upset(podsOf('good:2'), null);
  await scene.until(() => expect(weights(scene)).toEqual({ 'good:2': 1 }));
  // Without the crash it would go a second after that.
  await sleep(4_000);
  expect(running(scene)).toEqual({ 'good:1': 1, 'good:2': 1 });
  await upset(podsOf('good:2'), 'crashing');
  await reported(scene, 'deploy-2', 'Failed', { cause: 'exit-code' });
  await scene.until(() => expect([deployed(), running(scene)]).toEqual([1, { 'good:1': 1 }]));
});

test('a version whose instance is deleted then, and has no room, has not failed: the version before answers until there is room', async () => {
  await reported(scene, 'deploy-1', 'Serving');
  await reported(scene, await scene.deploy('good:2'), 'Serving');
  scene.limitPods(1);
  for (const { metadata } of podsOf('good:2')) await scene.cluster.delete(podType, ns, metadata.name ?? '');
  await scene.until(() => expect(weights(scene)).toEqual({ 'good:1': 1 }));
  // A quota is final after 5 s.
  await sleep(8_000);
  expect([scene.app()?.status?.deployment?.phase, deployed(), running(scene)]).toEqual(['Serving', 2, { 'good:1': 1, 'good:2': 1 }]);
  scene.limitPods(Infinity);
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 1 }));
});

test('a version that is scaled up at once grows when the version before has ended, and that one gets no requests again', async () => {
  await reported(scene, 'deploy-1', 'Serving');
  await reported(scene, await scene.deploy('good:2'), 'Serving');
  const seen = new Set<number>();
  scene.cluster.intercept = () => void seen.add(weights(scene)['good:1'] ?? 0);
  scene.holdStarts(true);
  const growing = scaled(scene, 3);
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 3 }));
  scene.holdStarts(false);
  await growing;
  expect([...seen]).toEqual([0]);
});

test('a worker that has crashed once is waited for longer: a next run of six seconds is no start', async () => {
  const processTypes = ['web', 'worker'];
  await reported(scene, await scene.deploy('good:1', { processTypes }), 'Serving');
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  const id = await scene.deploy('good:2', { processTypes });
  const workers = () => podsOf('good:2').filter(({ metadata }) => metadata.labels?.[labels.processType] === 'worker');
  await scene.until(() => expect(workers()[0]?.status?.containerStatuses?.[0]?.ready).toBe(true));
  await upset(workers(), 'restarted');
  await scene.until(() => expect(workers()[0]?.status?.containerStatuses?.[0]?.restartCount).toBe(1));
  await upset(workers(), null);
  await sleep(7_000);
  expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: expect.not.stringMatching('Serving') as string });
  await upset(workers(), 'crashing');
  await reported(scene, id, 'Failed', { cause: 'exit-code', process: 'worker' });
  await scene.until(() => expect([deployed(), running(scene), running(scene, 'worker')]).toEqual([1, { 'good:1': 1 }, { 'good:1': 1 }]));
});

test('of several workers, one that runs without a crash is enough: a change that leaves them alone does not wait', async () => {
  const processTypes = ['web', 'worker'];
  await reported(scene, await scene.deploy('good:1', { processTypes }), 'Serving');
  await wanted(scene, 'worker', { desiredInstances: 2 });
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  const workers = () => podsOf('good:1').filter(({ metadata }) => metadata.labels?.[labels.processType] === 'worker');
  const restarts = () => workers().map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
  const crashedAt = Date.now();
  await upset(workers().slice(0, 1), 'restarted');
  await scene.until(() => expect(restarts()).toEqual([1, 0]));
  await upset(workers().slice(0, 1), null);
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.actualInstances).toBe(2));
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'next' } } });
  await reported(scene, 'next', 'Serving');
  // That one counts again after 20 s.
  expect(Date.now() - crashedAt).toBeLessThan(19_000);
});
