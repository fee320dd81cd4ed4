// A space whose tasks have ended accepts new ones without an end. The bundled controller runs here with its own token; tasks that are
// cancelled at once end without a pod.

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { parse, stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCondition } from '../../src/lib/api/conditions.ts';
import type { ConfigMap } from '../../src/lib/api/core.ts';
import { eventsName, mostEvents, readEvents } from '../../src/lib/api/event-log.ts';
import { annotations } from '../../src/lib/api/group.ts';
import type { AppEvent } from '../../src/lib/api/results.ts';
import type { CFTask } from '../../src/lib/api/types.generated.ts';
import { buildLimits, limitsOf } from '../../src/templates/limits.ts';
import { until } from '../support/until.ts';
import { controllerAccount, infoOf, roleBinding } from './controller-scene.ts';
import { ask, installKinds, installPolicies, installRoles, kubectl, kubectlJson, makeNamespace, makeSpaceLike } from './kubectl.ts';

const run = Date.now().toString(36);
const [space, root, developer] = [`tasks-${run}`, `tasks-root-${run}`, `tasks-dev-${run}`];
const group = 'korifi.cloudfoundry.org';
const apiVersion = `${group}/v1alpha1`;
const rbac = 'rbac.authorization.k8s.io';
const folder = mkdtempSync(join(tmpdir(), 'kf-tasks-'));
const said: string[] = [];
let controller: ChildProcess | undefined;

const bound = (role: string, subject: object, namespace?: string): object => roleBinding(role, subject, { suffix: run, namespace });

const info = infoOf(root);

const of = (kind: string, name: string, spec: object): object => ({ apiVersion, kind, metadata: { name, namespace: space }, spec });
const lifecycle = { type: 'docker', data: { stack: '' } };

/** An app with a droplet. */
async function makeApp(name: string): Promise<void> {
  const build = { appRef: { name }, packageRef: { name: 'p' }, lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1 };
  await kubectl(['create', '-f', '-'], {
    input: [
      // First, as a push does: times of creation have whole seconds, and the events are in their order.
      of('CFApp', name, {
        displayName: name,
        desiredState: 'STOPPED',
        lifecycle,
        envSecretName: 'env',
        currentDropletRef: { name: `droplet-${name}` },
      }),
      of('CFBuild', `droplet-${name}`, build),
    ],
  });
  const status = { state: 'STAGED', droplet: { stack: '', registry: { image: 'registry.invalid/x:1' } } };
  const patch = JSON.stringify({ status });
  await kubectl(['patch', 'cfbuild', '-n', space, `droplet-${name}`, '--subresource=status', '--type=merge', '-p', patch]);
}

const task = (name: string, app: string, canceled: boolean): object =>
  of('CFTask', name, { appRef: { name: app }, command: 'true', ...(canceled ? { canceled } : {}) });
const tasks = async (): Promise<CFTask[]> => (await kubectlJson<{ items: CFTask[] }>(['get', 'cftasks', '-n', space])).items;
const hasEnded = (one: CFTask): boolean => ['Succeeded', 'Failed'].some((type) => findCondition(one, type)?.status === 'True');
const names = (all: readonly CFTask[]): string[] => all.map(({ metadata }) => metadata.name ?? '').toSorted();

const countedMeanwhile = 'Operation cannot be fulfilled on resourcequotas "kf-limits"';

/** Creates tasks as a developer does, and waits until they have ended: the remaining ones, and those that were deleted. */
async function runTasks(app: string, from: number, count: number): Promise<void> {
  let missing = Array.from({ length: count }, (_, index) => `${app}-${from + index}`);
  while (missing.length > 0) {
    const input = missing.map((name) => task(name, app, true));
    const { stdout, stderr } = await ask(['create', '-f', '-'], { input, as: developer });
    // The cluster counts deletions while it admits new objects, and sometimes asks to try again.
    expect(stderr.split('\n').filter((line) => line !== '' && !line.includes(countedMeanwhile))).toEqual([]);
    missing = missing.filter((name) => !stdout.includes(`/${name} created`));
  }
  const open = async (): Promise<string[]> => names((await tasks()).filter((one) => !hasEnded(one)));
  await until(`the tasks of ${app} to end (the controller says: ${said.slice(-3).join('')})`, async () =>
    (await open()).every((name) => !name.startsWith(`${app}-`)),
  );
}

interface Quota {
  spec: { hard: Record<string, string> };
  status?: { used?: Record<string, string> };
}

/** The quota as the controller creates it. The cluster looks for new kinds every 30 s, and never counts them for an earlier quota. */
async function limitSpace(): Promise<boolean> {
  await kubectl(['delete', 'resourcequota', '-n', space, 'kf-limits', '--ignore-not-found']);
  await kubectl(['create', '-f', '-'], { input: buildLimits(space, limitsOf('space')) });
  await sleep(2_000);
  const { spec, status } = await kubectlJson<Quota>(['get', 'resourcequota', '-n', space, 'kf-limits']);
  return Object.keys(spec.hard).every((resource) => resource in (status?.used ?? {}));
}

