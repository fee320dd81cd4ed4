// What people did directly while no controller ran, and the controller that returns.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { statefulSetType } from '../../../src/lib/api/core.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
beforeEach(async () => {
  scene = await startRunScene();
});
afterEach(async () => scene.stop());

const phaseOf = (id: string, phase: string) => (): void => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase });

/** Changes the app and its set as the CLI does when no controller answers, and starts a controller whose process reconciler is late. */
async function whileAway(id: string, desiredState: 'STARTED' | 'STOPPED', replicas: number): Promise<void> {
  await scene.stopController();
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: id } }, spec: { desiredState } });
  const set = scene.cluster.all(statefulSetType)[0]?.metadata.name ?? '';
  await scene.cluster.mergePatch(statefulSetType, ns, set, { spec: { replicas } });
  await scene.until(() => expect(scene.cluster.all(podType)).toHaveLength(replicas));
  scene.cluster.intercept = async (verb, { kind }) => {
    if (kind === 'AppWorkload' && verb !== 'get') await sleep(300);
  };
  await scene.restartController();
}

/** The numbers of pods seen until `phase` is reached. */
async function podsUntil(reached: () => void): Promise<number[]> {
  const seen = new Set<number>();
  const timer = setInterval(() => seen.add(scene.cluster.all(podType).length), 1);
  await scene.until(reached);
  clearInterval(timer);
  return [...seen];
}

test('an app that was stopped directly stays stopped, and one that was started directly is never without an instance', async () => {
  await scene.until(phaseOf(await scene.deploy('good:1'), 'Serving'));
  await whileAway('stop', 'STOPPED', 0);
  expect(await podsUntil(phaseOf('stop', 'Stopped'))).toEqual([0]);
  scene.cluster.intercept = () => undefined;
  await whileAway('start', 'STARTED', 1);
  expect(await podsUntil(phaseOf('start', 'Serving'))).not.toContain(0);
});
