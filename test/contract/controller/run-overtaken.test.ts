// A push that comes before the one before it is done: what the app returns to has served with all its instances.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { cancel, processOf, reported, running, scaled, wanted } from './deployment-scene.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const current = () => scene.web()?.status?.rollout?.generations?.find(({ state }) => state === 'Current');

/** Version 1 serves with 3 instances; of version 2 two have answered, and the third is not started. */
async function partlyReplaced(): Promise<void> {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scaled(scene, 3);
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ deployed: 1 }));
  scene.freezeGateway(true);
  await scene.deploy('good:2');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 3, 'good:2': 2 }));
  await scene.until(() => expect(current()).toMatchObject({ instances: 2, ready: 2, verified: true }));
}

/** All pods of version 2 crash, and version 1 serves in its place. */
async function crashed(): Promise<void> {
  const at = { lastTransitionTime: new Date().toISOString() };
  for (const { metadata, spec } of scene.cluster.all(podType).filter((pod) => pod.spec?.containers[0]?.image === 'good:2')) {
    const name = metadata.name ?? '';
    await scene.cluster.mergePatch(podType, ns, name, { spec: { containers: [{ ...spec?.containers[0], image: 'crash:2' }] } });
    const conditions = [
      { type: 'PodScheduled', status: 'True', ...at },
      { type: 'Ready', status: 'False', ...at },
    ];
    await scene.cluster.mergePatch(podType, ns, name, { status: { conditions } }, { subresource: 'status' });
  }
  await scene.until(() => expect(scene.app()?.status?.deployment?.phase).toBe('Failed'));
  scene.freezeGateway(false);
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 3 }));
}

test('a version that is still on its way is not what a canceled push returns to', async () => {
  await partlyReplaced();
  const id = await scene.deploy('silent:3');
  scene.freezeGateway(false);
  await scene.until(() => expect(running(scene)['silent:3']).toBe(1));
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 3 }));
});

test('a version that crashed after its first answer is not what a canceled push returns to', async () => {
  await partlyReplaced();
  await crashed();
  const id = await scene.deploy('silent:3');
  await scene.until(() => expect(running(scene)['silent:3']).toBe(1));
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true });
  expect(running(scene)).toEqual({ 'good:1': 3 });
});

test('a version that crashed after its first answer is not started after a stop, when the next one crashes', async () => {
  await partlyReplaced();
  await crashed();
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'stop' } }, spec: { desiredState: 'STOPPED' } });
  await reported(scene, 'stop', 'Stopped');
  await reported(scene, await scene.deploy('crash:3'), 'Failed');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 3 }));
});

/** Keeps the instance of version 2 with that index from becoming ready. */
function holdBack(type: string, index: number): void {
  scene.cluster.intercept = (verb, kind, name = '') => {
    const pod =
      verb === 'patch' && kind === podType && name.endsWith(`-${String(index)}`) ? scene.cluster.peek(podType, ns, name) : undefined;
    const isHeld = pod?.spec?.containers[0]?.image === 'good:2' && pod.metadata.labels?.[labels.processType] === type;
    if (isHeld) throw new Error('the instance is not ready yet');
  };
}

/** Notes how many instances a process has, from the present on. */
function noted(type: string): Set<string> {
  const seen = new Set<string>();
  const before = scene.cluster.intercept;
  scene.cluster.intercept = (...call) => {
    seen.add(JSON.stringify(running(scene, type)));
    return before?.(...call);
  };
  return seen;
}

const canary = (): Promise<void> =>
  scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'next' } }, spec: { rollout: { id: 'next', strategy: 'canary' } } });

/** Version 1 of web and a worker serves. */
async function withWorker(type: string, instances: number): Promise<void> {
  scene = await startRunScene();
  const domainRef = { name: 'domain-1', namespace: 'cf' };
  const destinations = [{ guid: 'dest-9', appRef: { name: appGuid }, processType: 'routed' }];
  await scene.cluster.create(kinds.route, { metadata: { name: 'route-2', namespace: ns }, spec: { host: 'api', domainRef, destinations } });
  await reported(scene, await scene.deploy('good:1', { processTypes: ['web', 'worker', 'routed'] }), 'Serving');
  await wanted(scene, type, { desiredInstances: instances });
  await scene.until(() => expect(processOf(scene, type)?.status).toMatchObject({ actualInstances: instances }));
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ deployed: 1 }));
}

test.each<[string, number, Record<string, number>]>([
  ['web', 4, { 'good:1': 1, 'good:2': 4 }],
  ['worker', 2, { 'good:2': 2 }],
  ['routed', 3, { 'good:1': 1, 'good:2': 3 }],
])('a canary that overtakes a push keeps the instances with which that one has come so far: %s', async (type, instances, partly) => {
  await withWorker(type, instances);
  holdBack(type, instances - 1);
  await scene.deploy('good:2', { processTypes: ['web', 'worker', 'routed'] });
  await scene.until(() => expect(running(scene, type)).toEqual(partly));
  await scene.until(() => expect(processOf(scene, type)?.status?.rollout).toMatchObject({ phase: 'Starting' }));
  if (type !== 'web') {
    await scene.until(() => expect(scene.web()?.status?.rollout?.phase).toBe('Serving'));
    await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { memoryMB: 333 } });
  }
  const seen = noted(type);
  await canary();
  await scene.until(() => expect(processOf(scene, type)?.status?.rollout?.id).toBe('next'));
  if (type !== 'web') await scene.until(() => expect(scene.web()?.status?.rollout?.phase).toBe('Paused'));
  await sleep(500);
  expect([...seen]).toEqual([JSON.stringify(partly)]);
});
