// `events`: what happened to one app.

import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { configMapType, eventType } from '../../../src/lib/api/core.ts';
import { compareApp, type AppObjects } from '../../../src/lib/api/app-events.ts';
import { entriesFor, eventsName } from '../../../src/lib/api/event-log.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { bundleForTests } from '../../support/cli.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { ns, PushScene } from '../../support/push-scene.ts';
import { asStored } from '../../support/stored.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  await scene.ok('create-app', 'shop');
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

async function happened(uid: string | undefined, reason: string, minute: number, more: object = {}): Promise<void> {
  const lastTimestamp = `2036-08-07T10:${minute}:20Z`;
  const involvedObject = { kind: 'CFApp', namespace: ns, ...(uid === undefined ? {} : { uid }) };
  const event = { involvedObject, reason, message: `It is ${reason}.`, lastTimestamp, source: { component: 'kf-controller' }, ...more };
  await scene.cluster.add(eventType, { metadata: { name: `${reason}.${minute}`, namespace: ns }, ...event });
}

it('are those of its objects, newest first, in the layout of cf', async () => {
  const { name: guid = '', uid } = scene.app().metadata;
  const marks = { labels: { [labels.appGuid]: guid }, annotations: { [annotations.changedBy]: 'bob' } };
  await scene.cluster.add(kinds.package, {
    metadata: { name: 'package-1', namespace: ns, ...marks },
    spec: { type: 'bits', appRef: { name: guid } },
  });
  const pod = await scene.cluster.add(podType, { metadata: { name: 'web-0', namespace: ns, labels: { [labels.appGuid]: guid } } });
  await happened(uid, 'Serving', 10);
  await happened(uid, 'Crashed', 20, { message: 'exit\n  code 7', count: 3 });
  await happened(pod.metadata.uid, 'BackOff', 30, { type: 'Warning' });
  await happened(pod.metadata.uid, 'Pulled', 31, { type: 'Normal' });
  await happened('uid-of-another-app', 'Serving', 40);
  await happened(undefined, 'Nobody', 41);
  const { stdout } = await scene.cli.run(['events', 'shop'], { env: { TZ: 'UTC' } });
  const lines = stdout.split('\n').map((text) => text.trimEnd());
  expect(lines.slice(0, 6)).toEqual([
    'Getting events for app shop in org example-org / space example-space as alice...',
    '',
    'time                          event                      actor           description',
    '2036-08-07T10:30:20.00+0000   kubernetes.BackOff         kf-controller   It is BackOff.',
    '2036-08-07T10:20:20.00+0000   app.crash                  kf-controller   exit code 7 (3 times)',
    '2036-08-07T10:10:20.00+0000   audit.app.process.ready    kf-controller   It is Serving.',
  ]);
  const rest = lines.slice(6, -1).map((text) => text.split(/ {2,}/).slice(1));
  expect(rest).toEqual([
    ['audit.app.package.create', 'bob', 'guid: package-1'],
    ['audit.app.create', 'alice', `guid: ${guid}`],
  ]);
});

it('leave out what only shows progress: conditions, probes of a start, and writers that were overtaken', async () => {
  const { name: guid = '', uid } = scene.app().metadata;
  const pod = await scene.cluster.add(podType, { metadata: { name: 'web-0', namespace: ns, labels: { [labels.appGuid]: guid } } });
  await happened(uid, 'Ready', 10, { type: 'Normal', message: 'Condition Ready is True' });
  for (const reason of ['DesiredStateNotReached', 'DropletNotAssigned', 'BindingNotReady'])
    await happened(uid, reason, 11, { type: 'Warning' });
  await happened(uid, 'Unknown', 12, { type: 'Warning', message: 'Operation cannot be fulfilled: the object has been modified' });
  await happened(pod.metadata.uid, 'Unhealthy', 13, { type: 'Warning', message: 'Startup probe failed: connection refused' });
  await happened(pod.metadata.uid, 'Unhealthy', 14, { type: 'Warning', message: 'Liveness probe failed: connection refused' });
  await happened(uid, 'DuplicateName', 15, { type: 'Warning' });
  expect(await typesShown()).toEqual(['kubernetes.DuplicateName', 'kubernetes.Unhealthy', 'audit.app.create']);
});

