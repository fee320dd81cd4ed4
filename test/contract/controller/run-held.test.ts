// Settings of a process that wait for the next start of its app.

import { afterEach, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { heldUntilRestart } from '../../../src/lib/api/held.ts';
import type { CFApp, CFBuild, CFProcess } from '../../../src/lib/api/types.generated.ts';
import { cancel, processOf, reported, running, wanted } from './deployment-scene.ts';
import { ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const serving = async (id: string): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
const probes = (): (string | undefined)[] => scene.cluster.all(kinds.appWorkload).map(({ spec }) => spec.livenessProbe?.httpGet?.path);

/** Writes the health check as `set-health-check` does, and waits until the controller has seen it. */
async function setCheck(path: string, marks: Record<string, string | null>): Promise<void> {
  const { name = '' } = scene.web()?.metadata ?? {};
  const healthCheck = { type: 'http', data: { httpEndpoint: path } };
  await scene.cluster.mergePatch(kinds.process, ns, name, { metadata: { annotations: marks }, spec: { healthCheck } });
  const seen = (): boolean => scene.web()?.status?.conditions?.[0]?.observedGeneration === scene.web()?.metadata.generation;
  await scene.until(() => expect(seen()).toBe(true));
}

const hold = (): Record<string, string | null> => heldUntilRestart(scene.app() as CFApp);

test('a held health check changes nothing until the next change of the app, also after a change of the controller', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setCheck('/health', hold());
  expect(probes()).toEqual([undefined]);
  await scene.restartController();
  await setCheck('/other', hold());
  expect(probes()).toEqual([undefined]);
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'restart', [annotations.appRev]: '1' } } });
  await serving('restart');
  await scene.until(() => expect(probes()).toEqual(['/other']));
});

test('held memory and a command, as apply-manifest writes them, wait too, and more instances do not', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const before = scene.cluster.all(kinds.appWorkload).map(({ metadata, spec }) => [metadata.name, spec.resources, spec.command]);
  const { name = '' } = scene.web()?.metadata ?? {};
  await scene.cluster.mergePatch(kinds.process, ns, name, { metadata: { annotations: hold() }, spec: { memoryMB: 99, command: 'other' } });
  await scene.cluster.mergePatch(kinds.process, ns, name, { spec: { desiredInstances: 3 } });
  await scene.until(() => expect(scene.cluster.all(kinds.appWorkload).map(({ spec }) => spec.instances)).toEqual([3]));
  expect(scene.cluster.all(kinds.appWorkload).map(({ metadata, spec }) => [metadata.name, spec.resources, spec.command])).toEqual(before);
});

test('a droplet that set-droplet chose waits too, and a restart runs it', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const images = (): (string | undefined)[] => scene.cluster.all(kinds.appWorkload).map(({ spec }) => spec.image);
  const build = scene.cluster.peek(kinds.build, ns, scene.app()?.spec.currentDropletRef?.name ?? '');
  await scene.cluster.create(kinds.build, { ...(build as CFBuild), metadata: { name: 'other', namespace: ns } });
  const droplet = { registry: { image: 'good:2' } };
  await scene.cluster.mergePatch(kinds.build, ns, 'other', { status: { state: 'STAGED', droplet } }, { subresource: 'status' });
  await scene.patchApp({ metadata: { annotations: hold() }, spec: { currentDropletRef: { name: 'other' } } });
  await scene.until(() => expect(scene.app()?.status?.observedGeneration).toBe(scene.app()?.metadata.generation));
  await setCheck('/seen-by-the-controller', hold());
  expect(images()).toEqual(['good:1']);
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'restart', [annotations.appRev]: '1' } } });
  await serving('restart');
  await scene.until(() => expect(images()).toEqual(['good:2']));
});

test('a change of the process by other tools, which hold nothing, takes effect at once', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setCheck('/health', {});
  await scene.until(() => expect(probes()).toContain('/health'));
});

