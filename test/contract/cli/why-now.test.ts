// `why`: what is so now comes before what came of the last change.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configMapType, eventType } from '../../../src/lib/api/core.ts';
import { eventsName } from '../../../src/lib/api/event-log.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { statefulSetName } from '../../../src/lib/api/names.ts';
import type { ContainerStatus } from '../../../src/lib/api/pod.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { WhyDetails } from '../../../src/lib/api/results.ts';
import { printVerdict } from '../../../src/lib/api/verdicts.ts';
import type { CFProcessStatus } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app', '-m', '64M'];
const asJson = async (...argv: string[]): Promise<WhyDetails> => {
  const { code, stdout, stderr } = await scene.cli.run(['why', ...argv, '--json']);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { result: WhyDetails }).result;
};
const processStatus = (status: CFProcessStatus): void =>
  scene.setStatus(kinds.process, nameOf(scene.cluster.memory.all(kinds.process)[0]), status);

const [good, bad] = ['0123456789', '9876543210'];
const served = { process: 'web', hash: good, state: 'Old' as const, instances: 1, ready: 0, served: true };
const generations = [served, { process: 'web', hash: bad, state: 'Failed' as const, instances: 0, ready: 0 }];
/** An instance that waits for its next start after two crashes. */
async function backsOff(name: string): Promise<void> {
  const status: ContainerStatus = { name: 'application', restartCount: 1, containerID: 'c://2', ready: false, image: '', imageID: '' };
  const waits = { ...status, state: { waiting: { reason: 'CrashLoopBackOff' } } };
  const spec = { containers: [{ name: 'application', image: 'any' }] };
  await scene.cluster.add(podType, { metadata: { name, namespace: ns }, spec, status: { containerStatuses: [waits] } });
}

const crashed = { state: 'CRASHED' as const, reason: 'Crashed', cause: 'exit-code', exitCode: 7, pod: `shop-${good}-0` };

