// Changes that something hindered until they counted as failed: they go on when it ends, whatever versions the status lists from before.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { statefulSetType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { heldUntilRestart } from '../../../src/lib/api/held.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { CFApp, CFBuild } from '../../../src/lib/api/types.generated.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { cancel, processOf, reported, running, scaled, wanted } from './deployment-scene.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
/** Added to the controller's clock. */
let passedMs = 0;
afterEach(async () => {
  passedMs = 0;
  await scene.stop();
});

const startScene = async (): Promise<void> => void (scene = await startRunScene({ now: () => Date.now() + passedMs }));

const patchWeb = async (patch: Record<string, unknown>): Promise<void> =>
  void (await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', patch));

/** A binding that never becomes ready. */
const bind = async (): Promise<void> =>
  void (await scene.cluster.create(kinds.serviceBinding, {
    metadata: { name: 'b-1', namespace: ns },
    spec: { type: 'app', appRef: { name: appGuid }, service: { kind: 'CFServiceInstance', name: 'i-1' }, parameters: { name: '' } },
  }));
const unbind = (): Promise<unknown> => scene.cluster.delete(kinds.serviceBinding, ns, 'b-1');

/** Waits until the change has failed by what hinders it. */
async function failsHindered(id: string, reason: string): Promise<void> {
  await reported(scene, id, 'Pending', { reason });
  passedMs += 20_000;
  await reported(scene, id, 'Failed', { reason });
}

test('a version that was starting before something hindered its change goes on', async () => {
  await startScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('silent:1', { rev: '1' });
  await reported(scene, id, 'Starting');
  await bind();
  // Another version, which is hindered; afterwards the one that was starting is wanted again.
  await patchWeb({ spec: { command: 'other' } });
  await failsHindered(id, 'BindingNotReady');
  await patchWeb({ spec: { command: null } });
  await reported(scene, id, 'Starting');
  expect(running(scene)).toEqual({ 'good:1': 1, 'silent:1': 1 });
  const starting = scene.cluster.all(podType).find(({ spec }) => spec?.containers[0]?.image === 'silent:1');
  const containers = starting?.spec?.containers.map((container) => ({ ...container, image: 'good:2' }));
  await scene.cluster.mergePatch(podType, ns, starting?.metadata.name ?? '', { spec: { containers } });
  await reported(scene, id, 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'silent:1': 1 }));
});

test('the version that serves is scaled while a change is hindered, and its instances are told as they are', async () => {
  await startScene();
  await reported(scene, await scene.deploy('lame:1'), 'Serving');
  await bind();
  await failsHindered(await scene.deploy('good:2', { rev: '1' }), 'BindingNotReady');
  await scaled(scene, 2);
  await patchWeb({ spec: { desiredInstances: 3 } });
  await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 2, instanceCounts: { running: 2, crashed: 1 } }));
  expect(running(scene)).toEqual({ 'lame:1': 3 });
  await scaled(scene, 1);
  await unbind();
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 1 }));
});

test('a canceled change is over, also when a process that is new with it was hindered', async () => {
  await startScene();
  const processTypes = ['web', 'worker'];
  await reported(scene, await scene.deploy('good:1', { processTypes }), 'Serving');
  await bind();
  const id = await scene.deploy('good:2', { processTypes });
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout).toMatchObject({ id, phase: 'Pending' }));
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true });
  expect(running(scene)).toEqual({ 'good:1': 1 });
});

test('a setting that waits for the next start does not end a change that is hindered', async () => {
  await startScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await bind();
  const id = await scene.deploy('good:2', { rev: '1' });
  await failsHindered(id, 'BindingNotReady');
  const healthCheck = { type: 'http', data: { httpEndpoint: '/health' } };
  await patchWeb({ metadata: { annotations: heldUntilRestart(scene.app() as CFApp) }, spec: { healthCheck } });
  await sleep(300);
  await reported(scene, id, 'Failed', { reason: 'BindingNotReady' });
  await unbind();
  await reported(scene, id, 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 1 }));
});