test('a process that is added to a running app, as apply-manifest adds it, starts with the next start of the app', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const web = scene.web();
  const annotationsOf = (marks: Record<string, string | null>) => marks as Record<string, string>;
  await scene.cluster.create(kinds.process, {
    metadata: { name: 'worker', namespace: ns, labels: { ...web?.metadata.labels }, annotations: annotationsOf(hold()) },
    spec: { ...web?.spec, processType: 'worker', desiredInstances: 1, healthCheck: { type: 'process', data: {} } } as CFProcess['spec'],
  });
  const worker = (): CFProcess | undefined => scene.cluster.peek(kinds.process, ns, 'worker');
  await scene.until(() => expect(worker()?.status?.conditions?.[0]?.status).toBe('True'));
  const workers = () => scene.cluster.all(kinds.appWorkload).filter(({ spec }) => spec.processType === 'worker');
  expect(workers()).toEqual([]);
  expect(scene.app()?.status?.deployment?.phase).toBe('Serving');
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'restart', [annotations.appRev]: '1' } } });
  await serving('restart');
  await scene.until(() => expect(workers().map(({ spec }) => spec.instances)).toEqual([1]));
});

const both = { processTypes: ['web', 'worker'] };

/** Writes to worker, and waits until the controller has seen it. */
async function patchWorker(patch: Record<string, unknown>): Promise<void> {
  await scene.cluster.mergePatch(kinds.process, ns, processOf(scene, 'worker')?.metadata.name ?? '', patch);
  await scene.until(() =>
    expect(processOf(scene, 'worker')?.status?.observedGeneration).toBe(processOf(scene, 'worker')?.metadata.generation),
  );
}

test('a process that never ran has nothing to hold: it starts when it is scaled', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1', both));
  await patchWorker({ metadata: { annotations: hold() }, spec: { healthCheck: { type: 'process', data: {} } } });
  expect(running(scene, 'worker')).toEqual({});
  await scene.restartController();
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status).toMatchObject({ actualInstances: 1, rollout: { phase: 'Serving' } }));
  expect(processOf(scene, 'worker')?.status?.unstartedInstances).toBeUndefined();
});

test('so does one that a manifest has added and that waits for the next start', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const web = scene.web();
  const healthCheck = { type: 'process', data: {} };
  await scene.cluster.create(kinds.process, {
    metadata: { name: 'worker', namespace: ns, labels: { ...web?.metadata.labels }, annotations: hold() as Record<string, string> },
    spec: { ...web?.spec, processType: 'worker', desiredInstances: 1, healthCheck } as CFProcess['spec'],
  });
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.unstartedInstances).toBe(1));
  await patchWorker({ spec: { memoryMB: 99 } });
  await scene.restartController();
  await scene.patchApp({ metadata: { annotations: { note: 'of somebody' } } });
  expect(running(scene, 'worker')).toEqual({});
  await patchWorker({ spec: { desiredInstances: 2 } });
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 2 }));
});

test('it runs the droplet of the others while another one waits for the next start', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1', both));
  const build = scene.cluster.peek(kinds.build, ns, 'build-1') as CFBuild;
  await scene.cluster.create(kinds.build, { ...build, metadata: { name: 'other', namespace: ns } });
  const droplet = { ...build.status?.droplet, registry: { image: 'good:2' } };
  await scene.cluster.mergePatch(kinds.build, ns, 'other', { status: { state: 'STAGED', droplet } }, { subresource: 'status' });
  await scene.patchApp({ metadata: { annotations: hold() }, spec: { currentDropletRef: { name: 'other' } } });
  await scene.until(() => expect(scene.app()?.status?.observedGeneration).toBe(scene.app()?.metadata.generation));
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.actualInstances).toBe(1));
  expect([running(scene), running(scene, 'worker')]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]);
});

test('after a cancellation it runs the version of before, with the variables of that', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1', both));
  await scene.cluster.mergePatch(secretType, ns, 'env', { data: { COLOUR: Buffer.from('blue').toString('base64') } });
  const id = await scene.deploy('good:2', { ...both, rev: '1', rollout: { strategy: 'canary' } });
  await reported(scene, id, 'Paused');
  await cancel(scene, 'build-1');
  await reported(scene, id, 'Serving', { canceled: true });
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.actualInstances).toBe(1));
  await scene.until(() => expect([running(scene), running(scene, 'worker')]).toEqual([{ 'good:1': 1 }, { 'good:1': 1 }]));
  const frozen = scene.cluster.all(kinds.appWorkload).find(({ spec }) => spec.processType === 'worker')?.metadata.name ?? '';
  const colour = scene.cluster.peek(secretType, ns, `${frozen}-env`)?.data?.['COLOUR'] ?? '';
  expect(Buffer.from(colour, 'base64').toString()).toBe('red');
  await reported(scene, id, 'Serving', { canceled: true });
});

