// `kf prune`: what nothing uses goes from the registry, and nothing else does, also while many push and when the registry is killed.

import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pLimit from 'p-limit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson } from '../support/kf.ts';
import { TestWorld, type Member } from '../support/members.ts';
import { until } from '../support/until.ts';

interface Pruned {
  apps: { app: string; guid: string; deleted: boolean; images: number; bytes: number }[];
  inUse: string[];
  bytes: number;
  room: { free: number; total: number };
}
interface Images {
  items: {
    metadata: { name: string; creationTimestamp: string };
    spec: { appRef: { name: string }; source?: { registry: { image: string } } };
    status?: { droplet?: { registry: { image: string } } };
  }[];
}

const world = new TestWorld();
const volume = '/var/lib/registry/docker/registry/v2';
const host = 'retention.apps.localhost';
let place: { org: string; space: string };
let member: Member;
let admin: Kf;
let scratch: string;
let folder: string;

beforeAll(async () => {
  [admin, place, scratch] = [await Kf.create('admin'), await world.space(), await mkdtemp(path.join(tmpdir(), 'kf-retention-'))];
  member = await world.member('spaceDeveloper', place);
  folder = path.join(scratch, 'app');
  await cp(path.resolve('test/fixtures/apps/static-site'), folder, { recursive: true });
});
afterAll(async () => {
  await world.remove();
  await Promise.all([admin.remove(), rm(scratch, { recursive: true, force: true })]);
});

/** Runs a script in the gate, which sees the volume. */
const inGate = async <T>(script: string): Promise<T> =>
  JSON.parse(await kubectl('exec', '-n', 'kf-system', 'deploy/kf-registry', '-c', 'gate', '--', 'node', '-e', script)) as T;

/** Makes everything that the space's repositories refer to two hours older. */
const age = (): Promise<number> =>
  inGate(`
    const fs = require('fs'), then = Date.now() / 1000 - 7200;
    const links = fs.globSync('${volume}/repositories/${place.space}/**/link');
    for (const link of links) try { fs.utimesSync(link, then, then) } catch {}
    console.log(links.length)`);

const volumeBytes = (): Promise<number> =>
  inGate(`
    const fs = require('fs');
    let bytes = 0;
    for (const file of fs.globSync('${volume}/blobs/sha256/*/*/data')) try { bytes += fs.statSync(file).size } catch {}
    console.log(bytes)`);

/** The digests of the images, newest first, by the name of their object. */
async function imagesOf(kind: 'cfpackages' | 'cfbuilds', guid: string): Promise<[name: string, image: string][]> {
  const { items } = await kubectlJson<Images>('get', kind, '-n', place.space, '-l', `korifi.cloudfoundry.org/app-guid=${guid}`);
  return items
    .toSorted((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp))
    .map(({ metadata, spec, status }) => [metadata.name, spec.source?.registry.image ?? status?.droplet?.registry.image ?? '']);
}

/** True for an image whose manifest, config and layers are all in the registry. */
const isWhole = (image: string): Promise<boolean> => {
  const [, repository = '', digest = ''] = /\/([^/]+\/[^/]+)@sha256:([0-9a-f]{64})$/.exec(image) ?? [];
  return inGate(`
    const fs = require('fs');
    const at = (d) => '${volume}/blobs/sha256/' + d.slice(0, 2) + '/' + d + '/data';
    const hex = ({ digest }) => digest.slice(7);
    const has = (kind, d) => fs.existsSync('${volume}/repositories/${repository}/' + kind + '/sha256/' + d + '/link') && fs.existsSync(at(d));
    const whole = () => {
      if (!has('_manifests/revisions', '${digest}')) return false;
      const { config, layers } = JSON.parse(fs.readFileSync(at('${digest}'), 'utf8'));
      return [config, ...layers].every((one) => has('_layers', hex(one)));
    };
    console.log(whole())`);
};

const guidOf = async (app: string): Promise<string> => (await member.kf.ok('app', app, '--guid')).stdout.trim();

test('an old image goes although the registry is killed meanwhile, and those of revisions stay, so a rollback works', async () => {
  for (const version of ['one', 'two']) {
    await writeFile(path.join(folder, 'docs/index.html'), version);
    await writeFile(path.join(folder, 'docs/noise.bin'), randomBytes(1_000_000));
    await member.kf.ok('push', 'retention', '-p', folder, '-m', '64M');
  }
  const guid = await guidOf('retention');
  const [packages, builds] = [await imagesOf('cfpackages', guid), await imagesOf('cfbuilds', guid)];
  const [[, kept = ''] = [], [name = '', gone = ''] = []] = packages;
  await kubectl('delete', 'cfpackage', '-n', place.space, name);
  const mine = ({ apps }: Pruned) => apps.find((app) => app.guid === guid);
  expect(mine(await admin.json<Pruned>('prune', '--dry-run'))).toBeUndefined();
  await age();
  const before = await volumeBytes();
  const told = mine(await admin.json<Pruned>('prune', '--dry-run'));
  expect(told).toMatchObject({ app: 'retention', deleted: false, images: 1 });
  expect(told?.bytes).toBeGreaterThan(1_000_000);
  expect([await volumeBytes(), await isWhole(gone)]).toEqual([before, true]);
  const pruning = admin.run(['prune']);
  await kubectl('delete', 'pod', '-n', 'kf-system', '-l', 'app=kf-registry', '--grace-period=0', '--force');
  await pruning;
  await kubectl('rollout', 'status', 'deployment', 'kf-registry', '-n', 'kf-system', '--timeout=120s');
  await until('the image and its bytes to go', async () => {
    await admin.ok('prune');
    return !(await isWhole(gone)) && before - (await volumeBytes()) > 1_000_000;
  });
  for (const image of [kept, ...builds.map(([, droplet]) => droplet)]) expect([image, await isWhole(image)]).toEqual([image, true]);
  await member.kf.ok('rollback', 'retention', '--version', '1', '-f');
  expect((await get(host)).body).toContain('one');
});