it('name a binding that the app waits for, as long as it waits', async () => {
  const { uid, name = '' } = scene.app().metadata;
  await happened(uid, 'BindingNotReady', 11, { type: 'Warning' });
  const ready = {
    type: 'Ready',
    status: 'False',
    reason: 'BindingNotReady',
    message: 'It waits.',
    lastTransitionTime: '2036-08-07T10:11:20Z',
  };
  await scene.cluster.memory.mergePatch(kinds.app, ns, name, { status: { conditions: [ready] } }, { subresource: 'status' });
  expect(await typesShown()).toEqual(['kubernetes.BindingNotReady', 'audit.app.create']);
});

/** Writes the record as the controller does. */
async function record(before: Partial<AppObjects> = {}): Promise<void> {
  const app = asStored<CFApp>(scene.app());
  const { name: guid, namespace } = app.metadata;
  const none = { processes: [], packages: [], builds: [], bindings: [], routes: [], tasks: [], pods: [] };
  const { events, seen } = compareApp(undefined, { ...none, app, ...before }, Date.parse(app.metadata.creationTimestamp ?? ''));
  const data = entriesFor(undefined, events, seen) as Record<string, string>;
  await scene.cluster.add(configMapType, { metadata: { name: eventsName(guid), namespace }, data });
}

const typesShown = async (): Promise<string[]> => {
  const { result } = JSON.parse((await scene.ok('events', 'shop', '--json')).stdout) as { result: { events: { type: string }[] } };
  return result.events.map(({ type }) => type);
};

it('are those that the controller has recorded, also when Kubernetes has forgotten its Events, and what happened since', async () => {
  await record();
  await happened(scene.app().metadata.uid, 'Stopped', 10);
  await happened(scene.app().metadata.uid, 'Claimed', 11, { type: 'Warning' });
  expect(await typesShown()).toEqual(['kubernetes.Claimed', 'audit.app.create']);
  const fieldsV1 = { 'f:spec': { 'f:currentDropletRef': { 'f:name': {} } } };
  await scene.cluster.memory.mergePatch(kinds.app, ns, scene.app().metadata.name ?? '', {
    metadata: { managedFields: [{ manager: 'kf', time: '2036-08-07T10:12:20Z', fieldsV1 }] },
    spec: { currentDropletRef: { name: 'build-1' } },
  });
  const { stdout } = await scene.cli.run(['events', 'shop'], { env: { TZ: 'UTC' } });
  expect(stdout).toMatch(/^2036-08-07T10:12:20\S+ +audit\.app\.droplet\.mapped +alice +guid: build-1$/m);
});

it('of one second have the creation of the app last', async () => {
  const { uid, creationTimestamp: lastTimestamp } = scene.app().metadata;
  await happened(uid, 'Claimed', 10, { lastTimestamp, type: 'Warning' });
  const { stdout } = await scene.ok('events', 'shop');
  expect(stdout.split('\n').flatMap((text) => text.split(/ {2,}/)[1] ?? [])).toEqual(['event', 'kubernetes.Claimed', 'audit.app.create']);
});

it('--json has the times as the cluster has them', async () => {
  await happened(scene.app().metadata.uid, 'Serving', 10);
  const { result } = JSON.parse((await scene.ok('events', 'shop', '--json')).stdout) as { result: { events: object[] } };
  expect(result).toMatchObject({ app: 'shop' });
  expect(result.events[0]).toEqual({
    time: '2036-08-07T10:10:20Z',
    type: 'audit.app.process.ready',
    actor: 'kf-controller',
    description: 'It is Serving.',
  });
});

it('of an unknown app, and without the right to read them, fail', async () => {
  expect((await scene.cli.run(['events', 'chop'])).stderr).toContain("App 'chop' not found.");
  expect((await scene.cli.run(['events'])).stderr).toContain('the required argument `APP_NAME` was not provided');
  scene.cluster.server.on('GET .*/events', (call) => call.fail(403, 'Forbidden', 'User "alice" cannot list events'));
  expect(JSON.parse((await scene.cli.run(['events', 'shop', '--json'])).stdout)).toMatchObject({ error: { code: 'forbidden' } });
});
