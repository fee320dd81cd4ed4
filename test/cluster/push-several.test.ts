// Several apps of one manifest: in parallel, each with its name, and all are pushed even if one fails.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../support/kf.ts';

const fixtures = path.resolve('test/fixtures/apps');
let kf: Kf;
let folder: string;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-several-'));
  await cp(path.join(fixtures, 'node-hello'), path.join(folder, 'slow'), { recursive: true });
  // It stages for longer than the other app needs until the test requests it.
  const scripts = { build: 'sleep 8', start: 'node server.js' };
  await writeFile(path.join(folder, 'slow', 'package.json'), JSON.stringify({ name: 'slow', scripts }));
});
afterAll(async () => {
  await Promise.all(['sev-slow', 'sev-fast', 'sev-broken', 'sev-never'].map((app) => kf.run(['delete', app, '-f', '-r'])));
  await kf.remove();
  await rm(folder, { recursive: true, force: true });
});

async function manifest(...applications: Record<string, unknown>[]): Promise<string> {
  const file = path.join(folder, 'manifest.yml');
  await writeFile(file, JSON.stringify({ applications: applications.map((app) => ({ memory: '64M', ...app })) }));
  return file;
}

interface Build {
  metadata: { creationTimestamp: string };
  status?: { conditions?: { type: string; status: string; lastTransitionTime: string }[] };
}

async function buildOf(app: string): Promise<Build | undefined> {
  const guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  const own = ['-n', ringEnv('KF_TEST_SPACE_GUID'), '-l', `korifi.cloudfoundry.org/app-guid=${guid}`];
  return (await kubectlJson<{ items: Build[] }>('get', 'cfbuilds', ...own)).items[0];
}

test('they are built in parallel, share a new route, and each has its own block of output', async () => {
  const routes = [{ route: 'sev-shared.apps.localhost' }];
  const slow = { name: 'sev-slow', path: path.join(folder, 'slow'), routes };
  const fast = { name: 'sev-fast', path: path.join(fixtures, 'node-hello'), routes };
  const { stdout } = await kf.ok('push', '-f', await manifest(slow, fast));
  const [first, second] = [await buildOf('sev-slow'), await buildOf('sev-fast')];
  const end = first?.status?.conditions?.find(({ type, status }) => type === 'Succeeded' && status === 'True')?.lastTransitionTime ?? '';
  expect((second?.metadata.creationTimestamp ?? '') < end).toBe(true);
  const parts = stdout.split(/^Pushing app (?=sev)/m);
  expect(parts).toHaveLength(3);
  expect(parts[0]).toMatch(/^Pushing apps sev-slow, sev-fast to org /);
  expect(parts[1]).toMatch(/^sev-slow\.\.\.\n[^]*kf\/nodejs: [^]*^name: +sev-slow$[^]*^routes: +sev-shared\.apps\.localhost$/m);
  expect(parts[2]).toMatch(/^sev-fast\.\.\.\n[^]*kf\/nodejs: [^]*^name: +sev-fast$[^]*^routes: +sev-shared\.apps\.localhost$/m);
  expect((await get('sev-shared.apps.localhost')).status).toBe(200);
});

test('if one fails, the others continue, the exit code is that of the failed one, and --json lists all', async () => {
  const broken = { name: 'sev-broken', path: path.join(fixtures, 'broken-build') };
  const fast = { name: 'sev-fast', path: path.join(fixtures, 'node-hello'), env: { MARK: 'second' } };
  const file = await manifest(broken, fast);
  const ran = await kf.run(['push', '-f', file, '--json']);
  expect(ran.code).toBe(1);
  const { error } = JSON.parse(ran.stdout) as { error: { code: string; message: string; details: { apps: unknown[] } } };
  expect(error).toMatchObject({ code: 'build', message: "1 of 2 apps could not be pushed: 'sev-broken'." });
  expect(error.details.apps).toEqual([
    {
      name: 'sev-broken',
      error: {
        code: 'build',
        message: expect.stringContaining('exit code 51') as string,
        hints: expect.arrayContaining([expect.stringContaining('kf ')]) as string[],
        details: expect.objectContaining({ build: expect.any(String) as string, logTail: expect.any(Array) as string[] }) as object,
      },
    },
    expect.objectContaining({ name: 'sev-fast', state: 'started' }),
  ]);
  expect((await get('sev-shared.apps.localhost', '/env')).status).toBe(200);
  expect((await kf.ok('env', 'sev-fast')).stdout).toContain('MARK: second');
  const text = await kf.run(['push', '-f', file]);
  expect(text.code).toBe(1);
  expect(text.stderr).toMatch(/Error staging application: [^]*1 of 2 apps could not be pushed: 'sev-broken'\.\n/);
  expect(text.stdout).toMatch(/^App sev-fast is unchanged[^]*FAILED\n$/m);
});

test('an app that cannot be pushed is reported before any app is pushed', async () => {
  const never = { name: 'sev-never', path: path.join(fixtures, 'node-hello') };
  const ran = await kf.run(['push', '-f', await manifest(never, { ...never, name: 'sev-other', services: ['no-such-db'] })]);
  expect([ran.code, ran.stderr]).toEqual([
    1,
    expect.stringContaining("For application 'sev-other': Service instance 'no-such-db' not found"),
  ]);
  expect((await kf.run(['app', 'sev-never'])).stderr).toContain("App 'sev-never' not found.");
});