/** What was removed while something else went on: one span for each `kf prune` that has ended. */
function pruneAgainAndAgain(): { spans: { from: number; to: number }[]; end: () => Promise<void> } {
  const spans: { from: number; to: number }[] = [];
  let isOver = false;
  const prune = async (): Promise<void> => {
    while (!isOver) {
      const from = Date.now();
      await admin.ok('prune', '--unused-minutes', '5');
      spans.push({ from, to: Date.now() });
    }
  };
  const pruning = prune();
  // Who waits for its end gets the failure.
  pruning.catch(() => undefined);
  const end = (): Promise<void> => {
    isOver = true;
    return pruning;
  };
  return { spans, end };
}

/** Packages of the space. */
const packagesOf = async (): Promise<Images['items']> => (await kubectlJson<Images>('get', 'cfpackages', '-n', place.space)).items;

test('twenty pushes, each of new bytes, and three of known ones lose no layer while everything unused is removed again and again', async () => {
  const numbered = (name: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${name}-${index}`);
  const [fresh, known] = [numbered('fresh', 20), numbered('known', 3)];
  /** Pushes apps as one command does, four at a time. */
  const push = async (apps: string[], folderOf: (app: string) => string): Promise<string[]> => {
    const applications = apps.map((name) => ({ name, path: folderOf(name), memory: '64M' }));
    const manifest = path.join(scratch, `${apps[0] ?? ''}.yml`);
    await writeFile(manifest, JSON.stringify({ applications }));
    const { code, stderr } = await member.kf.run(['push', '-f', manifest, '--no-start']);
    return code === 0 ? [] : [stderr];
  };
  /** What the page of an app has now, which no other one has, and no earlier one. */
  const pages = new Map<string, string>();
  const own = (app: string): string => path.join(scratch, app);
  const pushOwn = async (): Promise<string[]> => {
    for (const app of fresh) {
      pages.set(app, `${app} ${randomBytes(1_000_000).toString('hex')}`);
      await cp(path.resolve('test/fixtures/apps/static-site'), own(app), { recursive: true });
      await writeFile(path.join(own(app), 'docs/index.html'), pages.get(app) ?? '');
    }
    const halves = [fresh.slice(0, 10), fresh.slice(10)];
    return (await Promise.all([...halves.map((half) => push(half, own)), push(known, () => folder)])).flat();
  };
  // On a busy machine an app may be taken up too late for its first push.
  await until('all apps to be pushed', async () => (await push([...fresh, ...known], () => folder)).length === 0, 240_000);
  await kubectl('delete', 'cfpackages', '-n', place.space, '--all');
  await age();
  const { spans, end } = pruneAgainAndAgain();
  let [rounds, during] = [0, 0];
  try {
    // On a fast machine all uploads may be over before two collections are.
    for (; during < 2 && rounds < 6; rounds += 1) {
      const before = new Set((await packagesOf()).map(({ metadata }) => metadata.name));
      expect(await pushOwn()).toEqual([]);
      const made = (await packagesOf()).filter(({ metadata }) => !before.has(metadata.name));
      const times = made.map(({ metadata }) => Date.parse(metadata.creationTimestamp));
      // A package is made after its upload, within the second that it names. Between these two, one upload was over and another one was not. A collection
      // that began then, and was half done, ran beside uploads.
      const [first, last] = [Math.min(...times) + 1_000, Math.max(...times)];
      await until('the collection beside the last upload to end', async () => (spans.at(-1)?.to ?? 0) >= last);
      during += spans.filter(({ from, to }) => from >= first && (from + to) / 2 <= last).length;
    }
  } finally {
    await end();
  }
  await admin.ok('prune', '--unused-minutes', '5');
  expect(during).toBeGreaterThanOrEqual(2);
  const packages = await packagesOf();
  expect(packages).toHaveLength(fresh.length * rounds + known.length);
  for (const { spec } of packages)
    expect([spec.appRef.name, await isWhole(spec.source?.registry.image ?? '')]).toEqual([spec.appRef.name, true]);
  const four = pLimit(4);
  const start = async (app: string): Promise<void> => {
    await member.kf.ok('start', app);
    const isOwn = async (): Promise<boolean> => (await get(`${app}.apps.localhost`)).body === pages.get(app);
    await until(`the own page of ${app}`, isOwn);
    await member.kf.ok('delete', app, '-r', '-f');
  };
  await Promise.all(fresh.map((app) => four(() => start(app))));
  await member.kf.ok('start', 'known-0');
}, 900_000);

test('a developer may not remove images, and is told so', async () => {
  const developer = await Kf.create();
  const ran = await developer.run(['prune', '--dry-run']);
  await developer.remove();
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('may not get "secrets" in the namespace "kf-system"')]);
});
