// Canaries, cancellations and recreations: the controller with a simulated node and gateway. Which requests the CLI accepts is in contract/cli/deployments.

import { afterEach, expect, test } from 'vitest';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const reported = async (id: string, phase: string, more: object = {}): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase, ...more }));

/** Requested instances by image; those without any are left out. */
function running(type = 'web'): Record<string, number> {
  const some = scene.cluster.all(kinds.appWorkload).filter(({ spec }) => spec.processType === type && spec.instances > 0);
  return Object.fromEntries(some.map(({ spec }) => [spec.image, spec.instances]));
}

/** Weights of web by image. */
function weights(): Record<string, number> {
  const parts = (scene.web()?.status?.serving ?? '').split(',').map((part) => part.split('='));
  const imageOf = (hash = '') =>
    scene.cluster.all(kinds.appWorkload).find(({ metadata }) => metadata.name?.endsWith(`-${hash}`) === true)?.spec.image;
  return Object.fromEntries(parts.map(([hash, weight]) => [imageOf(hash) ?? '', Number(weight)]));
}

async function scaled(instances: number): Promise<void> {
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: instances } });
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(instances));
}

const permit = (step: number): Promise<void> => scene.patchApp({ spec: { rollout: { step } } });
const cancel = (droplet: string): Promise<void> =>
  scene.patchApp({ spec: { rollout: { id: scene.app()?.metadata.annotations?.[annotations.deployId], canceled: true }, currentDropletRef: { name: droplet } } }); // prettier-ignore

test('a canary pauses after each step with its share of the requests, and goes on from there with another controller', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1'), 'Serving');
  await scaled(4);
  const id = await scene.deploy('good:2', { rollout: { strategy: 'canary', instanceSteps: [10, 50] } });
  await reported(id, 'Paused', { step: 1, reason: 'Canary' });
  expect([running(), weights()]).toEqual([
    { 'good:1': 4, 'good:2': 1 },
    { 'good:1': 90, 'good:2': 10 },
  ]);
  await scene.restartController();
  await permit(2);
  await reported(id, 'Paused', { step: 2 });
  await scene.until(() => expect(running()).toEqual({ 'good:1': 3, 'good:2': 2 }));
  expect(weights()).toEqual({ 'good:1': 50, 'good:2': 50 });
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await permit(3);
  await reported(id, 'Serving');
  await scene.until(() => expect([running(), weights()]).toEqual([{ 'good:2': 4 }, { 'good:2': 1 }]));
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 2 }));
});

test('a paused canary that is canceled returns to the same generation as before, and makes no revision', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1'), 'Serving');
  const before = scene.cluster.all(kinds.appWorkload).map(({ metadata }) => metadata.uid);
  const id = await scene.deploy('good:2', { rev: '1', rollout: { strategy: 'canary' } });
  await reported(id, 'Paused', { step: 1 });
  expect(weights()).toEqual({ 'good:1': 1, 'good:2': 1 });
  await cancel('build-1');
  await reported(id, 'Serving', { canceled: true });
  await scene.until(() => expect(scene.cluster.all(kinds.appWorkload).map(({ metadata }) => metadata.uid)).toEqual(before));
  expect([running(), weights()]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]);
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await scene.restartController();
  await scaled(2);
  expect(running()).toEqual({ 'good:1': 2 });
});

test('a version that never becomes ready is canceled while it is awaited', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('silent:1');
  await scene.until(() => expect(running()).toEqual({ 'good:1': 1, 'silent:1': 1 }));
  await cancel('build-1');
  await reported(id, 'Serving', { canceled: true });
  await scene.until(() => expect(running()).toEqual({ 'good:1': 1 }));
  const next = await scene.deploy('good:3');
  await reported(next, 'Serving');
  await scene.until(() => expect(running()).toEqual({ 'good:3': 1 }));
});

test('a canary that crashes has failed, and the version before has all requests', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('crash:1', { rollout: { strategy: 'canary', instanceSteps: [10] } });
  await reported(id, 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect([running(), weights()]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]));
});

