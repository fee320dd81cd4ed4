// An update of which one process fails, while the others serve: the app returns as a whole.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { labels } from '../../src/lib/api/group.ts';
import { get } from '../support/http.ts';
import { Kf, ringEnv } from '../support/kf.ts';
import { podsOf, type AppPod } from '../support/pods.ts';
import { until } from '../support/until.ts';
import { watchObjects } from '../support/watch.ts';
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
    { type: 'worker', memory: '32M', instances: 2, 'health-check-type': 'process', command: worker },
  ];
  await writeFile(file, JSON.stringify({ applications: [{ name: app, docker: { image }, processes }] }));
  return file;
}

interface Workers {
  /** How many existed at the same time, of the version before and of the next one: `2+1`. */
  seen: string[];
  /** How many of the version before were told to end. */
  stopped: number;
  /** How many of the next version were started. */
  started: number;
}

/** The workers of an app during `act`. Each counts from its creation until it is gone. */
async function workersDuring(guid: string, act: () => Promise<void>): Promise<Workers> {
  const before = (await podsOf(guid, 'worker')).map(({ metadata }) => metadata.uid);
  const selector = `${labels.appGuid}=${guid},${labels.processType}=worker`;
  const watch = await watchObjects<AppPod>('pods', ringEnv('KF_TEST_SPACE_GUID'), selector);
  await act().finally(watch.end);
  const present = new Set(before);
  const [seen, stopped, started] = [new Set<string>(), new Set<string>(), new Set<string>()];
  /** Of an earlier change: they were ending already when they were first seen. */
  const leftOver = new Set<string>();
  for (const { type, object } of watch.states) {
    const { uid, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined && !present.has(uid)) leftOver.add(uid);
    if (leftOver.has(uid)) continue;
    if (type === 'DELETED') present.delete(uid);
    else present.add(uid);
    if (!before.includes(uid)) started.add(uid);
    else if (deletionTimestamp !== undefined) stopped.add(uid);
    const old = before.filter((one) => present.has(one)).length;
    seen.add(`${String(old)}+${String(present.size - old)}`);
  }
  return { seen: [...seen], stopped: stopped.size, started: started.size };
}

/** Waits until there are two workers, of one version. @param other the version that it is not @returns the version's generation */
const twoWorkers = (guid: string, other = ''): Promise<string> =>
  until('two workers', async () => {
    const generations = (await podsOf(guid, 'worker')).map(({ metadata }) => metadata.labels[labels.generation]);
    const [first = other] = generations;
    return generations.length === 2 && first !== other && new Set(generations).size === 1 && first;
  });

test('web returns to the version before when the worker of an update fails, although web serves, and the workers before run on', async () => {
  const serves = async (version: number): Promise<boolean> =>
    (await get(`${app}.apps.localhost`)).body.includes(`kf sample ${String(version)}`);
  await kf.ok('push', '-f', await manifest(1, 'while :; do echo worker of 1; sleep 1; done'));
  expect(await serves(1)).toBe(true);
  const guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  const first = await twoWorkers(guid);
  const failed = await workersDuring(guid, async () => {
    // Soon after the start of web: a process without a check counts as started when it has run for 3 s.
    const { code, stderr } = await kf.run(['push', '-f', await manifest(2, 'sleep 1; echo NO QUEUE; exit 7')]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('NO QUEUE')]);
    expect(await twoWorkers(guid)).toBe(first);
  });
  expect(failed).toEqual({ seen: ['2+0', '2+1'], stopped: 0, started: 1 });
  expect(await why(kf, app)).toMatchObject({ state: 'failed', cause: 'exit-code', exitCode: 7 });
  await until('web of the version before', () => serves(1));
  const logs = await until('the worker of the version before', async () => {
    const { stdout } = await kf.ok('logs', app, '--recent');
    return stdout.includes('worker of 1') && stdout;
  });
  expect(logs).toContain('[APP/PROC/WORKER/0] OUT worker of 1');
  const good = await workersDuring(guid, async () => {
    await kf.ok('push', '-f', await manifest(2, 'while :; do echo worker of 2; sleep 1; done'));
    await twoWorkers(guid, first);
  });
  // The second new one starts when both old ones are gone.
  expect(good).toMatchObject({ stopped: 2, started: 2 });
  expect(good.seen.filter((workers) => !/^[12]\+[01]$/.test(workers))).toEqual(['0+1', '0+2']);
  expect(await serves(2)).toBe(true);
});

test('a worker without a check that ends after two seconds fails its push', async () => {
  const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
  const { code, stderr } = await kf.run(['push', short, '-o', image, '-m', '32M', '--no-route', '-u', 'process', '-c', 'sleep 2; exit 7']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('exit code 7')]);
  expect(await why(kf, short)).toMatchObject({ state: 'failed', cause: 'exit-code', exitCode: 7 });
});
