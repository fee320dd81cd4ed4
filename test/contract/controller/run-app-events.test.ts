// The record of what happens to an app: what is written, how often, and what a controller that begins anew makes of it.

import { afterEach, expect, test } from 'vitest';
import { configMapType, eventType } from '../../../src/lib/api/core.ts';
import { readEvents, readSeen } from '../../../src/lib/api/event-log.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { AppEvent } from '../../../src/lib/api/results.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const map = () => scene.cluster.peek(configMapType, ns, `${appGuid}-events`);
const events = (): AppEvent[] => readEvents(map());
const types = (): string[] => events().map(({ type }) => type);
const has = (...wanted: string[]): Promise<void> => scene.until(() => expect(types()).toEqual(expect.arrayContaining(wanted)));
const by = (name: string): Record<string, string> => ({ [annotations.changedBy]: name });

test('starts, scaling, crashes with their exit codes and stops are recorded, with who did it', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  await scene.deploy('good:1', { annotations: by('alice') });
  await has('audit.app.create', 'audit.app.map-route', 'audit.app.start', 'audit.app.droplet.mapped', 'audit.app.process.ready');
  expect(events().find(({ type }) => type === 'audit.app.start')).toMatchObject({ actor: 'alice', description: 'state: STARTED' });
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', {
    metadata: { annotations: by('bob') },
    spec: { desiredInstances: 2, memoryMB: 64 },
  });
  await has('audit.app.process.scale');
  expect(events().find(({ type }) => type === 'audit.app.process.scale')).toMatchObject({
    ...{ actor: 'bob', description: 'process: web, instances: 2, memory: 64' },
  });
  await scene.deploy('crash:1', { annotations: by('alice') });
  await has('audit.app.restart', 'app.crash');
  const crash = events().find(({ type }) => type === 'app.crash');
  expect(crash).toMatchObject({
    actor: 'web',
    description: expect.stringMatching(/^index: 0, reason: CRASHED, instance: .*Exited with status 3/) as string,
  });
  await scene.patchApp({
    spec: { desiredState: 'STOPPED' },
    metadata: { annotations: { ...by('carol'), [annotations.deployId]: 'stop' } },
  });
  await has('audit.app.stop');
  expect(events().find(({ type }) => type === 'audit.app.stop')).toMatchObject({ actor: 'carol' });
});

test('who set the number of instances is recorded, and nobody for what an autoscaler set', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  await scene.deploy('good:1', { annotations: by('alice') });
  await has('audit.app.process.ready');
  const web = scene.web()?.metadata.name ?? '';
  const number = { 'f:spec': { 'f:desiredInstances': {} } };
  const signed = { 'f:metadata': { 'f:annotations': { [`f:${annotations.changedBy}`]: {} } } };
  const scaled = (): string[] =>
    events().flatMap(({ type, actor, description }) => (type === 'audit.app.process.scale' ? [`${actor} ${description}`] : []));
  const write = async (desiredInstances: number, writers: object[]): Promise<void> => {
    const managedFields = writers.map((fieldsV1) => ({ manager: 'kf', time: '2036-08-07T10:12:20Z', fieldsV1 }));
    await scene.cluster.mergePatch(kinds.process, ns, web, {
      metadata: { annotations: by('bob'), managedFields },
      spec: { desiredInstances },
    });
  };
  await write(2, [{ ...signed, ...number }]);
  await scene.until(() => expect(scaled()).toEqual(['bob process: web, instances: 2']));
  await write(3, [signed, number]);
  await scene.until(() => expect(scaled()).toEqual(['bob process: web, instances: 2', ' process: web, instances: 3']));
});

test('who deleted a binding is recorded when kf has noted it right before, and nobody otherwise', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  const metadata = { namespace: ns, annotations: by('alice') };
  for (const name of ['noted', 'former', 'plain']) {
    const spec = { type: 'app' as const, service: { name }, appRef: { name: appGuid }, parameters: { name: '' }, displayName: '' };
    await scene.cluster.create(kinds.serviceBinding, { metadata: { ...metadata, name }, spec });
  }
  await scene.until(() => expect(types().filter((type) => type === 'audit.service_binding.create')).toHaveLength(3));
  const note = (name: string, time: number): Promise<unknown> =>
    scene.cluster.mergePatch(kinds.serviceBinding, ns, name, {
      metadata: { annotations: { ...by('bob'), [annotations.unbinding]: new Date(time).toISOString() } },
    });
  // That of a kf that was killed before its deletion.
  await note('former', Date.now() - 120_000);
  await note('noted', Date.now());
  for (const name of ['noted', 'former', 'plain']) await scene.cluster.delete(kinds.serviceBinding, ns, name);
  const gone = (): string[] =>
    events().flatMap(({ type, actor, description }) => (type === 'audit.service_binding.delete' ? [`${actor} ${description}`] : []));
  const expected = [' service_instance: former', ' service_instance: plain', 'bob service_instance: noted'];
  await scene.until(() => expect(gone().toSorted()).toEqual(expected));
});