/** Gives a process other than web, which has none by itself, one instance. */
async function wanted(type: string): Promise<void> {
  const found = () => scene.cluster.all(kinds.process).find(({ spec }) => spec.processType === type);
  await scene.until(() => expect(found()).toBeDefined());
  await scene.cluster.mergePatch(kinds.process, ns, found()?.metadata.name ?? '', { spec: { desiredInstances: 1 } });
}

test('other processes wait until the canary has ended, and one that is new goes with a cancellation', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1', { processTypes: ['web', 'worker'] }), 'Serving');
  await wanted('worker');
  await scene.until(() => expect(running('worker')).toEqual({ 'good:1': 1 }));
  const id = await scene.deploy('good:2', { processTypes: ['web', 'worker', 'clock'], rollout: { strategy: 'canary' } });
  await wanted('clock');
  await reported(id, 'Paused');
  expect([running('worker'), running('clock')]).toEqual([{ 'good:1': 1 }, {}]);
  await permit(2);
  const both = { 'good:2': 1 };
  await scene.until(() => expect([running(), running('worker'), running('clock')]).toEqual([both, both, both]));
  await reported(id, 'Serving');
  const next = await scene.deploy('silent:3', { processTypes: ['web', 'worker', 'clock', 'mailer'] });
  await wanted('mailer');
  await scene.until(() => expect(running('mailer')).toEqual({ 'silent:3': 1 }));
  await cancel('build-2');
  await reported(next, 'Serving', { canceled: true });
  await scene.until(() => expect(['web', 'worker', 'clock', 'mailer'].map(running)).toEqual([both, both, both, {}]));
});

test('the first version, and one after a failed start, has nothing to be a canary beside', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('crash:1', { rollout: { strategy: 'canary' } }), 'Failed');
  await reported(await scene.deploy('good:1', { rollout: { strategy: 'canary', instanceSteps: [1] } }), 'Serving');
});

test('recreate stops the version before first, and returns to it after a failure', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1'), 'Serving');
  await scaled(2);
  await reported(await scene.deploy('good:2', { rollout: { strategy: 'recreate' } }), 'Serving');
  await scene.until(() => expect(running()).toEqual({ 'good:2': 2 }));
  const failed = await scene.deploy('crash:1', { rollout: { strategy: 'recreate' } });
  await reported(failed, 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect(running()).toEqual({ 'good:2': 2 }));
});

test('recreate is also a default, of the app or else of its space, for changes that ask for nothing', async () => {
  scene = await startRunScene();
  await reported(await scene.deploy('good:1'), 'Serving');
  await scaled(2);
  const seen: string[] = [];
  scene.cluster.intercept = (verb, type) => {
    if (verb === 'patch' && type === kinds.appWorkload) seen.push(Object.keys(running()).join());
  };
  const roll = async (image: string, label: 'recreate' | 'rolling' | null): Promise<boolean> => {
    seen.length = 0;
    await scene.patchApp({ metadata: { labels: { [labels.strategy]: label } } });
    await reported(await scene.deploy(image), 'Serving');
    await scene.until(() => expect(running()).toEqual({ [image]: 2 }));
    return seen.some((images) => images.includes(','));
  };
  expect(await roll('good:2', 'recreate')).toBe(false);
  expect(await roll('good:3', null)).toBe(true);
  const space = { metadata: { name: ns, namespace: 'org', labels: { [labels.strategy]: 'recreate' } }, spec: { displayName: 'space' } };
  await scene.cluster.create(kinds.space, space);
  // For `kf app`, which does not read the space.
  await scene.until(() => expect(scene.app()?.status?.spaceStrategy).toBe('recreate'));
  expect(await roll('good:4', null)).toBe(false);
  expect(await roll('good:5', 'rolling')).toBe(true);
  await scene.cluster.mergePatch(kinds.space, 'org', ns, { metadata: { labels: { [labels.strategy]: null } } });
  await scene.until(() => expect(scene.app()?.status?.spaceStrategy).toBeUndefined());
});
