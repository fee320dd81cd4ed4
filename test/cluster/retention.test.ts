// `kf prune`: what nothing uses goes from the registry, and nothing else does, also while many push and when the registry is killed.

import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
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

test('twenty pushes, of known sources and of new ones, lose no layer while everything unused is removed again and again', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  const manifest = path.join(scratch, 'manifest.yml');
  const fresh = path.join(scratch, 'fresh');
  await cp(folder, fresh, { recursive: true });
  await writeFile(path.join(fresh, 'docs/noise.bin'), randomBytes(5_000_000));
  /** Pushes all apps, every second one from that folder. */
  const pushAll = async (others: string) => {
    const applications = names.map((name, index) => ({ name, path: index % 2 === 0 ? folder : others, memory: '64M', 'no-route': true }));
    await writeFile(manifest, JSON.stringify({ applications }));
    return member.kf.run(['push', '-f', manifest, '--no-start']);
  };
  // On a busy machine an app may be taken up too late for its first push.
  await until('all apps to be pushed', async () => (await pushAll(folder)).code === 0, 240_000);
  await kubectl('delete', 'cfpackages', '-n', place.space, '--all');
  await age();
  let isOver = false;
  let rounds = 0;
  const prune = async (): Promise<void> => {
    for (; !isOver; rounds += 1) await admin.ok('prune', '--unused-minutes', '5');
  };
  const pruning = prune();
  const again = await pushAll(fresh).finally(() => (isOver = true));
  await pruning;
  expect([again.code, again.stderr]).toEqual([0, expect.any(String)]);
  await admin.ok('prune', '--unused-minutes', '5');
  expect(rounds).toBeGreaterThan(0);
  const { items } = await kubectlJson<Images>('get', 'cfpackages', '-n', place.space);
  expect(items).toHaveLength(names.length);
  for (const { spec } of items)
    expect([spec.appRef.name, await isWhole(spec.source?.registry.image ?? '')]).toEqual([spec.appRef.name, true]);
  await member.kf.ok('start', 'many-0');
  await member.kf.ok('start', 'many-1');
});

test('a developer may not remove images, and is told so', async () => {
  const developer = await Kf.create();
  const ran = await developer.run(['prune', '--dry-run']);
  await developer.remove();
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('may not get "secrets" in the namespace "kf-system"')]);
});
