// The remains of an earlier push, and deletions by retention since then, never block the next push.

import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';

interface Build {
  metadata: { name: string; creationTimestamp: string; annotations?: Record<string, string>; labels?: Record<string, string> };
  spec: { packageRef: { name: string } };
  status?: { state?: string };
}

const app = 'recovers';
const envSecret = 'kf.cloudfoundry.org/env-secret';
const changedBy = 'kf.cloudfoundry.org/changed-by';
const space = (): string => ringEnv('KF_TEST_SPACE_GUID');
let kf: Kf;
let scratch: string;
let push: string[];

beforeAll(async () => {
  kf = await Kf.create();
  scratch = await mkdtemp(path.join(tmpdir(), 'kf-recovery-'));
  const folder = path.join(scratch, 'app');
  await cp(path.resolve('test/fixtures/apps/node-hello'), folder, { recursive: true });
  push = ['push', app, '-p', folder, '-m', '64M'];
  await kf.ok(...push);
});
afterAll(async () => {
  await kf.run(['delete', app, '-f', '-r']);
  await kf.remove();
  await rm(scratch, { recursive: true, force: true });
});

async function builds(): Promise<Build[]> {
  const guid = (await kf.ok('app', app, '--guid')).stdout.trim();
  const own = ['-n', space(), '-l', `korifi.cloudfoundry.org/app-guid=${guid}`];
  return (await kubectlJson<{ items: Build[] }>('get', 'cfbuilds', ...own)).items;
}

test('a source whose content is known but whose package is gone is uploaded again', async () => {
  const [first] = await builds();
  await kubectl('delete', 'cfpackage', '-n', space(), first?.spec.packageRef.name ?? '');
  await kf.ok('set-env', app, 'COLOR', 'green');
  const { stdout } = await kf.ok(...push);
  expect(stdout).toContain('Uploading files...');
  expect((await get(`${app}.apps.localhost`)).status).toBe(200);
});

test('a build that was left without its environment gets it from the next push', async () => {
  await kf.ok('set-env', app, 'COLOR', 'blue');
  await kf.ok(...push);
  const blue = (await builds()).toSorted((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp))[0];
  await kf.ok('set-env', app, 'COLOR', 'red');
  await kf.ok(...push);
  // The state that a push leaves if it ends between the two objects.
  await kubectl('delete', 'cfbuild', '-n', space(), blue?.metadata.name ?? '');
  const name = randomUUID();
  const { [changedBy]: _, ...annotations } = blue?.metadata.annotations ?? {};
  expect(annotations[envSecret]).toBeDefined();
  const metadata = { name, namespace: space(), annotations: { ...annotations, [envSecret]: `${name}-env` }, labels: blue?.metadata.labels };
  const file = path.join(scratch, 'build.json');
  await writeFile(file, JSON.stringify({ ...blue, metadata, status: undefined }));
  await kubectl('create', '-f', file);
  await kf.ok('set-env', app, 'COLOR', 'blue');
  const { stdout } = await kf.ok(...push);
  expect(stdout).toContain('Staging app and tracing logs...');
  expect((await builds()).find((build) => build.metadata.name === name)?.status?.state).toBe('STAGED');
});
