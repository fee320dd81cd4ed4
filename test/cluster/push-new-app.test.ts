// A new app: a push that cannot succeed leaves nothing behind, routes of the own space can be shared, and a Procfile defines the processes.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countRequests } from '../support/audit.ts';
import { get } from '../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';
import { TestWorld } from '../support/members.ts';

const fixtures = path.resolve('test/fixtures/apps');
const world = new TestWorld();
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-new-app-'));
});
afterAll(async () => {
  await Promise.all(['blue', 'green', 'with-procfile', 'only-worker', 'cf-stack'].map((app) => kf.run(['delete', app, '-f', '-r'])));
  await world.remove();
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

/** A folder with these files. */
async function source(name: string, files: Record<string, string>): Promise<string> {
  const place = path.join(folder, name);
  await cp(path.join(fixtures, 'binary-app'), place, { recursive: true });
  await Promise.all(Object.entries(files).map(([file, text]) => writeFile(path.join(place, file), text)));
  return place;
}

interface App {
  spec: { displayName: string };
}

async function appNames(): Promise<string[]> {
  const { items } = await kubectlJson<{ items: App[] }>('get', 'cfapps', '-n', ringEnv('KF_TEST_SPACE_GUID'));
  return items.map(({ spec }) => spec.displayName);
}

test.each([
  ['a stack that is not there', ['-s', 'unknown'], "Stack 'unknown' not found"],
  ['a buildpack that is not there', ['-b', 'cobol'], "The builder has no buildpack 'cobol'"],
])('%s is reported before an app is made', async (_, flags, text) => {
  const ran = await kf.run(['push', 'never', '-p', path.join(fixtures, 'node-hello'), ...flags]);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining(text)]);
  expect(await appNames()).not.toContain('never');
});

test('a route of another space is refused before the app is created', async () => {
  const { kf: other } = await world.member('spaceDeveloper', await world.space());
  await kf.ok('push', 'blue', '-p', path.join(fixtures, 'static-site'), '-m', '64M');
  const ran = await other.run(['push', 'blue', '-p', path.join(fixtures, 'static-site'), '-m', '64M']);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining("Route already exists with host 'blue' for domain 'apps.localhost'")]);
  expect((await other.ok('apps')).stdout).toContain('No apps found');
  await other.remove();
});

test('a stack of Cloud Foundry causes a warning', async () => {
  const ran = await kf.ok('push', 'cf-stack', '-p', path.join(fixtures, 'static-site'), '-m', '64M', '-s', 'cflinuxfs4', '--no-start');
  expect(ran.stderr).toContain("App 'cf-stack' names the stack 'cflinuxfs4' of Cloud Foundry; it is built on 'kf' here.");
});

test('a new app can share a route with another app of the space, and both answer', async () => {
  const manifest = path.join(folder, 'green.yml');
  const app = { name: 'green', memory: '64M', path: path.join(fixtures, 'static-site'), routes: [{ route: 'blue.apps.localhost' }] };
  await writeFile(manifest, JSON.stringify({ applications: [app] }));
  const { result: ran, requests } = await countRequests(() => kf.ok('push', '-f', manifest));
  expect(ran.stdout).toMatch(/^routes: +blue\.apps\.localhost$/m);
  expect(requests.api).toBeLessThanOrEqual(25);
  const { stdout } = await kf.ok('routes');
  expect(stdout).toMatch(/ blue +apps\.localhost .* blue, green/);
  expect((await get('blue.apps.localhost')).status).toBe(200);
});

test('the Procfile is used with a named buildpack too', async () => {
  const place = await source('with-procfile', { Procfile: 'web: ./$(ls | grep -v Procfile)\nextra: sleep 1000\n' });
  const ran = await kf.ok('push', 'with-procfile', '-p', place, '-m', '64M', '-b', 'binary_buildpack');
  expect(ran.stdout).toContain('kf/procfile: process extra: sleep 1000');
  expect((await get('with-procfile.apps.localhost')).body).toContain('hello from an executable');
});

test('a Procfile without web starts no web instance and says so', async () => {
  const place = path.join(folder, 'only-worker');
  await cp(path.join(fixtures, 'node-hello'), place, { recursive: true });
  await writeFile(path.join(place, 'package.json'), '{"name": "only-worker"}');
  await writeFile(path.join(place, 'Procfile'), 'worker: while true; do sleep 1; done\n');
  const ran = await kf.ok('push', 'only-worker', '-p', place, '-m', '64M', '-b', 'binary');
  expect(ran.stderr).toContain("The build found no process 'web', only: worker. No web instance is started");
  const { processes } = await kf.json<{ processes: { type: string; instances: number }[] }>('app', 'only-worker');
  expect(processes).toEqual([
    expect.objectContaining({ type: 'web', instances: 0 }),
    expect.objectContaining({ type: 'worker', instances: 0 }),
  ]);
  await kf.ok('scale', 'only-worker', '--process', 'worker', '-i', '1');
});
