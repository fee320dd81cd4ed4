// An app of whose routes the gateway turns one down: changes end, and the other routes have their requests.

import { afterEach, expect, test } from 'vitest';
import { httpRouteType } from '../../../src/lib/api/gateway.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import { processOf, reported, running, wanted } from './deployment-scene.ts';
import { createRoute, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
/** Milliseconds by which the controller's clock is ahead. */
let ahead = 0;
afterEach(() => scene.stop());

const processTypes = ['web', 'worker'];

/** Web and a worker serve by their first version, and the gateway has turned down a second route of web. */
async function servingWithRefusedRoute(): Promise<void> {
  ahead = 0;
  scene = await startRunScene({ refusedRoutes: new Set(['route-2']), now: () => Date.now() + ahead });
  await reported(scene, await scene.deploy('good:1', { processTypes }), 'Serving');
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  await createRoute(scene.cluster, 'route-2', 'other');
  const statusOf = (name: string) => scene.cluster.peek(httpRouteType, ns, name)?.status?.parents?.[0]?.conditions?.[0]?.status;
  await scene.until(() => expect([statusOf('route-1'), statusOf('route-2')]).toEqual(['True', 'False']));
}

test('a version that fails for the refused route leaves nothing behind, and the app runs in one version', async () => {
  await servingWithRefusedRoute();
  const id = await scene.deploy('good:2', { processTypes });
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1, 'good:2': 1 }));
  ahead = 20_000;
  await reported(scene, id, 'Failed', { cause: 'route-not-programmed' });
  const before = { 'good:1': 1 };
  await scene.until(() => expect([running(scene), running(scene, 'worker')]).toEqual([before, before]));
});

test('a change that does not touch web ends', async () => {
  await servingWithRefusedRoute();
  await wanted(scene, 'worker', { memoryMB: 17 });
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'second' } } });
  await reported(scene, 'second', 'Serving');
});
