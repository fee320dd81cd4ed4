// Canaries, cancellations and recreations: the controller with a simulated node and gateway. Which requests the CLI accepts is in contract/cli/deployments.

import { afterEach, expect, test } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { revisionsName } from '../../../src/lib/api/revisions.ts';
import { readVerdicts } from '../../../src/lib/api/verdicts.ts';
import { cancel, permit, processOf, reported, running, scaled, wanted, weights } from './deployment-scene.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

test('a canary pauses after each step with its share of the requests, and goes on from there with another controller', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scaled(scene, 4);
  const id = await scene.deploy('good:2', { rollout: { strategy: 'canary', instanceSteps: [10, 50] } });
  await reported(scene, id, 'Paused', { step: 1, reason: 'Canary' });
  expect([running(scene), weights(scene)]).toEqual([
    { 'good:1': 4, 'good:2': 1 },
    { 'good:1': 90, 'good:2': 10 },
  ]);
  await scene.restartController();
  await permit(scene, 2);
  await reported(scene, id, 'Paused', { step: 2 });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 3, 'good:2': 2 }));
  expect(weights(scene)).toEqual({ 'good:1': 50, 'good:2': 50 });
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await permit(scene, 3);
  await reported(scene, id, 'Serving');
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:2': 4 }, { 'good:2': 1 }]));
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 2 }));
});

test('a canceled canary gets nothing although an instance of the version before crashes, which says so', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('lame:1'), 'Serving');
  await scaled(scene, 2);
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 3 } });
  const id = await scene.deploy('good:2', { rev: '1', rollout: { strategy: 'canary' } });
  await reported(scene, id, 'Paused', { step: 1 });
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Failed', { canceled: true, cause: 'exit-code' });
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'lame:1': 3 }, { 'lame:1': 1 }]));
  // The crash is not that of the revision which was canceled.
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, change: `1/${id}` });
  expect(readVerdicts(scene.cluster.peek(configMapType, ns, revisionsName(appGuid)))).toEqual([]);
});

test('a version that never becomes ready is canceled while it is awaited', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('silent:1');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'silent:1': 1 }));
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  const next = await scene.deploy('good:3');
  await reported(scene, next, 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:3': 1 }));
});

test('a canary that crashes has failed, and the version before has all requests', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('crash:1', { rollout: { strategy: 'canary', instanceSteps: [10] } });
  await reported(scene, id, 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]));
});

test('the canary of one instance that a version which crashes overtakes gets no more requests, and nothing returns to it', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await reported(scene, await scene.deploy('good:2', { rollout: { strategy: 'canary', instanceSteps: [10] } }), 'Paused', { step: 1 });
  const most: number[] = [];
  scene.cluster.intercept = () => {
    const { 'good:1': before = 0, 'good:2': canary = 0 } = weights(scene);
    most.push(canary / Math.max(1, before + canary));
  };
  await reported(scene, await scene.deploy('crash:3'), 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect([running(scene), weights(scene)]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]));
  expect(Math.max(...most)).toBeLessThanOrEqual(0.1);
});

test('other processes wait until the canary has ended, and one that is new goes with a cancellation', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1', { processTypes: ['web', 'worker'] }), 'Serving');
  await wanted(scene, 'worker');
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 1 }));
  const id = await scene.deploy('good:2', { processTypes: ['web', 'worker', 'clock'], rollout: { strategy: 'canary' } });
  await wanted(scene, 'clock');
  await reported(scene, id, 'Paused');
  expect([running(scene, 'worker'), running(scene, 'clock')]).toEqual([{ 'good:1': 1 }, {}]);
  await permit(scene, 2);
  const both = { 'good:2': 1 };
  await scene.until(() => expect([running(scene), running(scene, 'worker'), running(scene, 'clock')]).toEqual([both, both, both]));
  await reported(scene, id, 'Serving');
  const next = await scene.deploy('silent:3', { processTypes: ['web', 'worker', 'clock', 'mailer'] });
  await wanted(scene, 'mailer');
  await scene.until(() => expect(running(scene, 'mailer')).toEqual({ 'silent:3': 1 }));
  await cancel(scene, 'build-2');
  await reported(scene, next, 'Serving', { canceled: true });
  await scene.until(() => expect(['web', 'worker', 'clock', 'mailer'].map((type) => running(scene, type))).toEqual([both, both, both, {}]));
});

