// Commands for tasks, with the controller's own reconcilers behind the served cluster; the tests end the Jobs, as the cluster would.

import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { taskReconciler } from '../../../src/controller/tasks/task.ts';
import { taskWorkloadReconciler } from '../../../src/controller/tasks/workload.ts';
import { eventType, jobType, secretType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { resource, type KubeObject } from '../../../src/lib/api/object.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import type { CFTask } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';
import { patienceMs } from '../../support/until.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
const place = 'in org example-org / space example-space as alice...';
let cluster: ServedCluster;
let cli: Cli;
let stopController: () => Promise<void>;

beforeEach(async () => {
  cluster = await (await ServedCluster.start()).installed();
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  stopController = runController();
});
afterEach(async () => {
  await stopController();
  await cluster.stop();
  cli.remove();
});
afterAll(() => bundle.remove());

function runController(): () => Promise<void> {
  const aborter = new AbortController();
  const running = new Manager({
    cluster: cluster.memory,
    sources: sources('cf'),
    reconcilers: [taskReconciler, taskWorkloadReconciler],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
    rootNamespace: 'cf',
    log: createLogger('error', () => undefined),
  }).run(aborter.signal);
  return async () => {
    aborter.abort();
    await running;
  };
}

/** An app with a droplet, and processes by type with their commands. */
async function addApp(commands: Record<string, string> = { web: 'serve' }, droplet = 'build-1'): Promise<void> {
  const lifecycle = { type: 'buildpack' as const, data: { stack: '' } };
  await cluster.add(secretType, { metadata: { name: 'env', namespace: ns }, data: {} });
  await cluster.add(kinds.app, {
    metadata: { name: 'shop-guid', namespace: ns },
    spec: { displayName: 'shop', desiredState: 'STOPPED', lifecycle, envSecretName: 'env', currentDropletRef: { name: droplet } },
  });
  await cluster.add(kinds.build, {
    metadata: { name: 'build-1', namespace: ns },
    spec: { appRef: { name: 'shop-guid' }, packageRef: { name: 'p' }, lifecycle, stagingMemoryMB: 1, stagingDiskMB: 1 },
  });
  const status = { state: 'STAGED', droplet: { stack: '', registry: { image: 'shop:1' } } };
  await cluster.memory.mergePatch(kinds.build, ns, 'build-1', { status }, { subresource: 'status' });
  for (const [type, command] of Object.entries(commands)) {
    await cluster.add(kinds.process, {
      metadata: { name: `shop-${type}`, namespace: ns, labels: { [labels.appGuid]: 'shop-guid' } },
      spec: {
        ...{ appRef: { name: 'shop-guid' }, processType: type, command, memoryMB: 64, diskQuotaMB: 512 },
        healthCheck: { type: 'process', data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } },
      },
    });
  }
}

const tasks = () => cluster.memory.all(kinds.task);
const onlyTask = (): CFTask['spec'] | undefined => tasks()[0]?.spec;

