// A change of the app that leads back to a version which is still there: the controller with a simulated node and gateway.

import { afterEach, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { reported, running } from './deployment-scene.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

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

test('a restart right after a followed Secret has changed gives the new version the new files too', async () => {
  scene = await startRunScene();
  const data = (password: string) => ({ data: { password: Buffer.from(password).toString('base64') } });
  const version = { [annotations.instanceVersion]: '1/1' };
  const ready = {
    type: 'Ready',
    observedGeneration: 1,
    status: 'True',
    reason: 'Ready',
    message: '',
    lastTransitionTime: '2030-01-01T00:00:00Z',
  };
  await scene.cluster.create(secretType, { metadata: { name: 'operator', namespace: ns }, ...data('old') });
  await scene.cluster.create(secretType, {
    metadata: { name: 'b-1', namespace: ns },
    type: 'servicebinding.io/user-provided',
    ...data('old'),
  });
  await scene.cluster.create(kinds.serviceInstance, {
    metadata: { name: 'i-1', namespace: ns, annotations: { [annotations.fromSecret]: 'true' } },
    spec: { displayName: 'db', type: 'user-provided', secretName: 'operator', planGuid: '' },
  });
  const { metadata } = await scene.cluster.create(kinds.serviceBinding, {
    metadata: { name: 'b-1', namespace: ns, annotations: version },
    spec: { type: 'app', appRef: { name: appGuid }, service: { kind: 'CFServiceInstance', name: 'i-1' }, parameters: { name: '' } },
  });
  const status = { conditions: [ready], envSecretRef: { name: 'operator' }, mountSecretRef: { name: 'b-1' } };
  await scene.cluster.mergePatch(kinds.serviceBinding, ns, 'b-1', { metadata: { uid: metadata.uid }, status }, { subresource: 'status' });
  await reported(scene, await scene.deploy('good:1'), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:1': 1 }));
  await scene.cluster.mergePatch(secretType, ns, 'operator', data('new'));
  // This scene has no reconciler of bindings: in an installation with many of them it is as late.
  await reported(scene, await scene.deploy('good:2', { rev: '1' }), 'Serving');
  await scene.until(() => expect(running(scene)).toEqual({ 'good:2': 1 }));
  const [{ metadata: kept } = { metadata: { name: '' } }] = scene.cluster.all(kinds.appWorkload).filter(({ spec }) => spec.instances > 0);
  const files = scene.cluster.peek(secretType, ns, `${kept.name}-b-0`)?.data ?? {};
  const env = scene.cluster.peek(secretType, ns, `${kept.name}-env`)?.data ?? {};
  expect(Buffer.from(env['VCAP_SERVICES'] ?? '', 'base64').toString()).toContain('"password":"new"');
  expect(files).toMatchObject(data('new').data);
});