test('processes that served return with the one that failed, and nothing falls back to their version later', async () => {
  scene = await startRunScene();
  const processTypes = ['web', 'worker'];
  const settled = (image: string) =>
    scene.until(() => expect(['web', 'worker'].map((type) => running(scene, type))).toEqual([{ [image]: 1 }, { [image]: 1 }]));
  await reported(scene, await scene.deploy('good:1', { processTypes }), 'Serving');
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  const failure = { reason: 'Crashed', cause: 'exit-code', process: 'worker', logTail: ['no database'] };
  const half = await scene.deploy('half:2', { processTypes });
  await reported(scene, half, 'Failed', failure);
  await settled('good:1');
  await scene.until(() => expect(weights(scene)).toEqual({ 'good:1': 1 }));
  await reported(scene, half, 'Failed', failure);
  expect(scene.web()?.status?.rollout).toMatchObject({ phase: 'Failed', reason: 'OtherProcessFailed' });
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await scene.restartController();
  await scaled(scene, 2);
  await scaled(scene, 1);
  await settled('good:1');
  await reported(scene, await scene.deploy('crash:3', { processTypes }), 'Failed');
  await settled('good:1');
  const mark = (id: string, desiredState: string) => scene.patchApp({ metadata: { annotations: { [annotations.deployId]: id } }, spec: { desiredState } }); // prettier-ignore
  await mark('stop', 'STOPPED');
  await reported(scene, 'stop', 'Stopped');
  await mark('start', 'STARTED');
  await reported(scene, 'start', 'Failed', { reason: 'Crashed' });
  await settled('good:1');
  await reported(scene, await scene.deploy('good:4', { processTypes }), 'Serving');
  await settled('good:4');
});

test('a process that a change does not touch stays as it is when another one fails, although a version before it is kept', async () => {
  scene = await startRunScene();
  const processTypes = ['web', 'worker', 'clock'];
  const name = (type: string): string => processOf(scene, type)?.metadata.name ?? '';
  const tighten = (type: string) => scene.cluster.mergePatch(kinds.process, ns, name(type), { spec: { memoryMB: 16 } });
  await reported(scene, await scene.deploy('tight:1', { processTypes }), 'Serving');
  await tighten('clock');
  await wanted(scene, 'worker');
  await wanted(scene, 'clock');
  await scene.until(() =>
    expect(['web', 'worker', 'clock'].map((type) => running(scene, type))).toEqual(Array.from({ length: 3 }, () => ({ 'tight:1': 1 }))),
  );
  // A process that never served keeps the change from its end, and with it the version before.
  await reported(scene, await scene.deploy('tight:2', { processTypes }), 'Failed', { process: 'clock' });
  const both = { 'tight:2': 1 };
  await scene.until(() =>
    expect([running(scene, 'web'), running(scene, 'worker'), scene.web()?.status?.rollout?.phase]).toEqual([both, both, 'Serving']),
  );
  await scene.until(() => expect(scene.cluster.peek(kinds.process, ns, name('worker'))?.status?.rollout?.phase).toBe('Serving'));
  expect(scene.web()?.status?.rollout?.generations).toHaveLength(2);
  await tighten('worker');
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'resized' } } });
  await scene.until(() =>
    expect(scene.cluster.peek(kinds.process, ns, name('worker'))?.status?.rollout).toMatchObject({
      id: 'resized',
      phase: 'Failed',
      reason: 'Crashed',
    }),
  );
  await scene.until(() => expect(running(scene, 'worker')).toEqual(both));
  await scaled(scene, 2);
  await scaled(scene, 1);
  expect([running(scene), scene.web()?.status?.rollout?.phase]).toEqual([both, 'Serving']);
});

/** Web serves by version 2, and version 1 is kept for it: version 2 has a new worker, which crashes. */
async function halfDone(): Promise<void> {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('tight:1', { processTypes: ['web'] }), 'Serving');
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ deployed: 1 }));
  const id = await scene.deploy('tight:2', { processTypes: ['web', 'worker'] });
  await wanted(scene, 'worker', { memoryMB: 16 });
  await reported(scene, id, 'Failed', { process: 'worker' });
  await scene.until(() => expect([running(scene), scene.web()?.status?.rollout?.phase]).toEqual([{ 'tight:2': 1 }, 'Serving']));
}

/** A change that leaves web as it is. The worker counts as proven only after a while. */
async function changeOnlyWorker(rollout: object = {}): Promise<void> {
  await wanted(scene, 'worker', { memoryMB: 17 });
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'third' } }, spec: { rollout: { id: 'third', ...rollout } } });
  await scene.until(() =>
    expect([scene.web()?.status?.rollout?.id, processOf(scene, 'worker')?.status?.rollout?.id]).toEqual(['third', 'third']),
  );
}

