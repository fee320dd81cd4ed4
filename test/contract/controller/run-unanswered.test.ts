// An app that runs and answers no request: its health check decides whether that is a failure. A gateway that cannot be asked is not a failure.

import { afterEach, expect, test } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { processGuid } from '../../../src/lib/api/names.ts';
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
