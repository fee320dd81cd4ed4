// A verdict stays: `kf why` says the same to an auditor when the pods, their Events and the controller that judged are gone, and others have pushed.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WhyDetails } from '../../src/lib/api/results.ts';
import { controllerReady, deleteControllerPod } from '../chaos/faults.ts';
import { get } from '../support/http.ts';
import { kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { TestWorld, type Member } from '../support/members.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
const crash = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/crash:1`;
const app = 'later';
const world = new TestWorld();
let place: { org: string; space: string };
let developer: Member;
let auditor: Member;
let guid: string;

beforeAll(async () => {
  place = await world.space();
  [developer, auditor] = [await world.member('spaceDeveloper', place), await world.member('spaceAuditor', place)];
  await developer.kf.ok('push', app, '-o', sample(1), '-m', '64M');
  guid = (await developer.kf.ok('app', app, '--guid')).stdout.trim();
});
afterAll(() => world.remove());

const pods = async (...selector: string[]): Promise<object[]> =>
  (await kubectlJson<{ items: object[] }>('get', 'pods', '-n', place.space, '-l', selector.join(','))).items;

/** What stays of a verdict; its Events end, and what to try depends on the state of now. */
const core = ({ state, cause, message, version, process, exitCode, log }: WhyDetails): object => ({
  ...{ state, cause, message, version, process, exitCode, log },
});

test('the cause of a version that failed stays after its return, without its pods and Events, and after a later push', async () => {
  // Nobody waits for the second version: the controller alone judges it, and goes back.
  await developer.kf.run(['push', app, '-o', crash, '-m', '64M', '--no-wait']);
  const first = await until('the verdict', async () => {
    const details = await why(auditor.kf, app);
    return details.state === 'failed' && details;
  });
  expect(first).toMatchObject({ cause: 'exit-code', version: 2, process: 'web', exitCode: expect.any(Number) as number });
  expect(first.log?.tail).not.toEqual([]);
  await until('the failed instances to go', async () => (await pods(`korifi.cloudfoundry.org/app-guid=${guid}`)).length === 1);
  expect((await get(`${app}.apps.localhost`)).body).toContain('kf sample 1');
  await kubectl('delete', 'events', '--all', '-n', place.space);
  await deleteControllerPod();
  await controllerReady();
  expect(core(await why(auditor.kf, app))).toEqual(core(first));
  await developer.kf.ok('push', app, '-o', sample(2), '-m', '64M');
  expect((await why(auditor.kf, app)).state).toBe('well');
  expect(core(await why(auditor.kf, app, '--version', '2'))).toEqual(core(first));
});

test.each([
  ['with an exit code', 'echo at work; exit 3', 'exit-code', ['at work']],
  [
    'because its command does not exist',
    'echo at work; no-such-program',
    'command-not-found',
    ['at work', 'no-such-program:', 'not found'],
  ],
  ['by too much memory', "node -e 'const a = []; for (;;) a.push(Buffer.alloc(8e6, 1))'", 'oom', []],
])('the cause of a task that ended %s stays when its pod is gone', async (_, command, cause, lines) => {
  const { id, guid: task } = await developer.kf.json<{ id: number; guid: string }>('run-task', app, '-c', command, '-m', '64M');
  const ended = await until('the end of the task', async () => {
    const details = await why(auditor.kf, app, '--task', String(id));
    return details.state === 'failed' && details;
  });
  expect(ended.cause).toBe(cause);
  for (const line of lines) expect(ended.log?.tail).toContainEqual(expect.stringContaining(line));
  // As the cluster does after six hours.
  await kubectl('delete', 'job', '-n', place.space, task);
  await until('its pod to go', async () => (await pods(`korifi.cloudfoundry.org/task-guid=${task}`)).length === 0);
  await kubectl('delete', 'events', '--all', '-n', place.space);
  const { state, message } = await why(auditor.kf, app, '--task', String(id));
  expect([state, message]).toEqual(['failed', ended.message]);
  expect((await why(auditor.kf, app, '--task', String(id))).cause).toBe(cause);
  expect(core(await why(auditor.kf, app, '--task', String(id)))).toEqual(core(ended));
});

test('what a task that succeeded has printed stays when its pod is gone', async () => {
  const { id, guid: task } = await developer.kf.json<{ id: number; guid: string }>('run-task', app, '-c', 'echo 42 rows', '--wait');
  await kubectl('delete', 'job', '-n', place.space, task);
  await until('its pod to go', async () => (await pods(`korifi.cloudfoundry.org/task-guid=${task}`)).length === 0);
  expect(await why(auditor.kf, app, '--task', String(id))).toMatchObject({ state: 'well', log: { tail: ['42 rows'] } });
});
