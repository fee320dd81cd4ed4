// A canary that waits for somebody's decision: what may happen to its app meanwhile.

import { afterEach, expect, test } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { cancel, permit, reported, running, scaled, wanted, weights } from './deployment-scene.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

test('a paused canary whose app is scaled to 0 and up again stays at its step, beside the version before', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('good:2', { rollout: { strategy: 'canary', instanceSteps: [10] } });
  await reported(scene, id, 'Paused', { step: 1 });
  const phases = new Set<string | undefined>();
  scene.cluster.intercept = () => void phases.add(scene.app()?.status?.deployment?.phase);
  await scaled(scene, 0);
  await scene.until(() => expect(running(scene)).toEqual({}));
  await scene.restartController();
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:1': 2, 'good:2': 1 }, { 'good:1': 90, 'good:2': 10 }])); // prettier-ignore
  expect([[...phases], scene.app()?.status?.revision]).toMatchObject([['Paused'], { version: 2, deployed: 1 }]);
  await permit(scene, 2);
  await reported(scene, id, 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 2 }));
});

test('a paused canary whose app is scaled to 0 is canceled there, and the version before starts alone', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('good:2', { rev: '1', rollout: { strategy: 'canary' } });
  await reported(scene, id, 'Paused', { step: 1 });
  await scaled(scene, 0);
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true, message: 'The app has no instances.' });
  await scaled(scene, 2);
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:1': 2 }, { 'good:1': 1 }]));
  await reported(scene, id, 'Serving', { canceled: true });
});

test('a canary that is scaled to 0 before it has reached its step has not reached it, other processes wait for it, and it begins again', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1', { processTypes: ['web', 'worker'] }), 'Serving');
  await wanted(scene, 'worker');
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 1 }));
  const id = await scene.deploy('silent:2', { processTypes: ['web', 'worker'], rollout: { strategy: 'canary' } });
  await scene.until(() => expect(scene.web()?.status?.rollout).toMatchObject({ id, phase: 'Starting', step: 1 }));
  const phases = new Set<string | undefined>();
  scene.cluster.intercept = () => void phases.add(scene.web()?.status?.rollout?.phase);
  await scaled(scene, 0);
  await reported(scene, id, 'Pending', { step: 1, message: 'There is no instance to try the new version with.' });
  await scene.until(() => expect(running(scene)).toEqual({}));
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 1 } });
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:1': 1, 'silent:2': 1 }, { 'good:1': 1 }])); // prettier-ignore
  await reported(scene, id, 'Starting', { step: 1 });
  expect([...phases].filter((phase) => phase === 'Paused' || phase === 'Serving')).toEqual([]);
  expect(running(scene, 'worker')).toEqual({ 'good:1': 1 });
});

test('a canary that was pushed while the app had no instances is over, and what is started later is the new version', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scaled(scene, 0);
  const id = await scene.deploy('good:2', { rollout: { strategy: 'canary', instanceSteps: [10] } });
  await reported(scene, id, 'Serving');
  const phases = new Set<string | undefined>();
  scene.cluster.intercept = () => void phases.add(scene.app()?.status?.deployment?.phase);
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:2': 2 }, { 'good:2': 1 }]));
  await reported(scene, id, 'Serving');
  expect([phases.has('Paused'), scene.app()?.status?.revision]).toMatchObject([false, { version: 2, deployed: 2 }]);
});

test('a canary that failed does not take the place of the version before when its app is scaled to 0 and up again', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('crash:2', { rollout: { strategy: 'canary', instanceSteps: [10] } });
  await reported(scene, id, 'Failed');
  await scaled(scene, 0);
  await scene.until(() => expect(running(scene)).toEqual({}));
  expect(scene.app()?.status).toMatchObject({ deployment: { id, phase: 'Failed' }, revision: { version: 2, deployed: 1 } });
  const most = new Set<number | undefined>();
  scene.cluster.intercept = () => void most.add(running(scene)['crash:2']);
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  await scene.until(() => expect([running(scene)['good:1'], weights(scene)]).toEqual([2, { 'good:1': 1 }]));
  expect([...most].filter((count = 0) => count > 1)).toEqual([]);
});

test('a paused canary that is pushed again stays at its step, and a change that leaves it as it is does not promote it', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scaled(scene, 4);
  await reported(scene, await scene.deploy('good:2', { rollout: { strategy: 'canary', instanceSteps: [25] } }), 'Paused', { step: 1 });
  const most = new Set<number | undefined>();
  scene.cluster.intercept = () => void most.add(running(scene)['good:2']);
  const again = { id: 'again', strategy: 'canary', instanceSteps: [25] };
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'again' } }, spec: { rollout: again } });
  await reported(scene, 'again', 'Paused', { step: 1 });
  await scene.until(() => expect(scene.web()?.status?.rollout?.phase).toBe('Paused'));
  expect([[...most], scene.app()?.status?.revision]).toMatchObject([[1], { version: 2, deployed: 1 }]);
});

test('a paused canary that is canceled returns to the same generation as before, and makes no revision', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const before = scene.cluster.all(kinds.appWorkload).map(({ metadata }) => metadata.uid);
  const id = await scene.deploy('good:2', { rev: '1', rollout: { strategy: 'canary' } });
  await reported(scene, id, 'Paused', { step: 1 });
  expect(weights(scene)).toEqual({ 'good:1': 1, 'good:2': 1 });
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true });
  await scene.until(() => expect(scene.cluster.all(kinds.appWorkload).map(({ metadata }) => metadata.uid)).toEqual(before));
  expect([running(scene), weights(scene)]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]);
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await scene.restartController();
  await scaled(scene, 2);
  expect(running(scene)).toEqual({ 'good:1': 2 });
});
