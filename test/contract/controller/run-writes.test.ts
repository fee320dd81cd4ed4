// What the controller writes while an app starts.

import { afterEach, expect, test } from 'vitest';
import { httpRouteType, type HttpRoute } from '../../../src/lib/api/gateway.ts';
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
