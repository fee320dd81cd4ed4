// A space developer with kubectl: processes are scaled by their scale subresource, tasks are objects that run once. Then tasks of run-task.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCondition } from '../../src/lib/api/conditions.ts';
import type { CFProcess, CFTask } from '../../src/lib/api/types.generated.ts';
import { feed } from '../support/feed.ts';
import { Kf, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);
const api = 'korifi.cloudfoundry.org/v1alpha1';
const label = (name: string): string => `korifi.cloudfoundry.org/${name}`;
const app = 'by-kubectl';
const space = ringEnv('KF_TEST_SPACE_GUID');
const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
let kf: Kf;
let guid: string;
let web: string;

/** kubectl as the developer of the ring's space. */
async function kubectl(args: string[], input?: object): Promise<string> {
  const child = execute('kubectl', ['-n', space, ...args], { env: { ...process.env, KUBECONFIG: ringEnv('KF_TEST_DEVELOPER') } });
  feed(child.child, input === undefined ? '' : JSON.stringify(input));
  return (await child).stdout;
}

const get = async <T>(...args: string[]): Promise<T> => JSON.parse(await kubectl(['get', ...args, '-o', 'json'])) as T;

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', app, '-o', sample(1), '-m', '64M');
  await kf.ok('set-env', app, 'COLOUR', 'teal');
  guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  const spec = { appRef: { name: guid }, processType: 'worker', memoryMB: 48, diskQuotaMB: 64, desiredInstances: 1 };
  const healthCheck = { type: 'process', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } };
  const command = 'node -e "setInterval(() => {}, 1000)"';
  await kubectl(['apply', '-f', '-'], {
    apiVersion: api,
    kind: 'CFProcess',
    metadata: { name: `${guid}-worker`, namespace: space },
    spec: { ...spec, command, healthCheck },
  });
  const { items } = await get<{ items: CFProcess[] }>('cfprocesses', '-l', `${label('app-guid')}=${guid}`);
  web = items.find(({ spec: { processType } }) => processType === 'web')?.metadata.name ?? '';
});
afterAll(async () => {
  await kubectl(['delete', 'cftasks', '--all', '--wait=false']);
  await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
});

interface Pods {
  items: { metadata: { name: string; labels: Record<string, string>; deletionTimestamp?: string }; status: { phase: string } }[];
}

interface Scale {
  spec: { replicas?: number };
  status: { replicas: number; selector: string };
}

const scale = (name: string): Promise<Scale> => get<Scale>('cfprocess', name, '--subresource=scale');

/** All pods of the app, in one request, by the type of their process, together with the pods that the selector finds. */
async function look(process: string, type: string): Promise<{ own: string[]; selected: string[]; generations: string[] }> {
  const [key = '', value] = (await scale(process)).status.selector.split('=');
  const { items } = await get<Pods>('pods');
  const names = (pods: Pods['items']): string[] => pods.map(({ metadata }) => metadata.name).toSorted();
  const own = items.filter(
    ({ metadata: { labels } }) =>
      labels[label('app-guid')] === guid && labels[label('process-type')] === type && labels[label('guid')] !== undefined,
  );
  const generations = own.map(({ metadata }) => metadata.labels['kf.cloudfoundry.org/generation'] ?? '');
  return { own: names(own), selected: names(items.filter(({ metadata }) => metadata.labels[key] === value)), generations };
}

