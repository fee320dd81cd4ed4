// `why` of a build and of a task whose pods are gone: what the controller has kept says the same, to whoever may read the space.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { WhyDetails } from '../../../src/lib/api/results.ts';
import type { BuildFailure, TaskFailure, TaskOutput } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  // As for a user with another kf, an hour later: no pod, no log and no Event can be read.
  for (const resource of ['events', 'pods'])
    scene.cluster.server.on(`GET /api/v1/namespaces/${ns}/${resource}.*`, (call) =>
      call.fail(403, 'Forbidden', `${resource} is forbidden`),
    );
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app', '-m', '64M'];
const asJson = async (...argv: string[]): Promise<WhyDetails> => {
  const { code, stdout, stderr } = await scene.cli.run(['why', 'shop', ...argv, '--json']);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { result: WhyDetails }).result;
};
const logsRead = () => scene.cluster.server.callsOf(`GET /api/v1/namespaces/${ns}/pods/.*/log.*`);
const lost = 'The pod was gone before its last lines were read.';

describe('a task that failed', () => {
  beforeEach(() => scene.ok(...push));

  async function failed(reason: string, message: string, failure?: TaskFailure): Promise<void> {
    const app = nameOf(scene.app());
    const metadata = { name: 'task-guid', namespace: ns, labels: { [labels.appGuid]: app, [labels.taskGuid]: 'task-guid' } };
    await scene.cluster.add(kinds.task, { metadata, spec: { appRef: { name: app }, displayName: 'migrate', command: 'x' } });
    const conditions = [{ type: 'Failed', status: 'True', reason, message, lastTransitionTime: '' }];
    scene.setStatus(kinds.task, 'task-guid', { sequenceId: 1, memoryMB: 64, conditions, ...(failure === undefined ? {} : { failure }) });
  }
  const place = { pod: 'task-guid-abcde', container: 'workload' };

  it('has the cause and the lines that are kept, and no log is asked for', async () => {
    const logTail = ['last but one', '/bin/sh: 1: /nope: not found'];
    const failure = { cause: 'command-not-found', ...place, exitCode: 127, logHead: ['first'], logOmitted: 1, logTail };
    await failed('Error', 'Failed with exit code: 127', failure);
    expect(await asJson('--task', '1')).toMatchObject({
      kind: 'task',
      state: 'failed',
      cause: 'command-not-found',
      message: 'Failed with exit code: 127',
      exitCode: 127,
      log: { head: ['first'], omitted: 1, tail: logTail },
      next: ['kf run-task shop --command COMMAND', 'kf logs shop --recent'],
    });
    expect((await scene.ok('why', 'shop', '--task', '1')).stdout).toContain(
      `\n\nlast lines:\n   first\n   ... 1 line left out ...\n   ${logTail.join('\n   ')}\n`,
    );
    expect(logsRead()).toEqual([]);
  });

  it('keeps its cause whatever can still be read, since the verdict is not made again', async () => {
    await failed('Error', 'Failed with exit code: 127', { cause: 'wrong-architecture', ...place, exitCode: 127, logTail: ['not found'] });
    expect((await asJson('--task', '1')).cause).toBe('wrong-architecture');
  });

  it('with a code that this kf does not know has the lines, and the cause is unknown', async () => {
    await failed('Error', 'Failed with exit code: 1', { cause: 'of-tomorrow', ...place, logTail: ['new'] });
    expect(await asJson('--task', '1')).toMatchObject({ cause: 'unknown', exitCode: 1, log: { tail: ['new'] } });
  });

  it('whose lines nobody has read says so', async () => {
    await failed('BackoffLimitExceeded', 'Job has reached the specified backoff limit', { cause: 'unknown', logLost: lost });
    const details = await asJson('--task', '1');
    expect(details).toMatchObject({ state: 'failed', cause: 'unknown', logLost: lost });
    expect(details).not.toHaveProperty('log');
    expect((await scene.ok('why', 'shop', '--task', '1')).stdout).toContain(`\n\nno last lines: ${lost}\n`);
  });
});