/** As the cluster does when the pod of the only unfinished task has ended with that code, and with these last lines. */
async function endTask(exitCode: number, message = ''): Promise<void> {
  const job = await vi.waitFor(
    () => {
      const found = cluster.memory.all(jobType).find(({ status }) => status?.conditions === undefined);
      if (found === undefined) throw new Error('no Job yet');
      return found;
    },
    { timeout: patienceMs, interval: 5 },
  );
  const name = job.metadata.name ?? '';
  const state = { terminated: { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', message } };
  await cluster.add(podType, {
    metadata: { name: `${name}-pod`, namespace: ns, ...job.spec?.template.metadata },
    spec: { containers: [{ name: 'workload', image: 'shop:1' }] },
    status: { containerStatuses: [{ name: 'workload', image: 'shop:1', imageID: '', ready: false, restartCount: 0, state }] },
  });
  const conditions = [{ type: exitCode === 0 ? 'Complete' : 'Failed', status: 'True' }];
  await cluster.memory.mergePatch(jobType, ns, name, { status: { conditions } }, { subresource: 'status' });
}

/** The Job controller has tried to make the pod for a while. */
async function refusePod(message: string): Promise<void> {
  await vi.waitFor(() => expect(cluster.memory.all(jobType)[0]?.spec?.suspend).toBe(false), patienceMs);
  const { name = '', uid = '' } = cluster.memory.all(jobType)[0]?.metadata ?? {};
  await cluster.add(eventType, { metadata: { name: 'refused', namespace: ns }, involvedObject: { uid }, reason: 'FailedCreate', message });
  await cluster.memory.mergePatch(jobType, ns, name, { metadata: { creationTimestamp: '2026-08-07T10:16:20Z' } });
}

const runTask = (...args: string[]): Promise<CliRun> => cli.run(['run-task', 'shop', ...args]);

describe('run-task', () => {
  it('creates a task and prints its name and number, with OK twice as cf', async () => {
    await addApp();
    const run = await runTask('--command', 'rake db:migrate', '--name', 'migrate', '-m', '32M', '-k', '1G');
    expect(run.code).toBe(0);
    expect(run.stdout).toBe(
      [
        `Creating task for app shop ${place}`,
        'Task has been submitted successfully for execution.',
        'OK',
        '',
        'task name:   migrate',
        'task id:     1',
        'OK',
        '',
        '',
      ].join('\n'),
    );
    const [task] = tasks();
    expect(task?.spec).toEqual({
      ...{ appRef: { name: 'shop-guid' }, displayName: 'migrate', command: 'rake db:migrate', memoryMB: 32, diskMB: 1024 },
    });
    expect(task?.metadata).toMatchObject({
      labels: { 'korifi.cloudfoundry.org/app-guid': 'shop-guid' },
      annotations: { 'kf.cloudfoundry.org/changed-by': 'alice' },
    });
  });

  it('gives the name of the task to the log of its pod', async () => {
    await addApp();
    const run = cli.run(['rt', 'shop', '-c', 'rake', '--name', 'night run', '-w']);
    await endTask(0);
    expect((await run).code).toBe(0);
    const [pod] = cluster.memory.all(podType);
    cluster.memory.logTexts.set(`${ns}/${pod?.metadata.name}`, '2026-08-07T10:16:20.459123456Z done\n');
    const { stdout } = await cli.run(['logs', 'shop', '--recent']);
    expect(stdout).toContain('   2026-08-07T10:16:20.45+0000 [APP/TASK/night run/0] OUT done\n');
  });

  it('without --name makes up a name, in JSON too', async () => {
    await addApp();
    const { status, result } = JSON.parse((await runTask('-c', 'rake', '--json')).stdout) as Record<string, unknown>;
    const [task] = tasks();
    expect([status, result]).toEqual([
      0,
      {
        ...{ id: 1, guid: task?.metadata.name, name: task?.spec.displayName, command: 'rake', memoryMB: 64, diskMB: 512 },
        ...{ state: expect.stringMatching('PENDING|RUNNING') as string, startTime: task?.metadata.creationTimestamp },
      },
    ]);
    expect(task?.spec.displayName).toMatch(/^[0-9a-f]{8}$/);
  });

  it('--wait ends with the task', async () => {
    await addApp();
    const run = runTask('-c', 'rake', '--name', 'migrate', '--wait');
    await endTask(0);
    const { code, stdout } = await run;
    expect(code).toBe(0);
    expect(stdout.slice(stdout.indexOf('task name:'))).toBe(
      [
        'task name:   migrate',
        'task id:     1',
        '',
        'Waiting for task to complete execution...',
        '',
        'Task has completed successfully.',
        'OK',
        '',
        '',
      ].join('\n'),
    );
  });

  it('--wait fails when the task fails, and says how it ended', async () => {
    await addApp();
    const run = runTask('-c', 'exit 7', '--wait');
    await endTask(7);
    const { code, stdout, stderr } = await run;
    expect([code, stdout.endsWith('Waiting for task to complete execution...\nFAILED\n')]).toEqual([1, true]);
    expect(stderr).toContain(
      'Task failed to complete successfully\nFailed with exit code: 7\n\nTIP:\n   kf why shop --task 1\n   kf logs shop --recent\n',
    );
  });

  it('--wait shows the last lines of a task that failed, as of a failed push, also with --json', async () => {
    await addApp();
    const run = runTask('-c', 'rake', '--wait');
    await endTask(7, 'migrating\nno such table\n');
    expect((await run).stderr).toContain(
      'Task failed to complete successfully\nFailed with exit code: 7\n   migrating\n   no such table\n\nTIP:\n',
    );
    const asJson = runTask('-c', 'rake', '--wait', '--json');
    await endTask(127, `${Array.from({ length: 50 }, (_, at) => String(at)).join('\n')}\nsh: rake: not found\n`);
    const { error } = JSON.parse((await asJson).stdout) as { error: { details: object } };
    expect(error.details).toMatchObject({
      ...{ task: { state: 'FAILED' }, cause: 'command-not-found', container: 'workload', exitCode: 127 },
      ...{ logHead: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'], logOmitted: 11 },
      logTail: expect.arrayContaining(['21', 'sh: rake: not found']) as string[],
    });
  });

  it('says why a task has no number yet', async () => {
    await addApp({}, 'no-such-build');
    const run = await cli.run(['run-task', 'shop', '-c', 'rake', '--name', 'early'], {
      kill: { after: 'no-such-build', signal: 'SIGINT' },
    });
    expect(run.code).toBe(130);
    expect(run.stderr).toContain("Waiting: The build 'no-such-build' does not exist or has no droplet.");
    expect(run.stderr).toContain('TIP:\n   Task early goes on:\n   kf tasks shop\n');
  });

  it('--wait ends when the task is deleted', async () => {
    await addApp();
    const run = runTask('-c', 'rake', '--name', 'lost', '--wait');
    await vi.waitFor(() => expect(cluster.memory.all(jobType)).toHaveLength(1), patienceMs);
    await cluster.memory.delete(kinds.task, ns, tasks()[0]?.metadata.name ?? '');
    expect(await run).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Task 'lost' was deleted meanwhile\.\n[^]*\n {3}kf tasks shop\n/) as string,
    });
  });

  it('an interrupted --wait leaves the task alone and names the commands for it', async () => {
    await addApp();
    const run = await cli.run(['run-task', 'shop', '-c', 'rake', '-w', '--name', 'long'], {
      kill: { after: 'Waiting for task to complete', signal: 'SIGINT' },
    });
    expect(run).toMatchObject({ code: 130, signal: null });
    expect(run.stderr).toContain('Interrupted.\n\nTIP:\n   Task long goes on:\n   kf task shop 1\n   kf terminate-task shop 1\n');
    expect(onlyTask()?.canceled).toBeUndefined();
  });

  it('--process takes the command of that process type, and its sizes', async () => {
    await addApp({ web: 'serve', batch: 'bin/batch --all' });
    const { stdout } = await runTask('--process', 'batch', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ result: { command: 'bin/batch --all', process: 'batch', memoryMB: 64 } });
    expect(onlyTask()).toMatchObject({ command: 'bin/batch --all', processType: 'batch' });
  });

  it('with neither command nor process runs the process type task', async () => {
    await addApp({ web: 'serve', task: 'rake' });
    expect((await runTask()).code).toBe(0);
    expect(onlyTask()).toMatchObject({ command: 'rake', processType: 'task' });
  });

  it.each([
    [[], 'Process task not found\n', "Processes of app 'shop': web, silent"],
    [['--process', 'batch'], 'Process batch not found\n', 'Processes of app'],
    [['--process', 'silent'], "Process 'silent' of app 'shop' has no command of its own.\n", 'run-task shop --process silent --command'],
    [['-c', 'rake', '-m', '12'], 'Byte quantity must be an integer with a unit of measurement', 'kf help run-task'],
    [['-c', 'rake', '-l', '1K'], "'-l' of 'run-task'", 'logs have no rate limit'],
    [['rake'], 'unexpected argument "rake"', 'kf help run-task'],
  ])('%j is refused before anything is written', async (args, message, hint) => {
    await addApp({ web: 'serve', silent: '' });
    const run = await runTask(...args);
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain(hint);
    expect(tasks()).toEqual([]);
  });

  it('--wait says that the quota refuses the pod, and the task is pending until there is room', async () => {
    await addApp();
    const run = runTask('-c', 'rake', '--name', 'migrate', '--wait');
    await refusePod('Error creating: pods "x-1" is forbidden: exceeded quota: kf-limits, requested: pods=1, used: pods=2, limited: pods=2');
    const refused = 'The quota of the space is used up: exceeded quota: kf-limits, requested: pods=1, used: pods=2, limited: pods=2';
    await vi.waitFor(async () => expect((await cli.run(['tasks', 'shop'])).stdout).toMatch(/^1 +migrate +PENDING/m), patienceMs);
    const why = JSON.parse((await cli.run(['why', 'shop', '--task', '1', '--json'])).stdout) as { result: object };
    expect(why.result).toMatchObject({ state: 'waiting', cause: 'quota', message: refused });
    await endTask(0);
    expect(await run).toMatchObject({ code: 0, stderr: expect.stringContaining(`Waiting: ${refused}`) as string });
  });

  it.each([
    [['-m', '512M'], 'it takes 512M of memory, and the quota'],
    [[], 'it takes 64M of memory, and the quota'],
  ])('%j without room in the quota is refused before anything is written', async (sizes, why) => {
    await addApp();
    await cluster.add(resource<KubeObject>('', 'v1', 'ResourceQuota', 'resourcequotas'), {
      metadata: { name: 'kf-limits', namespace: ns },
      status: { hard: { 'requests.memory': '300Mi' }, used: { 'requests.memory': '256Mi' } },
    } as KubeObject);
    const run = await cli.run(['run-task', 'shop', '-c', 'rake', ...sizes], { env: { KF_EXIT_CODES: 'class' } });
    expect(run).toMatchObject({ code: 10, stderr: expect.stringContaining(`A task of app 'shop' does not fit into space`) as string });
    expect(run.stderr).toContain(why);
    expect(tasks()).toEqual([]);
    expect((await runTask('-c', 'rake', '-m', '44M')).code).toBe(0);
  });

  it('of an app without a droplet is refused', async () => {
    await addApp({}, '');
    const run = await runTask('-c', 'rake');
    expect([run.code, run.stdout]).toEqual([1, `Creating task for app shop ${place}\nFAILED\n`]);
    expect(run.stderr).toContain('Error running task: App is not staged.\n');
    expect(tasks()).toEqual([]);
  });

  it('without the right to create tasks says so', async () => {
    await addApp();
    cluster.server.on('POST .*/cftasks', (call) =>
      call.fail(403, 'Forbidden', 'cftasks.korifi.cloudfoundry.org is forbidden: User "alice" cannot create resource "cftasks"'),
    );
    const run = await runTask('-c', 'rake');
    expect(run.code).toBe(1);
    expect(run.stderr).toContain('alice');
    expect(run.stderr).toContain('cftasks');
  });
});

