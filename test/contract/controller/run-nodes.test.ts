// Instances on nodes that are emptied or do not answer, on a cluster in memory. The simulated node there takes every pod, whatever its node is called.

import { afterEach, expect, test } from 'vitest';
import { nodeType, podDisruptionBudgetType, statefulSetType, type StatefulSet } from '../../../src/lib/api/core.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const pods = (): Pod[] => scene.cluster.all(podType).filter(({ metadata }) => metadata.namespace === ns);
const workload = () => scene.cluster.all(kinds.appWorkload)[0];
const web = (): string => scene.web()?.metadata.name ?? '';
const budgets = (): (string | undefined)[] => scene.cluster.all(podDisruptionBudgetType).map(({ metadata }) => metadata.name);
const serving = async (id: string): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));

/** Gives the only pod a node, and says that the pod is not ready if the node does not answer. */
async function place(nodeName: string, answers = true): Promise<string> {
  const [{ metadata, status } = { metadata: {} }] = pods();
  const conditions = status?.conditions?.map((one) => (one.type === 'Ready' && !answers ? { ...one, status: 'False' as const } : one));
  await scene.cluster.mergePatch(podType, ns, metadata.name ?? '', { spec: { nodeName } });
  await scene.cluster.mergePatch(podType, ns, metadata.name ?? '', { status: { conditions } }, { subresource: 'status' });
  return metadata.name ?? '';
}

const readiness = (status: 'True' | 'Unknown') => ({
  conditions: [{ type: 'Ready', status, lastTransitionTime: '2026-01-01T00:00:00Z' }],
});

test('the only instance behind a route leaves a node that is emptied after a second one is ready, and evictions must leave one', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await scene.until(() => expect(budgets()).toEqual([scene.web()?.metadata.name]));
  await scene.cluster.create(nodeType, { metadata: { name: 'old' }, spec: { unschedulable: true }, status: readiness('True') });
  const name = await place('old');
  await scene.until(() => expect(pods()).toHaveLength(2));
  expect(workload()).toMatchObject({ spec: { instances: 2 }, metadata: { annotations: { [annotations.spare]: 'true' } } });
  await scene.until(() => expect(scene.web()?.status?.instanceCounts).toEqual({ running: 1, starting: 0, crashed: 0, down: 0 }));
  expect(scene.web()?.spec.desiredInstances).toBe(1);
  // The second instance stays until the first one runs elsewhere; the set makes that one again.
  await scene.cluster.delete(podType, ns, name);
  await scene.until(() => expect(pods().map(({ metadata, spec }) => [metadata.name, spec?.nodeName])).toEqual([[name, undefined]]));
  expect(workload()?.spec.instances).toBe(1);
  expect(workload()?.metadata.annotations?.[annotations.spare]).toBeUndefined();
  expect(budgets()).toHaveLength(1);
});

test('an instance that was started beside one that leaves its node is one of two when the user wants two', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await scene.cluster.create(nodeType, { metadata: { name: 'old' }, spec: { unschedulable: true }, status: readiness('True') });
  await place('old');
  await scene.until(() => expect(workload()?.metadata.annotations?.[annotations.spare]).toBe('true'));
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  await scene.until(() => expect(workload()?.metadata.annotations?.[annotations.spare]).toBeUndefined());
  expect(workload()?.spec.instances).toBe(2);
});

test('a process without a route has no second instance and no budget, and stays where it is', async () => {
  scene = await startRunScene({ routed: false });
  await serving(await scene.deploy('good:1'));
  await scene.cluster.create(nodeType, { metadata: { name: 'old' }, spec: { unschedulable: true }, status: readiness('True') });
  const name = await place('old');
  await scene.patchApp({ metadata: { annotations: { [annotations.appRev]: '7', [annotations.deployId]: 'again' } } });
  await serving('again');
  expect(pods().map(({ metadata }) => metadata.name)).not.toContain(`${name.slice(0, -1)}1`);
  expect(budgets()).toEqual([]);
});

test('an instance on a node that stops answering is down because of its node', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await scene.cluster.create(nodeType, { metadata: { name: 'dead' }, status: readiness('True') });
  await place('dead', false);
  await scene.until(() => expect(scene.web()?.status?.instancesStatus?.['0']?.ready).toBe(false));
  expect(scene.web()?.status?.instancesStatus?.['0']).not.toHaveProperty('cause');
  // Nothing of the pod changes now.
  await scene.cluster.mergePatch(nodeType, undefined, 'dead', { status: readiness('Unknown') }, { subresource: 'status' });
  await scene.until(() =>
    expect(scene.web()?.status?.instancesStatus?.['0']).toMatchObject({
      state: 'DOWN',
      cause: 'node-lost',
      timestamp: '2026-01-01T00:00:00Z',
      details: expect.stringContaining("Node 'dead' does not answer") as string,
    }),
  );
  expect(scene.app()?.status?.deployment?.phase).toBe('Serving');
});

test('an instance of a deleted app leaves a node that does not answer, and one on a node that answers stays', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const marks = pods()[0]?.metadata.labels;
  await scene.cluster.delete(kinds.appWorkload, ns, workload()?.metadata.name ?? '');
  await scene.cluster.delete(kinds.app, ns, scene.app()?.metadata.name ?? '');
  await scene.cluster.create(nodeType, { metadata: { name: 'dead' }, status: readiness('Unknown') });
  await scene.cluster.create(nodeType, { metadata: { name: 'alive' }, status: readiness('True') });
  // The API server keeps a pod until its node has confirmed the end.
  for (const nodeName of ['alive', 'dead'])
    await scene.cluster.create<Pod>(podType, {
      metadata: { name: `left-on-${nodeName}`, namespace: ns, labels: marks ?? {}, deletionTimestamp: '2026-01-01T00:00:00Z' },
      spec: { containers: [], nodeName },
    });
  await scene.until(() => expect(scene.cluster.peek(podType, ns, 'left-on-dead')).toBeUndefined());
  expect(scene.cluster.peek(podType, ns, 'left-on-alive')).toBeDefined();
});

test('instances of a process are spread over zones and nodes, and those of its next version with them', async () => {
  scene = await startRunScene();
  const sets = (): StatefulSet[] => scene.cluster.all(statefulSetType).filter(({ metadata }) => metadata.namespace === ns);
  const generations = new Set<string | undefined>();
  for (const image of ['good:1', 'good:2']) {
    await serving(await scene.deploy(image));
    // The next version has a set of its own, and the one before goes.
    await scene.until(() => expect(sets().map(({ spec }) => spec?.template.spec.containers[0]?.image)).toEqual([image]));
    const template = sets()[0]?.spec?.template;
    generations.add(template?.metadata?.labels?.[labels.generation]);
    // A cluster with one zone, or without room elsewhere, has to start them all the same.
    const evenly = { maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway', labelSelector: { matchLabels: { [labels.guid]: web() } } };
    expect(template?.spec.topologySpreadConstraints).toEqual([
      { topologyKey: 'topology.kubernetes.io/zone', ...evenly },
      { topologyKey: 'kubernetes.io/hostname', ...evenly },
    ]);
    expect(template?.metadata?.labels?.[labels.guid]).toBe(web());
  }
  expect(generations.size).toBe(2);
});
