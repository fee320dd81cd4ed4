// A change of the app that leads back to a version which is still there: the controller with a simulated node and gateway.

import { afterEach, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { reported, running } from './deployment-scene.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

/** The variable COLOUR of each version that exists. */
const colours = (): string[] =>
  scene.cluster
    .all(secretType)
    .filter(({ immutable, metadata }) => immutable === true && metadata.ownerReferences?.[0]?.kind === 'AppWorkload')
    .map(({ data }) => Buffer.from(data?.['COLOUR'] ?? '', 'base64').toString());

const uids = (): (string | undefined)[] =>
  scene.cluster
    .all(kinds.appWorkload)
    .filter(({ spec }) => spec.instances > 0)
    .map(({ metadata }) => metadata.uid);

/** good:1 serves in place of a version that failed. */
async function afterFailure(): Promise<void> {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await reported(scene, await scene.deploy('crash:2'), 'Failed');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
}

test('it has the variables of now, and not those that it had before', async () => {
  await afterFailure();
  await scene.cluster.mergePatch(secretType, ns, 'env', { data: { COLOUR: Buffer.from('blue').toString('base64') } });
  const [before] = uids();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scene.until(() => expect([running(scene), colours()]).toEqual([{ 'good:1': 1 }, ['blue']]));
  expect(uids()).not.toEqual([before]);
});

test('it goes on as it is when nothing else has changed', async () => {
  await afterFailure();
  const before = uids();
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'back' } }, spec: { currentDropletRef: { name: 'build-1' } } });
  await reported(scene, 'back', 'Serving');
  expect([running(scene), uids(), colours()]).toEqual([{ 'good:1': 1 }, before, ['red']]);
});