describe('tasks and task', () => {
  it('show the tasks, the newest first, and one of them', async () => {
    await addApp();
    expect((await cli.run(['tasks', 'shop'])).stdout).toBe(`Getting tasks for app shop ${place}\n\nNo tasks found for application.\n`);
    await runTask('-c', 'rake one', '--name', 'first');
    await endTask(7);
    await runTask('-c', 'rake two', '--name', 'second');
    const failed = (): boolean => tasks().some(({ status }) => status?.conditions?.some(({ type }) => type === 'Failed') === true);
    await vi.waitFor(() => expect(failed()).toBe(true), patienceMs);
    const [first, second] = tasks().map(({ metadata }) => metadata.creationTimestamp ?? '');
    const date = (time = ''): string => new Date(time).toUTCString().replace('GMT', 'UTC');
    expect((await cli.run(['tasks', 'shop'])).stdout).toBe(
      [
        `Getting tasks for app shop ${place}`,
        '',
        `id   name     state     start time                      command`,
        `2    second   RUNNING   ${date(second)}   rake two`,
        `1    first    FAILED    ${date(first)}   rake one`,
        '',
      ].join('\n'),
    );
    expect((await cli.run(['task', 'shop', '1'])).stdout).toBe(
      [
        `Getting task 1 for app shop ${place}`,
        '',
        'id:               1',
        'name:             first',
        'state:            FAILED',
        `start time:       ${first ?? ''}`,
        'command:          rake one',
        'memory in mb:     64',
        'disk in mb:       512',
        'log rate limit:   -1',
        'failure reason:   Failed with exit code: 7',
        '',
      ].join('\n'),
    );
  });

  it('show a task without a command of its own as one of its process', async () => {
    await addApp({ web: 'serve', batch: 'bin/batch' });
    const labelled = { [labels.appGuid]: 'shop-guid' };
    const spec = { appRef: { name: 'shop-guid' }, processType: 'batch' };
    await cluster.add(kinds.task, { metadata: { name: 'by-hand', namespace: ns, labels: labelled }, spec });
    await vi.waitFor(() => expect(tasks()[0]?.status?.sequenceId).toBe(1), patienceMs);
    expect((await cli.run(['tasks', 'shop'])).stdout).toMatch(/^1 {4}by-hand {3}.* {3}\[command of process batch\]$/m);
  });
});