test('a process that a canceled change did not touch returns to the version of the app before', async () => {
  await halfDone();
  await changeOnlyWorker();
  await cancel(scene, 'build-1');
  await reported(scene, 'third', 'Serving', { canceled: true });
  await scene.until(() => expect([running(scene), running(scene, 'worker')]).toEqual([{ 'tight:1': 1 }, {}]));
  await scene.until(() => expect(weights(scene)).toEqual({ 'tight:1': 1 }));
});

test('a process that a change does not touch, and that crashes, has the version in its place that served last', async () => {
  await halfDone();
  const pods = scene.cluster.all(podType).filter((pod) => pod.metadata.labels?.[labels.processType] === 'web');
  const { metadata, spec } = pods.find((pod) => pod.spec?.containers[0]?.image === 'tight:2') ?? {};
  const patch = { spec: { containers: [{ ...spec?.containers[0], image: 'crash:2' }] } };
  await scene.cluster.mergePatch(podType, ns, metadata?.name ?? '', patch);
  const at = { lastTransitionTime: new Date().toISOString() };
  const status = { conditions: [{ type: 'PodScheduled', status: 'True', ...at }, { type: 'Ready', status: 'False', ...at }] }; // prettier-ignore
  await scene.cluster.mergePatch(podType, ns, metadata?.name ?? '', { status }, { subresource: 'status' });
  await scene.until(() => expect(scene.web()?.status?.instancesStatus?.['0']?.state).toBe('CRASHED'));
  await changeOnlyWorker();
  await scene.until(() => expect([running(scene), scene.web()?.status?.rollout?.phase]).toEqual([{ 'tight:1': 1 }, 'Failed']));
  expect(scene.web()?.status?.rollout?.message).toContain('The version that served last is started in its place.');
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(1));
  expect(running(scene)).toEqual({ 'tight:1': 1 });
});

test('a canary that does not touch web leaves all its instances, and other processes do not wait for it', async () => {
  await halfDone();
  await scaled(scene, 4);
  const seen = new Set<number | undefined>();
  scene.cluster.intercept = () => void seen.add(running(scene)['tight:2']);
  await changeOnlyWorker({ strategy: 'canary', instanceSteps: [10] });
  await reported(scene, 'third', 'Serving');
  expect([running(scene, 'worker'), [...seen]]).toEqual([{ 'tight:2': 1 }, [4]]);
});

test('a canary of web leaves an instance to a worker that it does not touch, beside which the version before is kept', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('tight:1', { processTypes: ['web', 'worker'] }), 'Serving');
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  const id = await scene.deploy('tight:2', { processTypes: ['web', 'worker', 'clock'] });
  await wanted(scene, 'clock', { memoryMB: 16 });
  await reported(scene, id, 'Failed', { process: 'clock' });
  const phases = () => ['web', 'worker'].map((type) => processOf(scene, type)?.status?.rollout?.phase);
  await scene.until(() =>
    expect([running(scene), running(scene, 'worker'), ...phases()]).toEqual([{ 'tight:2': 1 }, { 'tight:2': 1 }, 'Serving', 'Serving']),
  );
  await scene.cluster.mergePatch(kinds.process, ns, processOf(scene, 'web')?.metadata.name ?? '', { spec: { memoryMB: 333 } });
  const workers = new Set<number | undefined>();
  scene.cluster.intercept = () => void workers.add(running(scene, 'worker')['tight:2']);
  await scene.patchApp({
    metadata: { annotations: { [annotations.deployId]: 'third' } },
    spec: { rollout: { id: 'third', strategy: 'canary' } },
  });
  await scene.until(() => expect(phases()).toEqual(['Paused', 'Serving']));
  expect([...workers]).toEqual([1]);
});

test('web stays on a version that the whole app served by, even if a process that gets instances later crashes', async () => {
  scene = await startRunScene();
  const processTypes = ['web', 'worker'];
  const scaledWorker = (instances: number) => wanted(scene, 'worker', { desiredInstances: instances });
  await reported(scene, await scene.deploy('good:1', { processTypes }), 'Serving');
  await scaledWorker(1);
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  await scaledWorker(0);
  await scene.until(() => expect(running(scene, 'worker')).toEqual({}));
  await reported(scene, await scene.deploy('half:2', { processTypes }), 'Serving');
  // At this time the version before is still about to end.
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ deployed: 2 }));
  await scaledWorker(1);
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout).toMatchObject({ phase: 'Failed' }));
  await scene.until(() => expect([running(scene), running(scene, 'worker')]).toEqual([{ 'half:2': 1 }, { 'good:1': 1 }]));
  expect(scene.web()?.status?.rollout).toMatchObject({ phase: 'Serving' });
});

