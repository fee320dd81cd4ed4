// A controller whose API server goes away, that gets thousands of changes of its apps at once, or finds objects that nobody can work with: the work of others goes on.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findCondition } from '../../src/lib/api/conditions.ts';
import { kinds } from '../../src/lib/api/group.ts';
import type { CFApp, CFTask } from '../../src/lib/api/types.generated.ts';
import { connect } from '../../src/lib/kube/client.ts';
import { reportTime } from '../support/figures.ts';
import { until } from '../support/until.ts';
import { ask, kubectl, kubectlJson } from './kubectl.ts';
import { installScene, removeScene, startReplica, type Replica } from './replica.ts';

/** How long the API server is away; `npm test -- api --all` gives 60 s. */
const outageMs = Number(process.env['KF_TEST_OUTAGE_MS'] ?? '8000');
/** Each passes all policies of kf; `npm test -- api --all` gives 10,000. */
const stormEvents = Number(process.env['KF_TEST_STORM_EVENTS'] ?? '1500');
/** A storm of 1,500 took 10 to 17 s on two cores. */
const longMs = 900_000;
const run = Date.now().toString(36);
const space = `overload-${run}`;
const folder = mkdtempSync(join(tmpdir(), 'kf-overload-'));
const scene = { run, space, root: `overload-root-${run}`, folder };
const apiVersion = 'korifi.cloudfoundry.org/v1alpha1';
const lifecycle = { type: 'docker', data: { stack: '' } };
const replicas: Replica[] = [];
let counter = 0;
/** How long a task takes when nothing else is to be done, on this machine and in this run. */
let quietMs = 0;
/** So much longer than a quiet task another one may take: the machine does other work too, and each look at the task is a process. */
const delayMs = 10_000;

const of = (kind: string, name: string, spec: object): object => ({ apiVersion, kind, metadata: { name, namespace: space }, spec });

/** A canceled task without an app ends without a pod: only the controller is needed. @returns milliseconds until it has ended */
async function taskEnds(): Promise<number> {
  const name = `task-${(counter += 1)}`;
  await kubectl(['create', '-f', '-'], { input: of('CFTask', name, { appRef: { name: 'nobody' }, command: 'true', canceled: true }) });
  const started = Date.now();
  await until(`${name} to end`, async () => {
    const task = await kubectlJson<CFTask>(['get', 'cftask', '-n', space, name]);
    return ['Succeeded', 'Failed'].some((type) => findCondition(task, type)?.status === 'True');
  });
  return Date.now() - started;
}

/** A task ends about as soon as one with nothing beside it. */
async function expectNoDelay(what: string): Promise<void> {
  const ms = await taskEnds();
  reportTime(what, ms);
  expect(ms, `${what}, and without that in ${String(quietMs)} ms`).toBeLessThan(quietMs + delayMs);
}

beforeAll(async () => {
  await installScene(scene);
  replicas.push(await startReplica(scene, `kf-controller-overload-${run}`, 'app,app-events,process,task,task-workload'));
  // The first one waits for the caches of the controller.
  await taskEnds();
  quietMs = await taskEnds();
  reportTime('a task ends with nothing beside it', quietMs);
});

afterAll(async () => {
  await removeScene(scene, replicas);
  rmSync(folder, { recursive: true, force: true });
});

test('objects that nobody can work with delay no others', async () => {
  const poison = Array.from({ length: 20 }, (_, n) => [
    of('CFApp', `bad-${n}`, { displayName: `bad-${n}`, desiredState: 'STARTED', lifecycle, envSecretName: 'none' }),
    of('CFTask', `bad-task-${n}`, { appRef: { name: `bad-${n}` }, command: 'true' }),
    of('CFTask', `bad-ref-${n}`, { appRef: { name: 'does-not-exist' }, command: 'true' }),
    of('CFProcess', `bad-process-${n}`, {
      appRef: { name: 'does-not-exist' },
      processType: 'web',
      desiredInstances: 1,
      memoryMB: 1,
      diskQuotaMB: 1,
      healthCheck: { type: 'port', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } },
    }),
  ]).flat();
  await kubectl(['create', '-f', '-'], { input: poison });
  const huge = of('CFApp', 'bad-huge', { displayName: 'bad-huge', desiredState: 'STARTED', lifecycle, envSecretName: 'none' });
  const annotations = { 'example.com/huge': 'x'.repeat(60_000) };
  await kubectl(['create', '-f', '-'], { input: { ...huge, metadata: { name: 'bad-huge', namespace: space, annotations } } });
  await expectNoDelay('a task ends beside 81 objects that nobody can work with');
  expect((await ask(['get', 'cfapp', '-n', space, 'bad-0'])).code).toBe(0);
});

test(
  'a storm of events delays no others, and the process lives on',
  async () => {
    const cluster = await connect({ env: { KUBECONFIG: process.env['KF_TEST_KUBECONFIG'] ?? '' }, userAgent: 'storm' });
    const [spec, names] = [
      { desiredState: 'STOPPED', lifecycle, envSecretName: 'env' },
      Array.from({ length: 20 }, (_, n) => `storm-${n}`),
    ];
    await kubectl(['create', '-f', '-'], { input: names.map((name) => of('CFApp', name, { ...spec, displayName: name })) });
    const isSeen = (name: string): Promise<boolean> =>
      kubectlJson<CFApp>(['get', 'cfapp', '-n', space, name]).then((app) => findCondition(app, 'Claimed')?.status === 'True');
    for (const name of names) await until(`the controller to work on ${name}`, () => isSeen(name));
    const storm = async (name: string): Promise<void> => {
      for (let n = 0; n < stormEvents / names.length; n += 1)
        await cluster.mergePatch(kinds.app, space, name, { metadata: { annotations: { 'example.com/n': String(n) } } });
    };
    const started = Date.now();
    const whole = Promise.all(names.map(storm));
    await sleep(1_000);
    // The storm ends before the test does, however long the task took.
    await expectNoDelay('a task ends during a storm').finally(() => whole);
    reportTime(`a storm of ${stormEvents} events`, Date.now() - started);
    await expectNoDelay('a task ends after a storm');
    cluster.close();
    expect(replicas[0]?.process.exitCode).toBeNull();
  },
  longMs,
);

test(
  'an API server that is away for a while finds the same process at work again',
  async () => {
    const [replica] = replicas;
    await replica?.line.cut();
    await sleep(outageMs);
    await replica?.line.restore();
    reportTime('a task ends after the API server is back', await taskEnds());
    expect(replica?.process.exitCode).toBeNull();
  },
  longMs,
);