describe('terminate-task', () => {
  it('ends a running task, which then has failed', async () => {
    await addApp();
    await runTask('-c', 'sleep 1000');
    const run = await cli.run(['terminate-task', 'shop', '1']);
    expect(run).toMatchObject({ code: 0, stdout: `Terminating task 1 of app shop ${place}\nOK\n\n`, stderr: '' });
    expect(onlyTask()?.canceled).toBe(true);
    await vi.waitFor(() => expect(cluster.memory.all(jobType)).toEqual([]), patienceMs);
    const { stdout } = await cli.run(['task', 'shop', '1']);
    expect(stdout).toMatch(/^state: +FAILED$/m);
    expect(stdout).toMatch(/^failure reason: +The task was cancelled\.$/m);
    const again = await cli.run(['terminate-task', 'shop', '1']);
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/Task state is FAILED and therefore cannot be canceled\n[^]*\n {3}kf tasks shop\n/);
  });

  it('shows the task as CANCELING until the controller has ended it', async () => {
    await addApp();
    await runTask('-c', 'sleep 1000');
    await stopController();
    const run = await cli.run(['terminate-task', 'shop', '1', '--json']);
    expect(JSON.parse(run.stdout)).toMatchObject({ result: { id: 1, state: 'CANCELING' } });
  });
});

