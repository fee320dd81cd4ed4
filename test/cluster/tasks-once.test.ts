// A task runs at most once, whenever the controller is killed. Each task adds one to its own count in another app, so that a second run is seen even
// if nothing of it is left. KF_CHAOS_SEED repeats the moments of a run.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { controllerReady, deleteControllerPod, killControllerProcess } from '../chaos/faults.ts';
import { chance, seedOfRun } from '../chaos/seed.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const counter = 'once-counter';
const app = 'once';
const rounds = 5;
const longMs = 180_000;
const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
let kf: Kf;

/** GET /add/NAME adds one to NAME, GET / shows all counts. */
const counting = [
  'const counts = {};',
  'require("http").createServer((request, response) => {',
  'const [, verb, name] = request.url.split("/");',
  'if (verb === "add") counts[name] = (counts[name] ?? 0) + 1;',
  'response.end(JSON.stringify(counts)); }).listen(process.env.PORT)',
].join(' ');

const sizes = ['-m', '32M', '-k', '64M'];
/** Adds one, and tries again only as long as the network refuses the new pod: then nothing was counted. */
const adding = (name: string): string =>
  [
    `const add = () => fetch("http://${counter}.apps.internal:8080/add/${name}").catch((error) => {`,
    'if (error.cause?.code !== "ECONNREFUSED") throw error;',
    'setTimeout(add, 200); }); add();',
  ].join(' ');
/** The command of a task: what it does is seen outside of its pod. */
const add = (name: string): string => `node -e '${adding(name)}' && sleep 2`;

const counts = async (): Promise<Record<string, number>> =>
  JSON.parse((await get(`${counter}.apps.localhost`)).body) as Record<string, number>;

interface Task {
  name: string;
  state: string;
}
const tasks = (): Promise<Task[]> => kf.json<Task[]>('tasks', app);

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', counter, '-o', sample, '-m', '64M', '-c', `exec node -e '${counting}'`);
  await kf.ok('map-route', counter, 'apps.internal', '-n', counter);
  await kf.ok('push', app, '-o', sample, '-m', '64M', '--no-route', '-u', 'process', '-c', 'sleep 100000');
  await kf.ok('add-network-policy', app, counter);
});
afterAll(async () => {
  await controllerReady();
  for (const name of [app, counter]) await kf.run(['delete', name, '-f', '-r']);
  await kf.remove();
});

test('each task runs once although the controller is killed while it starts, runs and ends', async () => {
  const seed = seedOfRun();
  process.stderr.write(`KF_CHAOS_SEED=${seed}\n`);
  const random = chance(seed);
  const names: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const one of ['a', 'b']) {
      const name = `t${round}${one}`;
      names.push(name);
      await kf.ok('run-task', app, '-c', add(name), '--name', name, ...sizes);
    }
    // Its start is recorded in some hundred milliseconds; the command runs for some seconds.
    await sleep(random() * (round % 2 === 0 ? 800 : 4_000));
    killControllerProcess();
    // A new pod starts at once; a kubelet waits longer and longer for the same one.
    await deleteControllerPod();
  }
  await controllerReady();
  const ended = await until(
    'all tasks to end',
    async () => {
      const all = await tasks();
      return all.length === names.length && all.every(({ state }) => state === 'SUCCEEDED' || state === 'FAILED') && all;
    },
    longMs,
  );
  expect(ended.map(({ name, state }) => [name, state]).toSorted()).toEqual(names.map((name) => [name, 'SUCCEEDED']).toSorted());
  expect(await counts()).toEqual(Object.fromEntries(names.map((name) => [name, 1])));
});

test('a task whose node loses its pod is not run again', async () => {
  const name = 'lost';
  const made = await kf.json<{ guid: string }>('run-task', app, '-c', `${add(name)}; sleep 600`, '--name', name, ...sizes);
  await until('its run to be counted', async () => (await counts())[name] === 1);
  const pods = ['pods', '-n', ringEnv('KF_TEST_SPACE_GUID'), '-l', `korifi.cloudfoundry.org/task-guid=${made.guid}`];
  // What the cluster does with the pods of a node that is gone.
  await kubectl('delete', ...pods, '--grace-period=0', '--force');
  await until('the task to fail', async () => (await tasks()).some((task) => task.name === name && task.state === 'FAILED'), longMs);
  expect((await kubectlJson<{ items: object[] }>('get', ...pods)).items).toEqual([]);
  expect((await counts())[name]).toBe(1);
});
