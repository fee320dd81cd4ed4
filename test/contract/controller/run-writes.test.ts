// What the controller writes while an app starts.

import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { statefulSetType } from '../../../src/lib/api/core.ts';
import { httpRouteType, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

test('an HTTPRoute is written only when something of it changes', async () => {
  scene = await startRunScene();
  const id = await scene.deploy('good:1');
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  const forms = scene.cluster.writes
    .filter(({ kind, subresource }) => kind === httpRouteType.kind && subresource === undefined)
    .map(({ body }) => {
      const { metadata, spec } = body as HttpRoute;
      return JSON.stringify([metadata.annotations ?? {}, spec]);
    });
  expect(forms.length).toBeGreaterThan(1);
  expect(forms.filter((form, index) => form === forms[index - 1])).toEqual([]);
});

test('a set that is made while the number of instances changes costs no refused write', async () => {
  scene = await startRunScene();
  const { cluster } = scene;
  let asked = 0;
  cluster.intercept = async (verb, { kind }) => {
    if (verb === 'patch' && kind === kinds.appWorkload.kind) asked += 1;
    if (verb !== 'create' || kind !== statefulSetType.kind) return;
    await scene.until(() => expect(cluster.all(kinds.appWorkload).map(({ spec }) => spec.instances)).toEqual([1]));
    // The controller's watch hears of it too.
    await setTimeout(50);
  };
  await scene.deploy('good:1');
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ phase: 'Serving' }));
  expect(asked).toBe(cluster.writes.filter(({ verb, kind }) => verb === 'patch' && kind === kinds.appWorkload.kind).length);
});
