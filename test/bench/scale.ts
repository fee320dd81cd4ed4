// The controller with thousands of apps, whose pods run on nodes that kwok plays: its memory, its start, its work for one event, and its own time
// for a push. Also how long a space with 1,000 stopped apps takes to be deleted. On a cluster of its own.

import { setTimeout as sleep } from 'node:timers/promises';
import { Kf, kubectl, kubectlJson, ringEnv, type Ran } from '../support/kf.ts';
import type { ClusterEnv } from '../support/local-cluster.ts';
import type { ClusterShape } from '../support/rings.ts';
import { until } from '../support/until.ts';
import { controllerReady, killControllerProcess } from '../chaos/faults.ts';
import { concurrentPushes } from './concurrent-pushes.ts';
import { addApps, openQuota } from './many-apps.ts';
import { timed } from './scene.ts';
import { rowLine, seconds, type Row } from './table.ts';
import { controllerUsage, controllerWorkingSet, mebibytes } from './usage.ts';

const stages = [
  { apps: 1000, memoryMiB: 128, coldSeconds: 15 },
  { apps: 5000, memoryMiB: 320, coldSeconds: 45 },
].slice(0, process.env['KF_BENCH_QUICK'] === '1' ? 1 : undefined);
const perSpace = 500;
const pushes = 100;
/**
 * How often each app of a space is changed to measure the work for one event, and by how many commands at a time. With 5,000 apps the controller uses more
 * for its regular looks, in the time of two changes, than for these.
 */
const changes = 20;
const labelers = 4;
const realNode = 'kf-node-0';
/** Each takes 500 pods. */
const kwokNodes = 12;

const nameOfNode = (index: number): string => `kwok-${String(index)}`;
const playedNodes = Array.from({ length: kwokNodes }, (_, index) => nameOfNode(index));

/** kf itself runs on the real node, and every app on the others. */
export const scaleShape: ClusterShape = {
  flags: ['--kwok', String(kwokNodes)],
  prepare: async (env: ClusterEnv) => void (await timed('kubectl', ['cordon', ...playedNodes], { ...process.env, ...env })),
};

const spaceOf = (space: { metadata: { name: string } }): string => space.metadata.name;

async function newSpace(admin: Kf, name: string): Promise<string> {
  await admin.ok('create-space', name, '-o', ringEnv('KF_TEST_ORG'));
  const { items } = await kubectlJson<{ items: { metadata: { name: string }; spec: { displayName: string } }[] }>('get', 'cfspaces', '-A');
  const found = items.find(({ spec }) => spec.displayName === name);
  if (found === undefined) throw new Error(`There is no space ${name}.`);
  await until(`the namespace of ${name}`, async () => (await kubectl('get', 'namespace', spaceOf(found), '--ignore-not-found')) !== '');
  return spaceOf(found);
}

const readyApps = async (): Promise<number> => {
  const text = await kubectl(
    'get',
    'appworkloads',
    '-A',
    '-o',
    `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}`,
  );
  return text.split('\n').filter((line) => line === 'True').length;
};

const deletionMs = 60_000;

/** A deletion that does not end well, or that lasts longer without saying what blocks it. That the contents are being removed is no answer. */
export function faultsOfDeletion({ code, stdout, stderr, milliseconds }: Ran, left: string): string[] {
  const said = [...`${stdout}\n${stderr}`.matchAll(/Waiting: (.*)|is still being deleted: (.*)/g)].map(
    ([, waiting, still]) => waiting ?? still ?? '',
  );
  const isNamed = said.some((reason) => !/ is being deleted|contents are being removed/.test(reason));
  return [
    ...(code === 0 && left !== '' ? ['the namespace of the deleted space is still there'] : []),
    ...((code !== 0 || milliseconds > deletionMs) && !isNamed
      ? [`the deletion ended with ${String(code)} after ${seconds([milliseconds])}, and nothing was named that blocks it`]
      : []),
  ];
}

async function deletionRow(admin: Kf): Promise<Row> {
  const guid = await newSpace(admin, 'bench-stopped');
  await addApps(guid, 0, 1000);
  const ran = await admin.run(['delete-space', 'bench-stopped', '-o', ringEnv('KF_TEST_ORG'), '-f']);
  const left = await kubectl('get', 'namespace', guid, '--ignore-not-found');
  return {
    what: '`kf delete-space` of 1,000 stopped apps',
    reach: '≤ 60 s',
    measured: seconds([ran.milliseconds]),
    beside: left === '' ? 'its namespace is gone' : 'its namespace is still there',
    faults: faultsOfDeletion(ran, left),
  };
}

