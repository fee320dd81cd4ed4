// Pushes of source and of ready images: how long they take, how many requests they need, what they upload and restart.

import { cp, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Kf, Ran } from '../support/kf.ts';
import { kubectlJson } from '../support/kf.ts';
import { until } from '../support/until.ts';
import { countRequests, listed, type RequestCounts } from '../support/audit.ts';
import type { Scene } from './scene.ts';
import { counts, seconds, type Row } from './table.ts';

const sourceRuns = 3;
const imageRuns = 5;

interface Pushed {
  apps: { guid: string; unchanged: boolean; built: boolean; layerBytesSent: number }[];
}

interface MeasuredPush {
  milliseconds: number;
  guid: string;
  unchanged: boolean;
  layerBytesSent: number;
  requests: RequestCounts;
}

async function push(kf: Kf, ...args: string[]): Promise<MeasuredPush> {
  const { result, requests } = await countRequests<Ran>(() => kf.ok('push', ...args, '--json'));
  const [app] = (JSON.parse(result.stdout) as { result: Pushed }).result.apps;
  if (app === undefined) throw new Error(`kf push ${args.join(' ')} names no app`);
  return { milliseconds: result.milliseconds, guid: app.guid, unchanged: app.unchanged, layerBytesSent: app.layerBytesSent, requests };
}

const durations = (pushes: readonly MeasuredPush[]): number[] => pushes.map(({ milliseconds }) => milliseconds);
const kindsOf = (pushes: readonly MeasuredPush[]): string => listed(pushes.at(-1)?.requests.byKind ?? new Map<string, number>());

function requestRow(what: string, reach: string, pushes: readonly MeasuredPush[]): Row {
  const api = counts(pushes.map(({ requests }) => requests.api));
  const registry = counts(pushes.map(({ requests }) => requests.registry));
  return { what: `requests of the CLI, ${what}`, reach, measured: `API ${api}, registry ${registry}`, beside: kindsOf(pushes) };
}

function assertUnchanged(pushes: readonly MeasuredPush[]): void {
  if (!pushes.every(({ unchanged }) => unchanged)) throw new Error('A push of what had not changed found changes.');
}

/** A node app with a lockfile: first push, one file changed, nothing changed. */
export async function benchSource({ developer, folder }: Scene): Promise<Row[]> {
  const tree = path.join(folder, 'node-deps');
  await cp('test/fixtures/apps/node-deps', tree, { recursive: true });
  const lock = JSON.parse(await readFile(path.join(tree, 'package-lock.json'), 'utf8')) as { packages: Record<string, unknown> };
  const first: MeasuredPush[] = [];
  const changed: MeasuredPush[] = [];
  const same: MeasuredPush[] = [];
  for (let run = 0; run < sourceRuns; run++) {
    const args = [`bench-deps-${run}`, '-p', tree, '-m', '128M'];
    first.push(await push(developer, ...args));
    await writeFile(path.join(tree, 'changed.txt'), String(run));
    changed.push(await push(developer, ...args));
    same.push(await push(developer, ...args));
    await developer.ok('delete', `bench-deps-${run}`, '-f', '-r');
  }
  assertUnchanged(same);
  const packages = `${Object.keys(lock.packages).length - 1} packages`;
  return [
    { what: `first push of a node app (${packages})`, reach: '≤ 30 s', measured: seconds(durations(first)) },
    { what: '… one file changed', reach: '≤ 12 s', measured: seconds(durations(changed)) },
    {
      what: '… unchanged',
      reach: '≤ 4 s, 0 layer bytes',
      measured: seconds(durations(same)),
      beside: `${counts(same.map(({ layerBytesSent }) => layerBytesSent))} layer bytes`,
    },
    requestRow('source, new', 'API ≤ 25, registry ≤ 13', first),
    requestRow('source, one file changed', '', changed),
    requestRow('source, unchanged', 'API ≤ 12', same),
  ];
}

interface Pods {
  items: { metadata: { uid: string }; status: { conditions?: { type: string; status: string }[] } }[];
}

const podsOf = ({ space }: Scene, guid: string): Promise<Pods> =>
  kubectlJson<Pods>('get', 'pods', '-n', space, '-l', `korifi.cloudfoundry.org/app-guid=${guid}`);

const readyOf = ({ items }: Pods): number =>
  items.filter(({ status }) => status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True')).length;

/** `scale -i 3` until three are ready; the pods of the previous scale-down are gone. */
async function scaleUp(scene: Scene, name: string, guid: string): Promise<number> {
  await scene.developer.ok('scale', name, '-i', '1');
  await until('one pod', async () => (await podsOf(scene, guid)).items.length === 1);
  const { milliseconds } = await scene.developer.ok('scale', name, '-i', '3');
  const ready = readyOf(await podsOf(scene, guid));
  if (ready !== 3) throw new Error(`scale -i 3 came back with ${ready} ready pods`);
  return milliseconds;
}

/** Ready images: new, unchanged, three instances. */
export async function benchImage(scene: Scene): Promise<Row[]> {
  const { developer, sample } = scene;
  const first: MeasuredPush[] = [];
  const same: MeasuredPush[] = [];
  const scaled: number[] = [];
  let newPods = 0;
  for (let run = 0; run < imageRuns; run++) {
    const name = `bench-image-${run}`;
    const args = [name, '-o', sample(1), '-m', '64M'];
    const pushed = await push(developer, ...args);
    first.push(pushed);
    const before = (await podsOf(scene, pushed.guid)).items.map(({ metadata }) => metadata.uid);
    same.push(await push(developer, ...args));
    newPods += (await podsOf(scene, pushed.guid)).items.filter(({ metadata }) => !before.includes(metadata.uid)).length;
    scaled.push(await scaleUp(scene, name, pushed.guid));
    await developer.ok('delete', name, '-f', '-r');
  }
  assertUnchanged(same);
  return [
    { what: 'push of a ready image, new', reach: '≤ 3 s', measured: seconds(durations(first)), beside: 'cf + Korifi 8.0 s' },
    {
      what: '… unchanged',
      reach: '≤ 1 s, no new pod',
      measured: seconds(durations(same)),
      beside: `${newPods} new pods; cf + Korifi 8.0 s`,
    },
    { what: '… `scale -i 3` until 3 ready', reach: '≤ 2.9 s', measured: seconds(scaled), beside: 'cf + Korifi 2.9 s' },
    requestRow('image, new', 'API ≤ 25', first),
    requestRow('image, unchanged', 'API ≤ 12', same),
  ];
}
