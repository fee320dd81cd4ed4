// An app that runs and answers no request: its health check decides whether that is a failure. A gateway that cannot be asked is not a failure.

import { afterEach, expect, test } from 'vitest';
import { serviceType } from '../../../src/lib/api/core.ts';
import { mainBackends, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { processGuid } from '../../../src/lib/api/names.ts';
import { generationHeader } from '../../../src/templates/http-route.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { reported, running, weights } from './deployment-scene.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';
import { settled } from './settled.ts';

let scene: RunScene;
afterEach(async () => scene.stop());

const deployment = () => scene.app()?.status?.deployment;

async function sceneWith(type: 'process' | 'port'): Promise<void> {
  scene = await startRunScene();
  const spec = { appRef: { name: appGuid }, processType: 'web', memoryMB: 1, diskQuotaMB: 1, desiredInstances: 1 };
  const healthCheck = { type, data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } };
  await scene.cluster.create(kinds.process, {
    metadata: { name: processGuid(appGuid, 'web'), namespace: ns },
    spec: { ...spec, healthCheck },
  });
}

test('an app that answers no request serves if its check is "process", as in cf', async () => {
  await sceneWith('process');
  const id = await scene.deploy('mute:1');
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Serving' }));
});

test('an app that answers no request is waited for if its check is its port', async () => {
  await sceneWith('port');
  const id = await scene.deploy('mute:1');
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Starting' }));
  await scene.until(() => expect(deployment()?.message).toContain('does not reach the new version of shop.apps.example yet (502)'));
});

test('a version that answers 503 while the one before answers 200 has failed after a while, and never gets a request of a user', async () => {
  let passedMs = 0;
  scene = await startRunScene({ now: () => Date.now() + passedMs });
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  const generations = () => scene.web()?.status?.rollout?.generations ?? [];
  const before = generations()[0]?.hash ?? '';
  const id = await scene.deploy('down:2');
  await reported(scene, id, 'Starting', { message: 'The gateway does not reach the new version of shop.apps.example yet (503).' });
  const next = generations().find(({ hash }) => hash !== before)?.hash ?? '';
  const answer = async (headers = {}) => (await fetch(scene.gateway, { headers })).status;
  expect([await answer(), await answer({ [generationHeader]: before }), await answer({ [generationHeader]: next })]).toEqual([
    200, 200, 503,
  ]);
  passedMs = 16_000;
  const message = 'Requests to shop.apps.example/ are answered with 503.';
  await reported(scene, id, 'Failed', { reason: 'NotServing', cause: 'not-serving', message });
  await scene.until(() =>
    expect(generations()).toMatchObject([
      { hash: before, state: 'Old', instances: 1 },
      { hash: next, state: 'Failed', instances: 0 },
    ]),
  );
  await settled(scene.cluster);
  expect([running(scene), weights(scene), await answer()]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }, 200]);
  const written = scene.cluster.writes.filter(({ kind }) => kind === 'HTTPRoute').map(({ body }) => body as HttpRoute);
  const carriers = new Set(written.flatMap((route) => mainBackends(route)).map(({ name }) => name));
  expect([...carriers]).toEqual([expect.stringContaining(before)]);
});

test('the note that the gateway could not be asked stays while the version serves, also with the next controller', async () => {
  scene = await startRunScene({ unreachableGateway: true });
  const id = await scene.deploy('good:1');
  const note = {
    id,
    phase: 'Serving',
    reason: 'RouteNotVerified',
    message: 'The gateway could not be asked from inside the cluster; an instance answered.',
  };
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Serving' }));
  await settled(scene.cluster);
  expect(deployment()).toMatchObject(note);
  await scene.restartController();
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 2 }));
  await settled(scene.cluster);
  expect(deployment()).toMatchObject(note);
});

test('a version that one of several routes cannot lead to has failed after a while, with the reason of the route', async () => {
  let passedMs = 0;
  scene = await startRunScene({ now: () => Date.now() + passedMs });
  await scene.cluster.create(kinds.route, {
    metadata: { name: 'route-2', namespace: ns },
    spec: {
      host: 'other',
      domainRef: { name: 'domain-1', namespace: 'cf' },
      destinations: [{ guid: 'dest-2', appRef: { name: appGuid }, processType: 'web' }],
    },
  });
  const first = await scene.deploy('good:1');
  await scene.until(() => expect(deployment()).toMatchObject({ id: first, phase: 'Serving' }));
  const refusal = 'exceeded quota: kf-limits, requested: count/services=1, used: count/services=600, limited: count/services=600';
  scene.cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type === serviceType && name.startsWith('s-dest-2'))
      throw apiError(403, 'Forbidden', `services "${name}" is forbidden: ${refusal}`, name);
  };
  const id = await scene.deploy('good:2');
  const message = expect.stringMatching(/^The route other\.apps\.example is not ready: .*would exceed the quota 'kf-limits'/) as string;
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Starting', message }));
  passedMs = 16_000;
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Failed', reason: 'QuotaExceeded', cause: 'quota', message }));
  await scene.until(() =>
    expect(scene.web()?.status?.rollout?.generations).toMatchObject([
      { state: 'Old', instances: 1 },
      { state: 'Failed', instances: 0 },
    ]),
  );
});

test('a refused route that becomes ready in time does not stop the change', async () => {
  scene = await startRunScene();
  const first = await scene.deploy('good:1');
  await scene.until(() => expect(deployment()).toMatchObject({ id: first, phase: 'Serving' }));
  scene.cluster.intercept = (verb, type, name) => {
    if (verb === 'create' && type === serviceType) throw apiError(403, 'Forbidden', 'exceeded quota: kf-limits', name);
  };
  const id = await scene.deploy('good:2');
  const message = expect.stringMatching(/^The route shop\.apps\.example is not ready: /) as string;
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Starting', message }));
  scene.cluster.intercept = () => undefined;
  await scene.until(() => expect(deployment()).toMatchObject({ id, phase: 'Serving' }));
});
