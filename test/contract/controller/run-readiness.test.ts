// A new version that is ready only for a moment at first, as a kubelet may report it.

import { afterEach, expect, test } from 'vitest';
import { httpRouteType, mainBackends } from '../../../src/lib/api/gateway.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { reported, running } from './deployment-scene.ts';
import { readyPods } from './run-node.ts';
import { startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

/** Versions to which all requests go, although none of their instances is ready. */
function unanswered(): string[] {
  const [route] = scene.cluster.all(httpRouteType);
  const backends = route === undefined ? [] : mainBackends(route).filter(({ weight = 1 }) => weight > 0);
  const images = scene.cluster
    .all(kinds.appWorkload)
    .map(({ metadata, spec }) => [metadata.labels?.[labels.generation] ?? '', spec.image] as const);
  const named = images.filter(([generation]) => backends.some(({ name }) => name.endsWith(generation)));
  return named.every(([generation]) => readyPods(scene.cluster, generation) === 0) ? named.map(([, image]) => image) : [];
}

test('gets no requests before it stays ready, while the version before serves', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const seen = new Set<string>();
  scene.cluster.intercept = () => void unanswered().forEach((image) => seen.add(image));
  await reported(scene, await scene.deploy('shaky:2'), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'shaky:2': 1 }));
  expect([...seen]).toEqual([]);
});