test('an app that is started without instances is not said to serve', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  await scene.deploy('good:1');
  await has('audit.app.process.ready');
  await scene.patchApp({ spec: { desiredState: 'STOPPED' }, metadata: { annotations: { [annotations.deployId]: 'stop' } } });
  await scene.until(() => expect(scene.app()?.status?.deployment?.phase).toBe('Stopped'));
  const web = scene.web()?.metadata.name ?? '';
  await scene.cluster.mergePatch(kinds.process, ns, web, { spec: { desiredInstances: 0 } });
  await scene.deploy('good:2');
  await scene.until(() => expect(types().filter((type) => type === 'audit.app.process.ready')).toHaveLength(2));
  expect(events().findLast(({ type }) => type === 'audit.app.process.ready')?.description).toBe('The app has no instances.');
  const told = (): unknown[] => scene.cluster.all(eventType).flatMap(({ reason, message }) => (reason === 'Serving' ? [message] : []));
  await scene.until(() => expect(told()).toEqual(expect.arrayContaining(['The app has no instances.', 'The app serves.'])));
});

test('an eviction is recorded', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  await scene.deploy('good:1');
  await has('audit.app.process.ready');
  const [pod] = scene.cluster.all(podType);
  const lastTransitionTime = new Date().toISOString();
  const gone = {
    type: 'DisruptionTarget',
    status: 'True' as const,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
    lastTransitionTime,
  };
  const conditions = [...(pod?.status?.conditions ?? []), gone];
  await scene.cluster.mergePatch(
    podType,
    ns,
    pod?.metadata.name ?? '',
    { status: { ...pod?.status, conditions } },
    { subresource: 'status' },
  );
  await has('audit.app.process.rescheduling');
  expect(events().at(-1)?.description).toContain('reason: EVICTED');
});

test('what happens between two writes is written together with the next one, and nothing is lost with the controller', async () => {
  scene = await startRunScene({ eventPauseMs: 3_600_000 });
  await scene.until(() => expect(map()).toBeDefined());
  const first = map()?.metadata.resourceVersion;
  const id = await scene.deploy('good:1', { annotations: by('alice') });
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  expect(map()?.metadata.resourceVersion).toBe(first);
  await scene.restartController();
  await has('audit.app.start', 'audit.app.process.ready');
  expect(types().filter((type) => type === 'audit.app.create')).toHaveLength(1);
});

test('what happened while no controller ran has the time at which it was written, and comes before what became of it', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  await scene.deploy('good:1', { annotations: by('alice') });
  await has('audit.app.process.ready');
  await scene.stopController();
  const time = '2026-08-07T10:12:20Z';
  const fieldsV1 = { 'f:metadata': { 'f:annotations': { [`f:${annotations.deployId}`]: {} } } };
  await scene.patchApp({
    metadata: { annotations: { [annotations.deployId]: 'again' }, managedFields: [{ manager: 'kf', time, fieldsV1 }] },
  });
  await scene.restartController();
  await has('audit.app.restart');
  expect(events().find(({ type }) => type === 'audit.app.restart')).toMatchObject({ time });
});

test('the ConfigMap belongs to its app, and one of a former app is replaced', async () => {
  scene = await startRunScene({ eventPauseMs: 0 });
  await has('audit.app.create');
  expect(map()?.metadata.ownerReferences).toMatchObject([{ kind: 'CFApp', uid: scene.app()?.metadata.uid }]);
  expect(readSeen(map())).toMatchObject({ name: 'shop', state: 'STOPPED' });
  await scene.stopController();
  await scene.cluster.mergePatch(configMapType, ns, `${appGuid}-events`, {
    metadata: { ownerReferences: [{ apiVersion: 'x/v1', kind: 'CFApp', name: appGuid, uid: 'former' }] },
    data: { 1: '{"time":"2020-01-01T00:00:00Z","type":"audit.app.stop","actor":"","description":""}' },
  });
  await scene.restartController();
  await scene.until(() => expect(map()?.metadata.ownerReferences).toMatchObject([{ uid: scene.app()?.metadata.uid }]));
  expect(types()).not.toContain('audit.app.stop');
});