it.each([
  [['task', 'shop', '7'], 'Task sequence ID 7 not found.\n', 'kf tasks shop'],
  [['terminate-task', 'shop', '7'], 'Task sequence ID 7 not found.\n', 'kf tasks shop'],
  [['task', 'shop', 'x'], "Incorrect Usage: invalid argument for flag 'TASK_ID' (expected int)", 'kf help task'],
  [['terminate-task', 'shop', '1.5'], 'Incorrect Usage: Value for TASK_ID must be integer', 'kf help terminate-task'],
  [['task', 'shop'], 'Incorrect Usage: the required argument `TASK_ID` was not provided', 'kf help task'],
  [['run-task', 'shpo', '-c', 'x'], "App 'shpo' not found.\n", "Did you mean 'shop'?"],
  [['tasks', 'shpo'], "App 'shpo' not found.\n", "Did you mean 'shop'?"],
])('%j prints %s', async (argv, message, hint) => {
  await addApp();
  const run = await cli.run(argv);
  expect(run.code).toBe(1);
  expect(run.stderr).toContain(message);
  expect(run.stderr).toContain(hint);
});

it.each([
  ['run-task', 'shop'],
  ['tasks', 'shop'],
  ['task', 'shop', '1'],
  ['terminate-task', 'shop', '1'],
])('%s without a targeted space is refused', async (...argv) => {
  const run = await cli.run(argv, { env: { KF_SPACE: '' } });
  expect([run.code, run.stderr]).toEqual([1, "No space targeted, use 'kf target -s SPACE' to target a space.\n"]);
});