test('a version that failed in an earlier change is tried once more by a hindered one, and fails by itself', async () => {
  await startScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await reported(scene, await scene.deploy('crash:1'), 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'again' } }, spec: { currentDropletRef: { name: 'late' } } });
  await failsHindered('again', 'CannotResolveCurrentDropletRef');
  const build = scene.cluster.peek(kinds.build, ns, 'build-2') as CFBuild;
  await scene.cluster.create(kinds.build, { ...build, metadata: { name: 'late', namespace: ns } });
  await scene.cluster.mergePatch(kinds.build, ns, 'late', { status: build.status }, { subresource: 'status' });
  await reported(scene, 'again', 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
});

test('a version that failed is not started again after its change was hindered for a moment', async () => {
  await startScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const id = await scene.deploy('crash:1', { rev: '1' });
  await reported(scene, id, 'Failed', { reason: 'Crashed' });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  await bind();
  await patchWeb({ spec: { command: 'other' } });
  await reported(scene, id, 'Pending', { reason: 'BindingNotReady' });
  const seen = new Set<string>();
  scene.cluster.intercept = () => void seen.add(Object.keys(running(scene)).join(' '));
  await patchWeb({ spec: { command: null } });
  // What hindered it is over, and nothing says so any more.
  await reported(scene, id, 'Failed', { reason: 'Unknown', message: 'This version failed before in this change.' });
  await scene.until(() => expect(scene.web()?.status?.conditions?.[0]?.observedGeneration).toBe(scene.web()?.metadata.generation));
  expect([...seen]).toEqual(['good:1']);
});

const used = 'exceeded quota: space, requested: count/x=1, used: 5, limited: 5';
/** The quota leaves no room for another AppWorkload. */
function refuseWorkloads(): void {
  scene.cluster.intercept = (verb, type, name) => {
    if (verb !== 'create' || type !== kinds.appWorkload) return;
    throw apiError(403, 'Forbidden', `appworkloads "${name}" is forbidden: ${used}`, name);
  };
}

test.each(['for a moment', 'until it failed'])(
  'a version that failed does not keep the text of a quota that hindered its change %s',
  async (how) => {
    await startScene();
    await reported(scene, await scene.deploy('good:1'), 'Serving');
    const id = await scene.deploy('crash:1', { rev: '1' });
    await reported(scene, id, 'Failed', { reason: 'Crashed' });
    await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
    refuseWorkloads();
    await patchWeb({ spec: { command: 'other' } });
    const message = `The quota of the space is used up: ${used}`;
    await reported(scene, id, 'Pending', { reason: 'QuotaExceeded', message });
    if (how === 'until it failed') {
      passedMs += 20_000;
      await reported(scene, id, 'Failed', { reason: 'QuotaExceeded', message });
    }
    await patchWeb({ spec: { command: null } });
    await reported(scene, id, 'Failed', { reason: 'Unknown', message: 'This version failed before in this change.' });
  },
);

test.each([
  ['a policy', 'admission webhook "sets.example.org" denied the request: no sets', { cause: 'admission' }],
  [
    'a quota',
    'exceeded quota: sets, requested: count/statefulsets.apps=1, used: 5, limited: 5',
    { reason: 'QuotaExceeded', cause: 'quota' },
  ],
])('a version whose StatefulSet %s refuses fails with what was said, and the version before serves', async (_who, said, expected) => {
  await startScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  scene.cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type === statefulSetType)
      throw apiError(403, 'Forbidden', `statefulsets.apps "${name}" is forbidden: ${said}`, name);
  };
  for (const strategy of ['rolling', 'recreate'] as const) {
    const id = await scene.deploy('good:2', { rev: strategy, rollout: { strategy } });
    await reported(scene, id, 'Pending');
    passedMs += 9_000;
    await reported(scene, id, 'Failed', { ...expected, message: expect.stringContaining(said) as unknown });
    await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  }
  scene.cluster.intercept = () => undefined;
  await reported(scene, await scene.deploy('good:2', { rev: 'later' }), 'Serving');
});
