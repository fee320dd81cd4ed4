// Versions whose images expose different ports, behind a route that names none.

import { afterEach, expect, test } from 'vitest';
import { serviceType } from '../../../src/lib/api/core.ts';
import { backendsIn, httpRouteType } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { heldUntilRestart } from '../../../src/lib/api/held.ts';
import type { CFApp, CFBuild } from '../../../src/lib/api/types.generated.ts';
import { reported } from './deployment-scene.ts';
import { appGuid, createRoute, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

/** `route image port` of each Service, and of what each HTTPRoute says of it. */
function ports(): string[] {
  const workloads = scene.cluster.all(kinds.appWorkload);
  return scene.cluster.all(serviceType).flatMap(({ metadata, spec }) => {
    const generation = metadata.labels?.[labels.generation] ?? '';
    const image = workloads.find((one) => one.metadata.labels?.[labels.generation] === generation)?.spec.image;
    const route = metadata.labels?.[labels.routeGuid] ?? '';
    const named = backendsIn(scene.cluster.peek(httpRouteType, ns, route)).filter(({ name }) => name === metadata.name);
    const all = new Set([spec?.ports?.[0]?.port, spec?.ports?.[0]?.targetPort, ...named.map(({ port }) => port)]);
    return image === undefined ? [] : [...all].map((port) => `${route} ${image} ${String(port)}`);
  });
}

/** Notes what is said of the first version's port from now on. */
function watchFirst(): Set<string> {
  const seen = new Set<string>();
  scene.cluster.intercept = () => ports().forEach((text) => text.includes('good:1') && seen.add(text));
  return seen;
}

test('requests reach each version on the port of its own image while a canary waits', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const seen = watchFirst();
  await reported(scene, await scene.deploy('good:2', { ports: [3000], rollout: { strategy: 'canary' } }), 'Paused');
  await scene.until(() => expect(ports().toSorted()).toEqual(['route-1 good:1 8080', 'route-1 good:2 3000']));
  expect([...seen]).toEqual(['route-1 good:1 8080']);
});

test('the version before a failed one keeps its port, also when its build was deleted', async () => {
  scene = await startRunScene();
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const seen = watchFirst();
  await reported(scene, await scene.deploy('crash:2', { ports: [3000] }), 'Failed');
  await scene.until(() => expect(ports()).toContain('route-1 crash:2 3000'));
  await scene.cluster.delete(kinds.build, ns, 'build-1');
  await createRoute(scene.cluster, 'route-2', 'later');
  await scene.until(() => expect(ports()).toContain('route-2 good:1 8080'));
  expect([...seen].toSorted()).toEqual(['route-1 good:1 8080', 'route-2 good:1 8080']);
});

test('a droplet that waits for the next start has not moved the port, and a port that a route names holds for all versions', async () => {
  scene = await startRunScene();
  const destination = { guid: 'dest-0', appRef: { name: appGuid }, processType: 'web', port: 9000 };
  await createRoute(scene.cluster, 'route-0', 'early');
  await scene.cluster.mergePatch(kinds.route, ns, 'route-0', { spec: { destinations: [destination] } });
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const build = scene.cluster.peek(kinds.build, ns, 'build-1');
  await scene.cluster.create(kinds.build, { ...(build as CFBuild), metadata: { name: 'other', namespace: ns } });
  const droplet = { registry: { image: 'good:2' }, ports: [3000] };
  await scene.cluster.mergePatch(kinds.build, ns, 'other', { status: { state: 'STAGED', droplet } }, { subresource: 'status' });
  const marks = heldUntilRestart(scene.app() as CFApp);
  await scene.patchApp({ metadata: { annotations: marks }, spec: { currentDropletRef: { name: 'other' } } });
  const told = (): unknown => scene.cluster.peek(kinds.route, ns, 'route-1')?.status?.destinations?.[0]?.port;
  await scene.until(() => expect(told()).toBe(3000));
  expect(ports().toSorted()).toEqual(['route-0 good:1 9000', 'route-1 good:1 8080']);
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'restart', [annotations.appRev]: '1' } } });
  await reported(scene, 'restart', 'Serving');
  await scene.until(() => expect(ports()).toEqual(expect.arrayContaining(['route-0 good:2 9000', 'route-1 good:2 3000'])));
});