/** The program as it runs in a cluster, with the rights that setup gives it. */
async function startController(): Promise<void> {
  const file = join(folder, 'kubeconfig');
  const config = parse(readFileSync(process.env['KF_TEST_KUBECONFIG'] ?? '', 'utf8')) as { users: { user: object }[] };
  const token = (await kubectl(['create', 'token', controllerAccount.name, '-n', controllerAccount.namespace])).trim();
  for (const user of config.users) user.user = { token };
  writeFileSync(file, stringify(config), { mode: 0o600 });
  const program = join(import.meta.dirname, '../../dist/controller/controller.mjs');
  controller = spawn(process.execPath, [program, '--reconcilers', 'task,task-workload,task-retention,app-events'], {
    env: { PATH: process.env['PATH'] ?? '', KUBECONFIG: file, KF_ROOT_NAMESPACE: root },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  controller.stdout?.setEncoding('utf8').on('data', (text: string) => said.push(text));
}

beforeAll(async () => {
  await installKinds();
  await installRoles();
  await installPolicies();
  await makeSpaceLike(space);
  await makeNamespace(root);
  await ask(['create', 'serviceaccount', controllerAccount.name, '-n', controllerAccount.namespace]);
  await kubectl(['create', '-f', '-'], {
    input: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kf-info', namespace: root }, data: { 'info.json': JSON.stringify(info) } },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'env', namespace: space } },
      bound('kf-controller', controllerAccount),
      bound('kf-controller-system', controllerAccount, 'kf-system'),
      bound('kf-controller-space', controllerAccount, space),
      bound('korifi-controllers-space-developer', { apiGroup: rbac, kind: 'User', name: developer }, space),
    ],
  });
  await until('the quota to count all kinds', limitSpace);
  for (const app of ['steady', 'busy']) await makeApp(app);
  await startController();
});

afterAll(async () => {
  const ended = new Promise((resolve) => controller?.once('exit', resolve));
  if (controller?.kill() === true) await ended;
  await kubectl(['delete', 'clusterrolebinding', `kf-controller-${run}`]);
  await kubectl(['delete', 'rolebinding', '-n', 'kf-system', `kf-controller-system-${run}`]);
  await kubectl(['delete', 'lease', '-n', 'kf-system', 'kf-controller', '--ignore-not-found']);
  await kubectl(['delete', 'namespace', space, root, '--wait=false']);
  rmSync(folder, { recursive: true, force: true });
});

describe('a space that may hold 200 tasks', () => {
  test('accepts any number of tasks one after the other, and keeps the newest finished tasks of each app and all unfinished ones', async () => {
    await runTasks('steady', 1, 3);
    // There is no node, so this one never ends.
    await kubectl(['create', '-f', '-'], { input: task('running', 'busy', false), as: developer });
    await until('it to start', async () => (await tasks()).some((one) => findCondition(one, 'Started')?.status === 'True'));
    const before = (await tasks()).filter(({ metadata }) => metadata.name === 'running' || metadata.name?.startsWith('steady-') === true);
    expect(before).toHaveLength(4);

    for (let from = 1; from <= 220; from += 44) await runTasks('busy', from, 44);

    // Half of the 200 that the running one leaves.
    await until('the surplus to go', async () => (await tasks()).filter(hasEnded).length <= 99);
    const left = await tasks();
    const uids = new Set(left.map(({ metadata }) => metadata.uid));
    expect(before.filter(({ metadata }) => !uids.has(metadata.uid))).toEqual([]);
    const numbers = left.flatMap(({ spec, status }) => (spec.appRef?.name === 'busy' ? [status?.sequenceId ?? 0] : []));
    expect(numbers.length).toBeGreaterThanOrEqual(31);
    expect(Math.max(...numbers)).toBe(221);
    await runTasks('busy', 1_000, 1);
    expect((await tasks()).find(({ metadata }) => metadata.name === 'busy-1000')?.status?.sequenceId).toBe(222);
  });

  test('each app has the newest 200 of its events, which nobody but the controller writes', async () => {
    const eventsOf = async (app: string): Promise<AppEvent[]> =>
      readEvents(await kubectlJson<ConfigMap>(['get', 'configmap', '-n', space, eventsName(app)], { as: developer }));
    await until('the last task to be recorded', async () => (await eventsOf('busy')).at(-1)?.description === 'name: busy-1000');
    expect(await eventsOf('busy')).toHaveLength(mostEvents);
    const steady = (await eventsOf('steady')).map(({ type, description }) => `${type} ${description}`);
    expect(steady.slice(0, 2)).toEqual(['audit.app.create guid: steady', 'audit.app.build.create guid: droplet-steady']);
    expect(steady).toEqual(expect.arrayContaining(['audit.app.task.create name: steady-1', 'audit.app.task.create name: steady-3']));
    const patch = ['patch', 'configmap', '-n', space, eventsName('steady'), '--type=merge', '-p', '{"data":{"1":null}}'];
    expect((await ask(patch, { as: developer })).stderr).toContain('cannot patch resource "configmaps"');
    const start = JSON.stringify({ spec: { desiredState: 'STARTED' }, metadata: { annotations: { [annotations.changedBy]: developer } } });
    await kubectl(['patch', 'cfapp', '-n', space, 'steady', '--type=merge', '-p', start], { as: developer });
    const started = { type: 'audit.app.start', actor: developer, description: 'state: STARTED' };
    await until('the start to be recorded', async () =>
      (await eventsOf('steady')).some(({ time: _, ...event }) => isDeepStrictEqual(event, started)),
    );
  });

  test('deletes the tasks of a deleted app, also a running one', async () => {
    await kubectl(['delete', 'cfapp', '-n', space, 'busy', '--cascade=background'], { as: developer });
    await until('its tasks to go', async () => names(await tasks()).every((name) => name.startsWith('steady-')));
    expect(names(await tasks())).toEqual(['steady-1', 'steady-2', 'steady-3']);
  });
});
