// A push while no instance of the version before is ready: one that was a moment ago is kept, and one that crashes is not.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { reported, running } from './deployment-scene.ts';
import { upsetBy } from './run-node.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

/** Makes all pods of the app so, and waits until the controller has seen it. */
async function upset(how: 'unready' | 'crashing' | null): Promise<void> {
  for (const { metadata } of scene.cluster.all(podType))
    await scene.cluster.mergePatch(podType, ns, metadata.name ?? '', { metadata: { annotations: { [upsetBy]: how } } });
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(how === null ? 1 : 0));
}

/** The numbers of instances that a version has had, as far as the writes show. */
function watched(image: string): { instances: Set<number>; serving: Set<string> } {
  const seen = { instances: new Set<number>(), serving: new Set<string>() };
  scene.cluster.intercept = () => {
    const workload = scene.cluster.all(kinds.appWorkload).find(({ spec }) => spec.image === image);
    if (workload !== undefined) seen.instances.add(workload.spec.instances);
    seen.serving.add(scene.web()?.status?.serving ?? '');
  };
  return seen;
}

test('an old version that is not ready for a second is kept, and gets its requests', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const before = scene.web()?.status?.serving ?? '';
  const seen = watched('good:1');
  await upset('unready');
  await scene.deploy('silent:2');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'silent:2': 1 }));
  await sleep(1_000);
  await upset(null);
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'silent:2': 1 }));
  expect([...seen.instances]).toEqual([1]);
  expect([...seen.serving]).toEqual([before]);
  await reported(scene, await scene.deploy('good:3'), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:3': 1 }));
});

test('an old version that is not ready is replaced by a new one that serves', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await upset('unready');
  await reported(scene, await scene.deploy('good:2'), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 1 }));
});

test('an old version that has not been ready for 20 s is given up', async () => {
  let ahead = 0;
  scene = await startRunScene({ now: () => Date.now() + ahead });
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await upset('unready');
  await scene.deploy('silent:2');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'silent:2': 1 }));
  ahead = 21_000;
  await scene.until(() => expect(running(scene)).toEqual({ 'silent:2': 1 }));
});

test('an old version that crashes again and again is stopped at once', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await upset('crashing');
  const from = Date.now();
  await scene.deploy('silent:2');
  await scene.until(() => expect(running(scene)).toEqual({ 'silent:2': 1 }));
  expect(Date.now() - from).toBeLessThan(10_000);
});

test('a restart right after a failed recreate keeps the version that starts again', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  scene.holdStarts(true);
  await reported(scene, await scene.deploy('crash:2', { rollout: { strategy: 'recreate' } }), 'Failed');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  await scene.until(() =>
    expect(scene.cluster.all(podType).map(({ status }) => status?.containerStatuses?.[0]?.image)).toEqual(['good:1']),
  );
  const seen = watched('good:1');
  await scene.deploy('silent:3');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'silent:3': 1 }));
  expect(scene.web()?.status?.actualInstances).toBe(0);
  scene.holdStarts(false);
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(1));
  expect([...seen.instances]).toEqual([1]);
  await reported(scene, await scene.deploy('good:4'), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:4': 1 }));
});

test('a version that starts again makes room for one that a quota has none for beside it', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  scene.holdStarts(true);
  await reported(scene, await scene.deploy('crash:2', { rollout: { strategy: 'recreate' } }), 'Failed');
  await scene.until(() =>
    expect(scene.cluster.all(podType).map(({ status }) => status?.containerStatuses?.[0]?.image)).toEqual(['good:1']),
  );
  scene.limitPods(1);
  await scene.deploy('silent:3');
  await scene.until(() =>
    expect(scene.cluster.all(podType).map(({ status }) => status?.containerStatuses?.[0]?.image)).toEqual(['silent:3']),
  );
  expect(scene.app()?.status?.deployment?.phase).toBe('Starting');
});