test('a canary that first waits for a binding has the instances of its step, and other processes wait for it', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1', { processTypes: ['web', 'worker'] }), 'Serving');
  await scaled(scene, 4);
  await wanted(scene, 'worker');
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 1 }));
  await scene.cluster.create(kinds.serviceBinding, {
    metadata: { name: 'b-1', namespace: ns },
    spec: { type: 'app', appRef: { name: 'app-1' }, service: { kind: 'CFServiceInstance', name: 'i-1' }, parameters: { name: '' } },
  });
  const rollout = { strategy: 'canary' as const, instanceSteps: [25], maxInFlight: 3 };
  const id = await scene.deploy('good:2', { processTypes: ['web', 'worker'], rollout });
  await reported(scene, id, 'Pending', { reason: 'BindingNotReady' });
  const seen = new Set<string>();
  scene.cluster.intercept = () => {
    for (const type of ['web', 'worker']) seen.add(`${type} ${String(running(scene, type)['good:2'] ?? 0)}`);
  };
  await scene.cluster.delete(kinds.serviceBinding, ns, 'b-1');
  await reported(scene, id, 'Paused', { step: 1 });
  expect([running(scene), running(scene, 'worker')]).toEqual([{ 'good:1': 4, 'good:2': 1 }, { 'good:1': 1 }]);
  expect([...seen].toSorted()).toEqual(['web 0', 'web 1', 'worker 0']);
});

test('the first version, and one after a failed start, has nothing to be a canary beside', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('crash:1', { rollout: { strategy: 'canary' } }), 'Failed');
  await reported(scene, await scene.deploy('good:1', { rollout: { strategy: 'canary', instanceSteps: [1] } }), 'Serving');
});

test('recreate stops the version before first, and returns to it after a failure', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scaled(scene, 2);
  await reported(scene, await scene.deploy('good:2', { rollout: { strategy: 'recreate' } }), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 2 }));
  const failed = await scene.deploy('crash:1', { rollout: { strategy: 'recreate' } });
  await reported(scene, failed, 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 2 }));
});

test('recreate is also a default, of the app or else of its space, for changes that ask for nothing', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scaled(scene, 2);
  const seen: string[] = [];
  scene.cluster.intercept = (verb, type) => {
    if (verb === 'patch' && type === kinds.appWorkload) seen.push(Object.keys(running(scene)).join());
  };
  const roll = async (image: string, label: 'recreate' | 'rolling' | null): Promise<boolean> => {
    seen.length = 0;
    await scene.patchApp({ metadata: { labels: { [labels.strategy]: label } } });
    await reported(scene, await scene.deploy(image), 'Serving');
    await scene.until(() => expect(running(scene)).toEqual({ [image]: 2 }));
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

test('without routes, a failed push after one that was interrupted returns to the version that served', async () => {
  scene = await startRunScene({ routed: false });
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  // Without a check a version is proven only after a while.
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { healthCheck: { type: 'process' } } });
  await scene.deploy('good:2', { rev: '1' });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'good:2': 1 }));
  const seen = new Set<string>();
  scene.cluster.intercept = () => void seen.add(Object.keys(running(scene)).toSorted().join(' '));
  await reported(scene, await scene.deploy('crash:3', { rev: '2' }), 'Failed');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  expect(seen).not.toContain('crash:3 good:1 good:2');
});

test('0 and 1 again during a push of a version that crashes returns to the version before', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ deployed: 1 }));
  const id = await scene.deploy('silent:2');
  await scene.until(() => expect(scene.web()?.status?.rollout).toMatchObject({ id, phase: 'Starting' }));
  await scaled(scene, 0);
  await scene.until(() => expect([running(scene), scene.cluster.all(podType)]).toEqual([{}, []]));
  await reported(scene, id, 'Serving');
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 1 } });
  await reported(scene, id, 'Starting');
  await scene.until(() => expect(scene.cluster.all(podType)).toHaveLength(1));
  const { metadata, spec } = scene.cluster.all(podType)[0] ?? {};
  const crashing = { spec: { containers: [{ ...spec?.containers[0], image: 'crash:2' }] }, status: { containerStatuses: null } };
  await scene.cluster.mergePatch(podType, ns, metadata?.name ?? '', crashing);
  await reported(scene, id, 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(1));
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
});

test('a version that served is not judged again when the app is scaled to 0, and to 1 again', async () => {
  scene = await startRunScene();
  const id = await scene.deploy('good:1');
  await reported(scene, id, 'Serving');
  const phases = new Set<string | undefined>();
  scene.cluster.intercept = () => void phases.add(scene.web()?.status?.rollout?.phase);
  await scaled(scene, 0);
  await scene.until(() => expect(scene.cluster.all(podType)).toEqual([]));
  await scaled(scene, 1);
  expect([[...phases], running(scene)]).toEqual([['Serving'], { 'good:1': 1 }]);
});