describe('an app whose version that serves fails after a change that failed', () => {
  const details = 'The app ended with exit code 7.';
  const instance = (generation: string) => ({
    rollout: { id: 'x', phase: 'Failed' as const, generations },
    instancesStatus: { '0': { ...crashed, details, generation } },
  });

  /** Version 2 serves, version 3 has failed. */
  beforeEach(async () => {
    await scene.ok(...push);
    scene.failure = {
      ...{ reason: 'Crashed', cause: 'exit-code', message: 'The app ended with exit code 3.', process: 'web', pod: `shop-${bad}-0` },
      ...{ container: 'application', exitCode: 3, since: '2026-08-07T10:16:20Z', logTail: ['of version 3'] },
    };
    await scene.cli.run([...push, '--force']);
    const guid = nameOf(scene.app());
    scene.setStatus(kinds.app, guid, { revision: { change: 'x', version: 3, deployed: 2, droplets: [] } });
    const change = scene.app().status?.deployment?.id ?? '';
    const kept = { version: 3, change, cause: 'exit-code' as const, message: scene.failure.message ?? '', at: '2026-08-07T10:16:20Z' };
    const data = { 'verdict-3': printVerdict({ ...kept, head: [], omitted: 0, tail: ['of version 3'] }) };
    await scene.cluster.add(configMapType, { metadata: { name: `${guid}-revisions`, namespace: ns }, data });
    await backsOff(`shop-${good}-0`);
    // In the back-off, the kubelet serves the same run as the previous and as the present one.
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/shop-${good}-0/log.*`, (call) => call.text('of version 2\n'));
  });

  it('is explained by what fails now, and the failed change is said after it', async () => {
    processStatus(instance(good));
    expect(await asJson('shop')).toMatchObject({
      state: 'failed',
      cause: 'exit-code',
      message: `Instance 0 of 'web' does not run: ${details}`,
      version: 2,
      instance: 0,
      exitCode: 7,
      log: { tail: ['of version 2'] },
      failedChange: { version: 3, cause: 'exit-code', message: 'The app ended with exit code 3.', exitCode: 3 },
      next: ['kf logs shop --recent', 'kf why shop --version 3'],
    });
    expect((await scene.ok('why', 'shop')).stdout).toMatch(
      /\n\nInstance 0 of 'web' does not run: .* code 7\.\nThe last change of the app failed \(version 3\): .* code 3\.\n\ncause: .*\nversion: +2, which served last\n/,
    );
  });

  it('is explained by the change when only its own instances fail', async () => {
    processStatus(instance(bad));
    const explained = await asJson('shop');
    expect(explained).toMatchObject({ version: 3, exitCode: 3, log: { tail: ['of version 3'] } });
    expect(explained).not.toHaveProperty('failedChange');
  });

  it('is explained by recorded ends of that version, between two of which it runs', async () => {
    processStatus({ ...instance(good), instancesStatus: { '0': { state: 'RUNNING', generation: good } } });
    const [app, process] = [nameOf(scene.app()), nameOf(scene.cluster.memory.all(kinds.process)[0])];
    const later = new Date(Date.now() + 1_000).toISOString();
    const end = (hash: string, status: number) => {
      const pod = `${statefulSetName(app, ns, process, hash)}-0`;
      const said = `exit_description: APP/PROC/WEB: Exited with status ${String(status)}, exit_status: ${String(status)}`;
      return JSON.stringify({
        time: later,
        type: 'app.crash',
        actor: 'web',
        description: `index: 0, reason: CRASHED, instance: ${pod}, ${said}`,
      });
    };
    const data: Record<string, string> = { 1: end(good, 7), 2: end(bad, 3), 3: end(bad, 3) };
    const metadata = { name: eventsName(app), namespace: ns };
    await scene.cluster.add(configMapType, { metadata, data });
    expect(await asJson('shop')).toMatchObject({ version: 3, exitCode: 3 });
    await scene.cluster.memory.mergePatch(configMapType, ns, metadata.name, { data: { 4: end(good, 7) } });
    expect(await asJson('shop')).toMatchObject({ version: 2, exitCode: 7, failedChange: { version: 3, exitCode: 3 } });
  });
});

it('an app whose run wrote more than a mebibyte has the end of it', async () => {
  await scene.ok(...push);
  await backsOff(crashed.pod);
  processStatus({ instancesStatus: { '0': crashed } });
  const lines = [...Array.from({ length: 20_000 }, (_, line) => `${String(line)} ${'x'.repeat(100)}`), 'FATAL: the real cause'];
  scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${crashed.pod}/log.*`, (call) => {
    if (call.query.get('previous') === 'true') call.text(lines.join('\n'));
    else call.fail(400, 'BadRequest', 'container "application" in pod "x" is waiting to start');
  });
  expect((await asJson('shop')).log).toEqual({ head: lines.slice(0, 10), omitted: 19_961, tail: lines.slice(-30) });
});

it('an app of which a sidecar fails has the lines of the sidecar', async () => {
  await scene.ok(...push);
  const sidecar = 'sidecar-0-proxy-s';
  await backsOff(crashed.pod);
  processStatus({ instancesStatus: { '0': { ...crashed, container: sidecar, details: "The sidecar 'proxy' ended with exit code 7." } } });
  scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${crashed.pod}/log.*`, (call) =>
    call.text(`of ${call.query.get('container') ?? ''}\n`),
  );
  expect(await asJson('shop')).toMatchObject({ cause: 'exit-code', container: sidecar, log: { tail: [`of ${sidecar}`] } });
});

it('an app whose command is missing is told so, by the words of its shell, before its change has failed', async () => {
  await scene.ok(...push);
  processStatus({ instancesStatus: { '0': { ...crashed, exitCode: 127 } } });
  scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${crashed.pod}/log.*`, (call) => call.text('sh: 1: nope: not found\n'));
  expect(await asJson('shop')).toMatchObject({ cause: 'command-not-found', exitCode: 127, log: { tail: ['sh: 1: nope: not found'] } });
});