/** A push adds worker with one instance, and is killed before its last patch. */
async function killPush(lock: string): Promise<void> {
  await serving(await scene.deploy('good:1'));
  const web = scene.web();
  await scene.patchApp({ metadata: { annotations: { [annotations.applying]: lock } } });
  await scene.cluster.create(kinds.process, {
    metadata: { name: 'worker', namespace: ns, labels: { ...web?.metadata.labels }, annotations: hold() as Record<string, string> },
    spec: { ...web?.spec, processType: 'worker', desiredInstances: 1, healthCheck: { type: 'process', data: {} } } as CFProcess['spec'],
  });
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.unstartedInstances).toBe(1));
}

test('it is scaled a while after the push that added it was killed, and not before', async () => {
  let later = 0;
  scene = await startRunScene({ now: () => Date.now() + later });
  await killPush('push@1');
  await patchWorker({ spec: { desiredInstances: 2 } });
  later = 10_000;
  await scene.patchApp({ metadata: { annotations: { note: 'seen by the controller' } } });
  await patchWorker({ spec: { memoryMB: 99 } });
  expect(running(scene, 'worker')).toEqual({});
  // The lock of another push counts from the moment at which it is seen.
  await scene.patchApp({ metadata: { annotations: { [annotations.applying]: 'push@2' } } });
  await patchWorker({ spec: { memoryMB: 98 } });
  later = 16_000;
  await patchWorker({ spec: { memoryMB: 97 } });
  expect(running(scene, 'worker')).toEqual({});
  later = 24_000;
  await patchWorker({ spec: { memoryMB: 96 } });
  // By itself: nothing changes any more.
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 2 }));
});

test('an empty lock is none', async () => {
  scene = await startRunScene();
  await killPush('');
  await patchWorker({ spec: { desiredInstances: 2 } });
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 2 }));
});

/** Worker has one instance in the second version, and that is canceled before web is ready. */
async function cancelWithWorker(): Promise<string> {
  await serving(await scene.deploy('good:1', both));
  scene.holdStarts(true);
  const id = await scene.deploy('good:2', { ...both, rev: '1' });
  await wanted(scene, 'worker');
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:2': 1 }));
  await cancel(scene, 'build-1');
  scene.holdStarts(false);
  await reported(scene, id, 'Serving', { canceled: true });
  await scene.until(() => expect([running(scene), running(scene, 'worker')]).toEqual([{ 'good:1': 1 }, {}]));
  return id;
}

test('so does one that ran only in the canceled version: it is scaled up, down and up again', async () => {
  scene = await startRunScene();
  const id = await cancelWithWorker();
  await scene.restartController();
  for (const desiredInstances of [2, 0, 1]) {
    await patchWorker({ spec: { desiredInstances } });
    await scene.until(() => expect(running(scene, 'worker')).toEqual(desiredInstances === 0 ? {} : { 'good:1': desiredInstances }));
    await scene.until(() => expect(processOf(scene, 'worker')?.status?.actualInstances).toBe(desiredInstances));
  }
  await reported(scene, id, 'Serving', { canceled: true });
  expect(running(scene)).toEqual({ 'good:1': 1 });
});

test('it can be set to no instances first', async () => {
  scene = await startRunScene();
  await cancelWithWorker();
  await patchWorker({ spec: { desiredInstances: 0 } });
  await patchWorker({ spec: { desiredInstances: 1 } });
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 1 }));
});

test('a push that scales it does not start it with the droplet of before, and apply-manifest starts it at its end', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1', both));
  const lock = (value: string | null): Promise<void> => scene.patchApp({ metadata: { annotations: { [annotations.applying]: value } } });
  await lock('push@2026-11-30T12:00:00Z');
  await patchWorker({ metadata: { annotations: hold() }, spec: { command: 'other' } });
  await patchWorker({ spec: { desiredInstances: 1 } });
  await scene.patchApp({ metadata: { annotations: { seen: 'by-the-controller' } } });
  expect(processOf(scene, 'worker')?.status?.unstartedInstances).toBe(0);
  expect(running(scene, 'worker')).toEqual({});
  await lock(null);
  await scene.until(() => expect(running(scene, 'worker')).toEqual({ 'good:1': 1 }));
});