describe('a task that succeeded', () => {
  const endedAt = '2026-08-07T10:16:20Z';
  beforeEach(() => scene.ok(...push));

  async function succeeded(output?: TaskOutput): Promise<void> {
    const app = nameOf(scene.app());
    const metadata = { name: 'task-guid', namespace: ns, labels: { [labels.appGuid]: app, [labels.taskGuid]: 'task-guid' } };
    await scene.cluster.add(kinds.task, { metadata, spec: { appRef: { name: app }, displayName: 'migrate', command: 'x' } });
    const conditions = [{ type: 'Succeeded', status: 'True', reason: 'JobSucceeded', message: '', lastTransitionTime: endedAt }];
    scene.setStatus(kinds.task, 'task-guid', { sequenceId: 1, memoryMB: 64, conditions, ...(output === undefined ? {} : { output }) });
  }

  it('has the lines that are kept, and no log is asked for', async () => {
    await succeeded({ pod: 'task-guid-abcde', container: 'workload', logTail: ['migrating', '42 rows'] });
    expect(await asJson('--task', '1')).toMatchObject({ state: 'well', log: { head: [], omitted: 0, tail: ['migrating', '42 rows'] } });
    expect((await scene.ok('why', 'shop', '--task', '1')).stdout).toContain("Task 'migrate' of app 'shop' succeeded.\n");
    expect((await scene.ok('why', 'shop', '--task', '1')).stdout).toContain('\n\nlast lines:\n   migrating\n   42 rows\n');
    expect(logsRead()).toEqual([]);
  });

  it('says since when it is over, not since when it was there', async () => {
    await succeeded();
    expect(await asJson('--task', '1')).toMatchObject({ since: endedAt });
    expect((await scene.ok('why', 'shop', '--task', '1')).stdout).toMatch(/^since: +Fri 07 Aug 10:16:20 UTC 2026$/m);
  });

  it.each([
    ['whose lines nobody has read says so', { logLost: lost }, `\n\nno last lines: ${lost}\n`],
    ['under an earlier kf, whose pods nobody may read, has none', undefined, 'succeeded.\n'],
  ])('%s', async (_, output, shown) => {
    await succeeded(output);
    expect(await asJson('--task', '1')).not.toHaveProperty('log');
    expect((await scene.ok('why', 'shop', '--task', '1')).stdout).toContain(shown);
  });
});

describe('a build that failed', () => {
  const detected = [
    "kf/nodejs: looked for package.json in the app's folder; there is none",
    "kf/go: looked for go.mod in the app's folder; there is none",
  ];
  const failure: BuildFailure = {
    lane: 'build',
    exitCode: 20,
    reason: 'NoBuildpackMatched',
    cause: 'no-buildpack',
    pod: 'b-1-x',
    logTail: detected,
  };

  async function failed(kept: BuildFailure): Promise<void> {
    scene.droplet = 'fails';
    await scene.cli.run(push);
    scene.setStatus(kinds.build, nameOf(scene.builds().at(-1)), { failure: kept });
  }

  it('has the cause and the lines that are kept, and no log is asked for', async () => {
    await failed(failure);
    const before = logsRead().length;
    for (const argv of [['--build'], []]) {
      expect(await asJson(...argv)).toMatchObject({
        kind: 'build',
        state: 'failed',
        cause: 'no-buildpack',
        message: 'Error staging application: It broke.',
        container: 'build',
        exitCode: 20,
        log: { head: [], omitted: 0, tail: detected },
      });
    }
    expect((await scene.ok('why', 'shop', '--build')).stdout).toContain(`\n\nlast lines:\n   ${detected.join('\n   ')}\n`);
    expect(logsRead()).toHaveLength(before);
  });

  it('has the code that is kept, whatever its reason is', async () => {
    await failed({ ...failure, reason: 'SomethingNew', cause: 'build-timeout' });
    expect((await asJson('--build')).cause).toBe('build-timeout');
  });

  it('whose lines nobody has read says so', async () => {
    await failed({ reason: 'BuildFailed', cause: 'build-failed', logLost: lost });
    const details = await asJson('--build');
    expect(details).toMatchObject({ state: 'failed', cause: 'build-failed', logLost: lost });
    expect(details).not.toHaveProperty('log');
    expect((await scene.ok('why', 'shop', '--build')).stdout).toContain(`\n\nno last lines: ${lost}\n`);
  });

  it('under an earlier kf, which kept nothing, has the code of its reason', async () => {
    await failed({ reason: 'OutOfMemory', lane: 'build', exitCode: 137 });
    const details = await asJson('--build');
    expect(details).toMatchObject({ cause: 'build-oom', container: 'build', exitCode: 137 });
    expect([details.log, details.logLost]).toEqual([undefined, undefined]);
  });
});