it('an app whose sidecar has no such command is told where that command is set', async () => {
  await scene.ok(...push);
  processStatus({ instancesStatus: { '0': { ...crashed, container: 'sidecar-0-proxy-s', exitCode: 127 } } });
  scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${crashed.pod}/log.*`, (call) => call.text('sh: 1: nope: not found\n'));
  const { cause, next } = (await asJson('shop')) as { cause: string; next: string[] };
  expect([cause, next[0]]).toEqual([
    'command-not-found',
    "Set command of sidecar 'proxy' under sidecars: of the manifest, then: kf push shop",
  ]);
});

it('an app whose instance is on a lost node is explained without its kubelet, which does not answer', async () => {
  await scene.ok(...push);
  await backsOff(crashed.pod);
  processStatus({ instancesStatus: { '0': { ...crashed, cause: 'node-lost' } } });
  expect(await asJson('shop')).toMatchObject({ state: 'failed', cause: 'node-lost' });
  expect(scene.cluster.server.callsOf(`GET /api/v1/namespaces/${ns}/pods/.*/log.*`)).toEqual([]);
});

it('an app of which the kubelet does not keep the run before any more has the lines of the present one', async () => {
  await scene.ok(...push);
  await backsOff(crashed.pod);
  processStatus({ instancesStatus: { '0': crashed } });
  scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${crashed.pod}/log.*`, (call) => {
    if (call.query.get('previous') === 'true') call.fail(400, 'BadRequest', 'previous terminated container "application" not found');
    else call.text('the present run says why\n');
  });
  expect((await asJson('shop')).log).toMatchObject({ tail: ['the present run says why'] });
});

it('an app whose version that serves fails after a build that failed is explained by what fails now', async () => {
  await scene.ok(...push);
  scene.droplet = 'fails';
  scene.source('b');
  await scene.cli.run(push);
  processStatus({
    rollout: { id: 'x', phase: 'Serving', generations: [{ ...served, state: 'Current' }] },
    instancesStatus: { '0': { ...crashed, generation: good } },
  });
  expect(await asJson('shop')).toMatchObject({
    kind: 'app',
    exitCode: 7,
    failedChange: { message: 'Error staging application: It broke.' },
    next: ['kf logs shop --recent', 'kf why shop --build'],
  });
});

it('an app whose change waits for something that is missing has its cause before the change fails', async () => {
  await scene.ok(...push);
  const { metadata } = scene.app();
  const message = "Service binding 'db' is not ready.";
  const deployment = {
    id: metadata.annotations?.[annotations.deployId] ?? '',
    phase: 'Pending' as const,
    reason: 'BindingNotReady',
    message,
  };
  scene.setStatus(kinds.app, nameOf(scene.app()), { deployment });
  expect(await asJson('shop')).toMatchObject({ state: 'waiting', cause: 'binding-not-ready', message });
  scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { ...deployment, reason: 'DropletNotAssigned' } });
  expect(await asJson('shop')).not.toHaveProperty('cause');
});

it('an app with an instance that still has time to answer has no cause, and one that is late has', async () => {
  await scene.ok(...push);
  const starting = {
    ...{ state: 'STARTING' as const, reason: 'HealthCheckFailed', cause: 'start-timeout', pod: 'shop-0123456789-0' },
    details: 'The app has not answered on port 8080 yet (18 of 30 s).',
  };
  processStatus({ instancesStatus: { '0': starting } });
  const early = await asJson('shop');
  expect(early).toMatchObject({ state: 'waiting', message: `Instance 0 of 'web' does not run: ${starting.details}`, next: [] });
  expect(early).not.toHaveProperty('cause');
  processStatus({ instancesStatus: { '0': { ...starting, state: 'CRASHED' } } });
  expect(await asJson('shop')).toMatchObject({
    state: 'failed',
    cause: 'start-timeout',
    next: ['kf push shop -t SECONDS', expect.anything()],
  });
});