describe('the scale of a process', () => {
  test('is written by kubectl scale, and counts the running instances', async () => {
    expect(await scale(web)).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 1 } });
    await kubectl(['scale', 'cfprocess', web, '--replicas=3']);
    await until('three instances', async () => (await scale(web)).status.replicas === 3);
    const { own, selected } = await look(web, 'web');
    expect([own.length, selected]).toEqual([3, own]);
    expect((await kf.ok('app', app)).stdout).toMatch(/instances: +3\/3/);
  });

  test('selects the pods of its process and no others, in the old version and in the new one', async () => {
    await until('the worker', async () => (await look(`${guid}-worker`, 'worker')).own.length === 1);
    const seen = new Set((await look(web, 'web')).generations);
    const pushing = kf.run(['push', app, '-o', sample(2), '-m', '64M']);
    let isPushed = false;
    const ended = pushing.finally(() => (isPushed = true));
    const lookOnce = async (): Promise<void> => {
      const { own, selected, generations } = await look(web, 'web');
      expect(selected).toEqual(own);
      for (const generation of generations) seen.add(generation);
    };
    while (!isPushed) await lookOnce();
    expect((await ended).code).toBe(0);
    await lookOnce();
    expect(seen.size).toBe(2);
    const worker = await look(`${guid}-worker`, 'worker');
    expect(worker.own).not.toEqual([]);
    expect(worker.selected).toEqual(worker.own);
  });

  test('can be 0, and then the process has no pods', async () => {
    await kubectl(['scale', 'cfprocess', `${guid}-worker`, '--replicas=0']);
    await until('the worker to end', async () => (await look(`${guid}-worker`, 'worker')).own.length === 0);
    const { spec, status } = await scale(`${guid}-worker`);
    // The API server leaves a zero out of the spec of a Scale.
    expect([spec.replicas ?? 0, status.replicas]).toEqual([0, 0]);
    // The version before the push still exists for some seconds.
    await until('the instances of web alone', async () => (await look(web, 'web')).own.length === 3);
  });

  test('is set by an autoscaler that follows the metrics, and a push leaves it as it is', async () => {
    const instances = async (): Promise<number | undefined> => (await get<CFProcess>('cfprocess', web)).spec.desiredInstances;
    await kubectl(['scale', 'cfprocess', web, '--replicas=1']);
    // The app always uses more than a twentieth of its 64M.
    const made = await kf.ok('autoscale', app, '--min', '1', '--max', '2', '--memory', '5');
    expect(made.stdout).toMatch(/^web +1 +1 +2 +memoryutil +5% /m);
    await until('a second instance', async () => (await instances()) === 2);
    await until('what is measured', async () => / memoryutil +5% +\d+%$/m.test((await kf.ok('autoscale', app)).stdout));
    const kept = await kf.ok('push', app, '-o', sample(1), '-i', '1');
    expect(kept.stderr).toContain("The autoscaler of process 'web' sets its instances");
    expect(await instances()).toBe(2);
    expect((await kf.ok('autoscale', app, '--off')).stdout).toContain('No autoscaler found.');
    expect((await kf.ok('events', app)).stdout).toMatch(/audit\.app\.process\.scale .*instances: 2/);
  });
});

describe('a task written by hand', () => {
  async function run(name: string, spec: Partial<CFTask['spec']>, condition: 'Succeeded' | 'Failed'): Promise<CFTask> {
    const metadata = { name: `${guid}-${name}`, namespace: space };
    await kubectl(['apply', '-f', '-'], { apiVersion: api, kind: 'CFTask', metadata, spec: { appRef: { name: guid }, ...spec } });
    await kubectl(['wait', `--for=condition=${condition}`, 'cftask', metadata.name, '--timeout=120s']);
    return get<CFTask>('cftask', metadata.name);
  }

  const logs = (name: string): Promise<string> => kubectl(['logs', '-l', `${label('task-guid')}=${guid}-${name}`, '--tail=-1']);

  test('runs with the code, the environment and the sizes of its app, succeeds, and its pod has its output', async () => {
    const command = 'echo "painted $COLOUR with $MEMORY_LIMIT in $(ls /app | grep server)"';
    const task = await run('paint', { command, memoryMB: 40, diskMB: 64 }, 'Succeeded');
    expect(task.status).toMatchObject({ sequenceId: 1, memoryMB: 40, diskQuotaMB: 64 });
    expect(findCondition(task, 'Failed')?.status).not.toBe('True');
    expect(await logs('paint')).toBe('painted teal with 40m in server.cjs\n');
    const { items } = await get<{ items: { spec: { containers: { resources: { limits: object } }[] } }[] }>(
      'pods',
      '-l',
      `${label('task-guid')}=${guid}-paint`,
    );
    expect(items.map(({ spec }) => spec.containers[0]?.resources.limits)).toEqual([{ memory: '40Mi', 'ephemeral-storage': '64Mi' }]);
  });

  test('stays readable in the log of its app for six hours after its end', async () => {
    const job = await get<{ spec: { ttlSecondsAfterFinished?: number } }>('job', `${guid}-paint`);
    expect(job.spec.ttlSecondsAfterFinished).toBe(6 * 3600);
    expect((await kf.ok('logs', app, '--recent')).stdout).toContain('painted teal with');
  });

  test('whose command fails has failed with its exit code, runs once, and its output is in the log', async () => {
    const task = await run('fail', { command: 'echo "no paint"; exit 7' }, 'Failed');
    expect(findCondition(task, 'Failed')).toMatchObject({ status: 'True', message: 'Failed with exit code: 7' });
    expect(findCondition(task, 'Succeeded')?.status).not.toBe('True');
    expect(task.status?.sequenceId).toBe(2);
    expect(await logs('fail')).toBe('no paint\n');
    const { items } = await get<Pods>('pods', '-l', `${label('task-guid')}=${guid}-fail`);
    expect(items.map(({ status }) => status.phase)).toEqual(['Failed']);
  });

  test('without a command runs the command of the process type that it names, until it is canceled', async () => {
    const metadata = { name: `${guid}-work`, namespace: space };
    const object = { apiVersion: api, kind: 'CFTask', metadata, spec: { appRef: { name: guid }, processType: 'worker' } };
    await kubectl(['apply', '-f', '-'], object);
    const pods = (): Promise<Pods> => get<Pods>('pods', '-l', `${label('task-guid')}=${metadata.name}`);
    await until('the task to run', async () => (await pods()).items[0]?.status.phase === 'Running');
    expect((await get<CFTask>('cftask', metadata.name)).status).toMatchObject({ memoryMB: 48, diskQuotaMB: 64 });
    await kubectl(['apply', '-f', '-'], { ...object, spec: { ...object.spec, canceled: true } });
    await kubectl(['wait', '--for=condition=Canceled', 'cftask', metadata.name, '--timeout=120s']);
    await until('its pod to end', async () =>
      (await pods()).items.every(({ metadata: { deletionTimestamp } }) => deletionTimestamp !== undefined),
    );
  });
});