/** The CPU time that the controller uses in a second when nothing changes: the mean of a minute in which it never had much to do. */
async function quietShare(): Promise<number> {
  const shares: number[] = [];
  await until(
    'the controller to be quiet',
    async () => {
      const before = await controllerUsage();
      await sleep(10_000);
      shares.push(((await controllerUsage()).cpuSeconds - before.cpuSeconds) / 10);
      return shares.length >= 6 && shares.slice(-6).every((share) => share < 0.2);
    },
    600_000,
  );
  return shares.slice(-6).reduce((sum, share) => sum + share, 0) / 6;
}

/** CPU time of the controller for one change of one app. What it uses without a change is measured before and after, and does not count. */
async function workPerEvent(space: string): Promise<string> {
  const names = (await kubectl('get', 'cfapps', '-n', space, '-o', 'name')).trim().split('\n');
  const shareBefore = await quietShare();
  const before = await controllerUsage();
  const began = performance.now();
  const parts = Array.from({ length: labelers }, (_, part) => names.filter((_name, index) => index % labelers === part));
  for (let change = 0; change < changes; change += 1)
    await Promise.all(parts.map((some) => kubectl('label', '--overwrite', '-n', space, ...some, `example.com/bench=x${String(change)}`)));
  const shareAfter = await quietShare();
  const after = await controllerUsage();
  const idle = (((shareBefore + shareAfter) / 2) * (performance.now() - began)) / 1000;
  const spent = after.cpuSeconds - before.cpuSeconds - idle;
  return `${((spent / (names.length * changes)) * 1000).toFixed(1)} ms CPU`;
}

/** @returns seconds from the kill of the process until it leads again and has brought an object back */
async function coldStart(space: string): Promise<number> {
  // Routes that lead nowhere have no HTTPRoute, so it is a StatefulSet.
  const [name] = (await kubectl('get', 'statefulsets', '-n', space, '-o', 'name')).trim().split('\n');
  if (name === undefined || name === '') throw new Error(`No app has been started in ${space}.`);
  const began = performance.now();
  killControllerProcess();
  await kubectl('delete', '-n', space, name, '--wait=false');
  await until(`${name} to be back`, async () => (await kubectl('get', '-n', space, name, '--ignore-not-found')) !== '', 120_000);
  const took = performance.now() - began;
  await controllerReady();
  return took;
}

async function stageRow({ apps, memoryMiB, coldSeconds }: (typeof stages)[number], space: string, took: number): Promise<Row[]> {
  // The peak of what came before is not what it needs, and a start looks at each app once.
  const first = await coldStart(space);
  await quietShare();
  const usage = await controllerUsage();
  const workingSet = await controllerWorkingSet();
  return [
    {
      what: `controller with ${String(apps)} running apps (fake nodes)`,
      reach: `≤ ${String(memoryMiB)} MiB`,
      measured: mebibytes(usage.residentBytes),
      beside: `working set ${workingSet}; all started ${seconds([took])} after the first was made; one event ${await workPerEvent(space)}`,
    },
    {
      what: `its process killed, until it works again with ${String(apps)} apps`,
      reach: `≤ ${String(coldSeconds)} s`,
      measured: seconds([first]),
    },
  ];
}

async function grow(admin: Kf, from: number, to: number, image: string): Promise<{ space: string; took: number }> {
  const began = performance.now();
  let space = '';
  for (let made = from; made < to; made += perSpace) {
    space = await newSpace(admin, `bench-scale-${String(made)}`);
    await addApps(space, made, Math.min(perSpace, to - made), image);
    console.log(`${String(made + perSpace)} apps made after ${seconds([performance.now() - began])}`);
  }
  await until(
    `${String(to)} apps to run`,
    async () => {
      const ready = await readyApps();
      console.log(`${String(ready)} run after ${seconds([performance.now() - began])}`);
      await sleep(5_000);
      return ready >= to;
    },
    3_600_000,
  );
  return { space, took: performance.now() - began };
}

async function pushRows(admin: Kf, image: string): Promise<Row[]> {
  const name = 'bench-pushes';
  const guid = await newSpace(admin, name);
  await openQuota(guid);
  const kf = await Kf.create('admin', { KF_SPACE: name });
  const rows = await concurrentPushes({ kf, space: guid, image, howMany: pushes, isReal: false });
  await kf.remove();
  return rows;
}

/** A run takes about an hour, so each row is shown when it is known. */
function show(rows: readonly Row[]): readonly Row[] {
  for (const row of rows) console.log(rowLine(row));
  return rows;
}

export async function benchScale(): Promise<Row[]> {
  const admin = await Kf.create('admin');
  await kubectl('uncordon', ...playedNodes);
  await kubectl('cordon', realNode);
  const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
  const rows = [...show([await deletionRow(admin)])];
  let present = 0;
  for (const stage of stages) {
    const { space, took } = await grow(admin, present, stage.apps, image);
    present = stage.apps;
    rows.push(...show(await stageRow(stage, space, took)));
    if (stage === stages[0]) rows.push(...show(await pushRows(admin, image)));
  }
  await admin.remove();
  return rows;
}