describe('an app whose instance was restarted long ago, and whose readiness check fails now', () => {
  const pod = 'shop-0123456789-0';
  const details =
    'The app runs, and gets no requests because its readiness check fails: GET /ready on port 8080 is not answered with success.';

  beforeEach(async () => {
    await scene.ok(...push);
    const status = {
      ...{ name: 'application', restartCount: 1, containerID: 'c://2', ready: false, started: true, image: '', imageID: '' },
      state: { running: { startedAt: '2026-08-07T10:16:20Z' } },
      lastState: { terminated: { exitCode: 137, reason: 'OOMKilled', message: 'kept of the run before' } },
    };
    const spec = { containers: [{ name: 'application', image: 'any' }] };
    await scene.cluster.add(podType, { metadata: { name: pod, namespace: ns }, spec, status: { containerStatuses: [status] } });
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${pod}/log.*`, (call) =>
      call.text(call.query.get('previous') === 'true' ? 'of the run before\n' : 'no database\n'),
    );
    await scene.cluster.add(eventType, {
      metadata: { name: `${pod}.1`, namespace: ns },
      involvedObject: { kind: 'Pod', name: pod },
      type: 'Warning',
      reason: 'Unhealthy',
      message: 'Readiness probe failed: HTTP probe failed with statuscode: 503',
      lastTimestamp: '2026-08-07T12:00:00Z',
    });
    processStatus({
      rollout: { id: 'x', phase: 'Serving', generations: [{ ...served, state: 'Current' }] },
      instancesStatus: {
        '0': {
          state: 'STARTING',
          reason: 'HealthCheckFailed',
          cause: 'health-http',
          details,
          pod,
          generation: good,
          restarts: 1,
          exitCode: 137,
        },
      },
    });
  });

  it('is explained by the check, the words of the kubelet, and the lines of this run', async () => {
    const explained = await asJson('shop');
    expect(explained).toMatchObject({
      state: 'failed',
      cause: 'health-http',
      message: `Instance 0 of 'web' is not ready: ${details} The last check said: HTTP probe failed with statuscode: 503`,
      instance: 0,
      log: { tail: ['no database'] },
      next: ['kf set-health-check shop http --endpoint PATH', 'kf logs shop --recent'],
    });
    expect(explained).not.toHaveProperty('exitCode');
  });

  it('is advised to look at the settings of that check if it has its own', async () => {
    const [web] = scene.cluster.memory.all(kinds.process);
    const readinessHealthCheck = { type: 'http', data: { httpEndpoint: '/ready' } };
    await scene.cluster.memory.mergePatch(kinds.process, ns, nameOf(web), { spec: { readinessHealthCheck } });
    expect((await asJson('shop')).next).toEqual(['kf get-readiness-health-check shop', 'kf logs shop --recent']);
  });
});

describe('an app whose instance ended again and again, and runs now', () => {
  const pod = 'shop-0123456789-0';
  const start = Math.floor(Date.now() / 1_000) * 1_000;
  const at = (seconds: number): string => new Date(start + seconds * 1_000).toISOString();
  const end = (seconds: number) => {
    const said = 'exit_description: APP/PROC/WEB: Exited with status 137, exit_status: 137';
    const description = `index: 0, reason: CRASHED, instance: ${pod}, ${said}`;
    return JSON.stringify({ time: at(seconds), type: 'app.crash', actor: 'web', description });
  };

  beforeEach(async () => {
    await scene.ok(...push);
    processStatus({ instancesStatus: { '0': { state: 'RUNNING' } } });
    const metadata = { name: eventsName(nameOf(scene.app())), namespace: ns };
    await scene.cluster.add(configMapType, { metadata, data: { 1: end(60), 2: end(120) } });
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/${pod}/log.*`, (call) =>
      call.text(call.query.get('previous') === 'true' ? 'too slow\n' : 'of the present run\n'),
    );
    await scene.cluster.add(eventType, {
      metadata: { name: `${pod}.1`, namespace: ns },
      involvedObject: { kind: 'Pod', name: pod },
      type: 'Warning',
      reason: 'Unhealthy',
      message: 'Liveness probe failed: HTTP probe failed with statuscode: 503',
      lastTimestamp: at(110),
    });
  });

  async function hasPod(restartCount: number): Promise<void> {
    const status = {
      ...{ name: 'application', restartCount, containerID: 'c://2', ready: true, started: true, image: '', imageID: '' },
      state: { running: { startedAt: at(121) } },
    };
    const spec = { containers: [{ name: 'application', image: 'any' }] };
    await scene.cluster.add(podType, { metadata: { name: pod, namespace: ns }, spec, status: { containerStatuses: [status] } });
  }

  it('has the lines of the run that ended, the Events of its pod, and the health check that ended it', async () => {
    await hasPod(2);
    expect(await asJson('shop')).toMatchObject({
      state: 'failed',
      cause: 'health-http',
      message: expect.stringMatching(
        /^Instance 0 runs, and ended 2 times since .* Exited with status 137\. It was stopped because its health check failed\. .* statuscode: 503$/,
      ) as string,
      exitCode: 137,
      log: { tail: ['too slow'] },
      events: [{ object: `Pod ${pod}`, reason: 'Unhealthy' }],
    });
  });

  it('has no lines when another pod of its name runs', async () => {
    await hasPod(0);
    const explained = await asJson('shop');
    expect(explained).toMatchObject({ cause: 'health-http', events: [{ reason: 'Unhealthy' }] });
    expect(explained).not.toHaveProperty('log');
  });
});

