import { afterEach, expect, test } from 'vitest';
import { podDisruptionBudgetType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const serving = async (id: string): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));

test('one budget has the instances of all versions of a process, as long as it wants any behind a route', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const web = scene.web()?.metadata.name ?? '';
  const budget = () => scene.cluster.peek(podDisruptionBudgetType, ns, web);
  // A drain of the node waits until the only instance runs elsewhere (decision 87).
  expect(budget()?.spec).toMatchObject({ minAvailable: '50%', unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  const scale = (instances: number) => scene.cluster.mergePatch(kinds.process, ns, web, { spec: { desiredInstances: instances } });
  await scale(3);
  await scene.until(() => expect(scene.web()?.status).toMatchObject({ actualInstances: 3 }));
  expect(budget()?.spec).toMatchObject({ minAvailable: '50%', unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  const wanted = Object.entries(budget()?.spec?.selector?.matchLabels ?? {});
  const [together, left] = [new Set<string>(), new Set<string>()];
  const look = (): void => {
    const pods = scene.cluster.all(podType);
    const generations = new Set(pods.map(({ metadata }) => metadata.labels?.[labels.generation] ?? ''));
    if (generations.size > 1) together.add([...generations].toSorted().join(' '));
    for (const { metadata } of pods) if (!wanted.every(([key, value]) => metadata.labels?.[key] === value)) left.add(metadata.name ?? '');
  };
  const timer = setInterval(look, 2);
  await serving(await scene.deploy('good:2'));
  clearInterval(timer);
  expect([wanted.length, together.size, [...left]]).toEqual([1, 1, []]);
  await scale(0);
  await scene.until(() => expect(budget()).toBeUndefined());
});
