// The registry goes away while somebody pushes or a node pulls, and it loses images, as with a new volume. What runs stays up, the cause is named, and
// everything can be made again.

import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl } from '../support/kf.ts';
import { TestWorld, type Member } from '../support/members.ts';
import { startRegistry, stopRegistry } from '../support/registry-absence.ts';

interface Why {
  cause: string;
  message: string;
  next: string[];
}
interface Rebuilt {
  lost: { app: string; image: string; state: string }[];
}

const world = new TestWorld();
const repositories = '/var/lib/registry/docker/registry/v2/repositories';
const host = 'lost-runs.apps.localhost';
let place: { org: string; space: string };
let member: Member;
let admin: Kf;
let scratch: string;

beforeAll(async () => {
  [admin, place, scratch] = [await Kf.create('admin'), await world.space(), await mkdtemp(path.join(tmpdir(), 'kf-lost-'))];
  member = await world.member('spaceDeveloper', place);
});
afterAll(async () => {
  await startRegistry();
  await world.remove();
  await Promise.all([admin.remove(), rm(scratch, { recursive: true, force: true })]);
});

/** A site with a page of its own and as many bytes that cannot be compressed. */
async function siteOf(name: string, bytes: number): Promise<string> {
  const folder = path.join(scratch, name);
  await cp(path.resolve('test/fixtures/apps/static-site'), folder, { recursive: true });
  await writeFile(path.join(folder, 'docs/index.html'), name);
  await writeFile(path.join(folder, 'docs/noise.bin'), randomBytes(bytes));
  return folder;
}

/** Runs a script in the gate, which sees the volume. */
const inGate = (script: string): Promise<string> =>
  kubectl('exec', '-n', 'kf-system', 'deploy/kf-registry', '-c', 'gate', '--', 'node', '-e', `const fs = require('fs'); ${script}`);

/** Removes all images of a kind from the space's part of the volume. */
const lose = (kind: 'droplets' | 'packages'): Promise<string> =>
  inGate(`for (const folder of fs.globSync('${repositories}/${place.space}/*-${kind}')) fs.rmSync(folder, { recursive: true })`);

/** Pushes an app and builds it, without a start: no node has its image. */
async function build(app: string): Promise<void> {
  await member.kf.ok('push', app, '-p', await siteOf(app, 100_000), '-m', '64M', '--no-route', '--no-start');
  await member.kf.ok('stage-package', app);
  const [, guid = ''] = /^([0-9a-f-]{36}) /m.exec((await member.kf.ok('droplets', app)).stdout) ?? [];
  await member.kf.ok('set-droplet', app, guid);
}

test('a push goes on when the registry is killed during its upload', async () => {
  const folder = await siteOf('mid-upload', 150_000_000);
  const pushing = member.kf.run(['push', 'mid-upload', '-p', folder, '-m', '64M', '--no-route', '--no-start']);
  await inGate(`
    const timer = setInterval(() => {
      const sizes = fs.globSync('${repositories}/${place.space}/*/_uploads/*/data').map((file) => fs.statSync(file).size);
      if (sizes.some((size) => size > 4e6)) clearInterval(timer);
    }, 20)`);
  await kubectl('delete', 'pod', '-n', 'kf-system', '-l', 'app=kf-registry', '--grace-period=0', '--force');
  const ran = await pushing;
  expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringContaining('FAILED')]);
  await member.kf.ok('stage-package', 'mid-upload');
});

test('an app whose image no node can pull while the registry is away is told so, and starts when it is back', async () => {
  await build('lost-pull');
  await stopRegistry();
  expect((await member.kf.run(['start', 'lost-pull'])).code).toBe(1);
  expect(await member.kf.json<Why>('why', 'lost-pull')).toMatchObject({ cause: 'registry-unreachable' });
  await startRegistry();
  await member.kf.ok('restart', 'lost-pull');
});

test('a lost droplet stops nothing that runs, `why` names it, and one command builds all again that still have a source', async () => {
  const folder = await siteOf('lost-runs', 100_000);
  await member.kf.ok('push', 'lost-runs', '-p', folder, '-m', '64M');
  await build('lost-stopped');
  await lose('droplets');
  expect((await get(host)).body).toContain('lost-runs');
  expect((await member.kf.run(['start', 'lost-stopped'])).code).toBe(1);
  const { cause, message, next } = await member.kf.json<Why>('why', 'lost-stopped');
  expect([cause, message]).toEqual(['image-not-found', expect.stringMatching(/-droplets@sha256:[0-9a-f]{64}/)]);
  expect(next.join('\n')).toContain('restage lost-stopped');
  const mine = ({ lost }: Rebuilt): string[] =>
    lost.filter(({ app }) => app.startsWith('lost-')).map(({ app, state }) => `${app} ${state}`);
  const told = mine(await admin.json<Rebuilt>('rebuild', '--dry-run'));
  expect(told).toEqual(expect.arrayContaining(['lost-runs buildable', 'lost-stopped buildable']));
  const rebuilt = mine(await admin.json<Rebuilt>('rebuild'));
  expect(rebuilt).toEqual(expect.arrayContaining(['lost-runs rebuilt', 'lost-stopped rebuilt']));
  expect((await get(host)).body).toContain('lost-runs');
  await lose('droplets');
  await lose('packages');
  const run = await admin.run(['rebuild', '--json']);
  expect([run.code, mine((JSON.parse(run.stdout) as { result: Rebuilt }).result)]).toEqual([1, expect.arrayContaining(['lost-runs push'])]);
  const { stdout } = await member.kf.ok('push', 'lost-runs', '-p', folder, '-m', '64M');
  expect(stdout).toContain('Uploading files...');
  expect((await get(host)).body).toContain('lost-runs');
});