it('an app that is stopped while its build runs is explained by the build', async () => {
  await scene.ok(...push);
  await scene.ok('stop', 'shop');
  const build = nameOf(scene.builds().at(-1));
  scene.setStatus(kinds.build, build, { state: 'STAGING', conditions: [] });
  expect(await asJson('shop')).toMatchObject({ kind: 'build', name: build, state: 'waiting', message: 'The build runs.' });
  scene.setStatus(kinds.build, build, { state: 'STAGED' });
  expect(await asJson('shop')).toMatchObject({ kind: 'app', state: 'well', message: "App 'shop' is stopped." });
});

it('an app whose other processes run says that web has no instances', async () => {
  await scene.ok(...push, '-i', '0');
  const [web] = scene.cluster.memory.all(kinds.process);
  if (web === undefined) throw new Error('there is no process');
  const { name: _name, uid: _uid, ...metadata } = web.metadata;
  const worker = {
    metadata: { ...metadata, namespace: ns, name: 'worker-guid' },
    spec: { ...web.spec, processType: 'worker', desiredInstances: 1 },
  };
  await scene.cluster.add(kinds.process, worker);
  expect(await asJson('shop')).toMatchObject({
    state: 'well',
    message: "App 'shop' runs; its process 'web' is scaled to no instances.",
  });
});

describe('a task of which nothing is kept', () => {
  /** With its pod, of which the last line is this. */
  async function ended(condition: { type: string; reason: string; message: string }, last: string): Promise<WhyDetails> {
    await scene.ok(...push);
    const app = nameOf(scene.app());
    const marks = { [labels.appGuid]: app, [labels.taskGuid]: 'task-guid' };
    const metadata = { name: 'task-guid', namespace: ns, labels: marks };
    await scene.cluster.add(kinds.task, { metadata, spec: { appRef: { name: app }, displayName: 'migrate', command: 'x' } });
    const conditions = [{ ...condition, status: 'True', lastTransitionTime: '' }];
    scene.setStatus(kinds.task, 'task-guid', { sequenceId: 1, memoryMB: 64, conditions });
    const spec = { containers: [{ name: 'workload', image: 'any' }] };
    await scene.cluster.add(podType, { metadata: { ...metadata, name: 'task-guid-abcde' }, spec });
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/pods/task-guid-abcde/log.*`, (call) => call.text(`${last}\n`));
    return asJson('shop', '--task', '1');
  }
  const failed = (reason: string, exitCode: number, last: string): Promise<WhyDetails> =>
    ended({ type: 'Failed', reason, message: `Failed with exit code: ${String(exitCode)}` }, last);

  it('and which succeeded has the lines that its pod still has', async () => {
    const details = await ended({ type: 'Succeeded', reason: 'JobSucceeded', message: '' }, '42 rows');
    expect(details).toMatchObject({ state: 'well', log: { tail: ['42 rows'] } });
  });

  it('has its exit code and last lines, in which a shell says that its command is missing', async () => {
    const line = '/bin/sh: 1: /nope: not found';
    expect(await failed('Error', 127, line)).toMatchObject({
      kind: 'task',
      cause: 'command-not-found',
      exitCode: 127,
      log: { tail: expect.arrayContaining([line]) as string[] },
      next: ['kf run-task shop --command COMMAND', 'kf logs shop --recent'],
    });
  });

  it('for its memory has the limit, and the command that runs it with more', async () => {
    expect(await failed('OOMKilled', 137, 'at work')).toMatchObject({
      cause: 'oom',
      message: 'The task used more memory than its limit of 64M and was ended; -m gives it more.',
      exitCode: 137,
      next: ['kf run-task shop --command COMMAND -m 128M', 'kf logs shop --recent'],
    });
  });
});