describe('a task of run-task', () => {
  const runTask = (...args: string[]) => kf.run(['run-task', app, ...args]);
  const podsOf = (task: string): Promise<Pods> => get<Pods>('pods', '-l', `${label('task-guid')}=${task}`);

  test('runs with the variables of the app, and --wait ends as it ended', async () => {
    const command = 'echo "made $COLOUR with $MEMORY_LIMIT by $$, not \\$(COLOUR)"';
    const made = await runTask('-c', command, '--name', 'make', '-m', '40M', '-k', '64M', '--wait');
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('Task has completed successfully.\nOK\n')]);
    expect((await kf.ok('logs', app, '--recent')).stdout).toMatch(
      / \[APP\/TASK\/make\/0\] OUT made teal with 40m by \d+, not \$\(COLOUR\)$/m,
    );
    const failed = await runTask('-c', 'exit 3', '--name', 'break', '--wait');
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('Failed with exit code: 3')]);
    const rows = (await kf.ok('tasks', app)).stdout.split('\n').slice(3, 5);
    expect(rows.map((row) => row.split(/ {3,}/).slice(1, 3))).toEqual([
      ['break', 'FAILED'],
      ['make', 'SUCCEEDED'],
    ]);
    expect((await kf.ok('task', app, rows[1]?.split(' ')[0] ?? '')).stdout).toMatch(/^memory in mb: +40\ndisk in mb: +64$/m);
  });

  test('whose pod is deleted has failed, and does not run again', async () => {
    const { stdout } = await kf.ok('run-task', app, '-c', 'trap "sleep 5; exit 1" TERM; sleep 600 & wait', '--json');
    const { id, guid: task } = (JSON.parse(stdout) as { result: { id: number; guid: string } }).result;
    await until('the task to run', async () => (await podsOf(task)).items[0]?.status.phase === 'Running');
    await kubectl(['delete', 'pod', '-l', `${label('task-guid')}=${task}`]);
    await until('the task to fail', async () => /^state: +FAILED$/m.test((await kf.ok('task', app, String(id))).stdout));
    const created = await get<{ items: { count?: number }[] }>(
      'events',
      '--field-selector',
      `involvedObject.kind=Job,involvedObject.name=${task},reason=SuccessfulCreate`,
    );
    expect(created.items.map(({ count }) => count)).toEqual([1]);
  });

  test('is ended by terminate-task, and has failed then', async () => {
    const { stdout } = await kf.ok('run-task', app, '-c', 'sleep 600', '--json');
    const { id, guid: task } = (JSON.parse(stdout) as { result: { id: number; guid: string } }).result;
    await until('the task to run', async () => (await podsOf(task)).items[0]?.status.phase === 'Running');
    await kf.ok('terminate-task', app, String(id));
    await until('its pod to end', async () =>
      (await podsOf(task)).items.every(({ metadata: { deletionTimestamp } }) => deletionTimestamp !== undefined),
    );
    expect((await kf.ok('task', app, String(id))).stdout).toMatch(/^state: +FAILED$/m);
  });
});
