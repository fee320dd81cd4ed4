// An update of which one process fails, while the others serve: the app returns as a whole.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const [app, short] = ['failed-process', 'short-process'];
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-failed-process-'));
});
afterAll(async () => {
  for (const name of [app, short]) await kf.run(['delete', name, '-r', '-f']);
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

/** A manifest of an app with a web of this version, and a worker with this command. */
async function manifest(version: number, worker: string): Promise<string> {
  const file = path.join(folder, `${String(version)}.yml`);
  const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${String(version)}`;
  const processes = [
    { type: 'web', memory: '64M' },
    { type: 'worker', memory: '32M', instances: 1, 'health-check-type': 'process', command: worker },
  ];
  await writeFile(file, JSON.stringify({ applications: [{ name: app, docker: { image }, processes }] }));
  return file;
}

test('web returns to the version before when the worker of an update fails, although web serves', async () => {
  const serves = async (version: number): Promise<boolean> =>
    (await get(`${app}.apps.localhost`)).body.includes(`kf sample ${String(version)}`);
  await kf.ok('push', '-f', await manifest(1, 'while :; do echo worker of 1; sleep 1; done'));
  expect(await serves(1)).toBe(true);
  // Soon after the start of web: a process without a check counts as started when it has run for 3 s.
  const { code, stderr } = await kf.run(['push', '-f', await manifest(2, 'sleep 1; echo NO QUEUE; exit 7')]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('NO QUEUE')]);
  expect(await why(kf, app)).toMatchObject({ state: 'failed', cause: 'exit-code', exitCode: 7 });
  await until('web of the version before', () => serves(1));
  const logs = await until('the worker of the version before', async () => {
    const { stdout } = await kf.ok('logs', app, '--recent');
    return stdout.includes('worker of 1') && stdout;
  });
  expect(logs).toContain('[APP/PROC/WORKER/0] OUT worker of 1');
  await kf.ok('push', '-f', await manifest(2, 'while :; do echo worker of 2; sleep 1; done'));
  expect(await serves(2)).toBe(true);
});

test('a worker without a check that ends after two seconds fails its push', async () => {
  const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
  const { code, stderr } = await kf.run(['push', short, '-o', image, '-m', '32M', '--no-route', '-u', 'process', '-c', 'sleep 2; exit 7']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('exit code 7')]);
  expect(await why(kf, short)).toMatchObject({ state: 'failed', cause: 'exit-code', exitCode: 7 });
});
