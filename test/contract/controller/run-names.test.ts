// Apps that have no droplet yet, and the name of another one.

import { afterEach, expect, test } from 'vitest';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const draft = (): CFApp | undefined => scene.cluster.peek(kinds.app, ns, 'draft');
const claimed = (): string | undefined => findCondition(draft() ?? ({} as CFApp), 'Claimed')?.status;
const annotate = (value: string): Promise<unknown> =>
  scene.cluster.mergePatch(kinds.app, ns, 'draft', { metadata: { annotations: { note: value } } });

/** As `kf push --no-start` makes it. */
async function makeApp(displayName: string): Promise<void> {
  await scene.cluster.create(kinds.app, {
    metadata: { name: 'draft', namespace: ns, annotations: { [annotations.pushId]: 'push-1' } },
    spec: { displayName, desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  });
}

test('an app that was never built and is renamed to a taken name stays', async () => {
  let later = 0;
  scene = await startRunScene({ now: () => Date.now() + later });
  await makeApp('draft');
  await scene.until(() => expect(claimed()).toBe('True'));
  later = 60_000;
  await scene.cluster.mergePatch(kinds.app, ns, 'draft', { spec: { displayName: 'shop' } });
  await scene.until(() => expect(claimed()).toBe('False'));
  await scene.restartController();
  await scene.cluster.mergePatch(kinds.app, ns, 'draft', { spec: { displayName: 'Shop' } });
  await scene.until(() => expect(draft()?.status?.observedGeneration).toBe(draft()?.metadata.generation));
  expect(claimed()).toBe('False');
  await scene.cluster.mergePatch(kinds.app, ns, 'draft', { spec: { displayName: 'other' } });
  await scene.until(() => expect(claimed()).toBe('True'));
});

test('an app of a first push that never got its name is deleted after a while', async () => {
  let later = 0;
  scene = await startRunScene({ now: () => Date.now() + later });
  await scene.until(() => expect(findCondition(scene.app() ?? ({} as CFApp), 'Claimed')?.status).toBe('True'));
  await makeApp('shop');
  await scene.until(() => expect(claimed()).toBe('False'));
  later = 60_000;
  await annotate('of somebody');
  await scene.until(() => expect(draft()).toBeUndefined());
});
