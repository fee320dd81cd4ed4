// What tests of an app's changes ask of their scene.

import { expect } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFProcess } from '../../../src/lib/api/types.generated.ts';
import { ns, type RunScene } from './run-scene.ts';

/** Waits until the app reports this of a change. */
export const reported = (scene: RunScene, id: string, phase: string, more: object = {}): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase, ...more }));

/** Requested instances by image; those without any are left out. */
export function running(scene: RunScene, type = 'web'): Record<string, number> {
  const some = scene.cluster.all(kinds.appWorkload).filter(({ spec }) => spec.processType === type && spec.instances > 0);
  return Object.fromEntries(some.map(({ spec }) => [spec.image, spec.instances]));
}

/** Gives web so many instances, and waits for them. */
export async function scaled(scene: RunScene, instances: number): Promise<void> {
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: instances } });
  await scene.until(() => expect(scene.web()?.status?.actualInstances).toBe(instances));
}

/** Cancels the app's last change, as kf does. @param droplet the one from before */
export const cancel = (scene: RunScene, droplet: string): Promise<void> =>
  scene.patchApp({ spec: { rollout: { id: scene.app()?.metadata.annotations?.[annotations.deployId], canceled: true }, currentDropletRef: { name: droplet } } }); // prettier-ignore

export const processOf = (scene: RunScene, type: string): Stored<CFProcess> | undefined =>
  scene.cluster.all(kinds.process).find(({ spec }) => spec.processType === type);

/** Gives a process other than web, which has none by itself, one instance. */
export async function wanted(scene: RunScene, type: string, more: object = {}): Promise<void> {
  await scene.until(() => expect(processOf(scene, type)).toBeDefined());
  await scene.cluster.mergePatch(kinds.process, ns, processOf(scene, type)?.metadata.name ?? '', {
    spec: { desiredInstances: 1, ...more },
  });
}

/** Weights of web by image. */
export function weights(scene: RunScene): Record<string, number> {
  const parts = (scene.web()?.status?.serving ?? '').split(',').map((part) => part.split('='));
  const imageOf = (hash = '') =>
    scene.cluster.all(kinds.appWorkload).find(({ metadata }) => metadata.name?.endsWith(`-${hash}`) === true)?.spec.image;
  return Object.fromEntries(parts.map(([hash, weight]) => [imageOf(hash) ?? '', Number(weight)]));
}

/** Lets a paused canary go on to this step, as kf does. */
export const permit = (scene: RunScene, step: number): Promise<void> => scene.patchApp({ spec: { rollout: { step } } });
