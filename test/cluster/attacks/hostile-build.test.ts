// Attacker: a build step whose metadata takes very long to parse, or is far too large. The controller reads it.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readControllerReport } from '../../support/controller-report.ts';
import { get } from '../../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../../support/kf.ts';

const folder = path.resolve('test/fixtures/apps/build-hostile');
const space = ringEnv('KF_TEST_SPACE_GUID');
const names = { blanks: 'hostile-blanks', types: 'hostile-types' };
let kf: Kf;
let work: string;

beforeAll(async () => {
  [kf, work] = [await Kf.create(), await mkdtemp(path.join(tmpdir(), 'kf-hostile-'))];
});
afterAll(async () => {
  for (const name of Object.values(names)) await kf.run(['delete', name, '-r', '-f']);
  await Promise.all([kf.remove(), rm(work, { recursive: true, force: true })]);
});

const restarts = async (): Promise<[string, number][]> =>
  (await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'))).map(({ pod, restarts: count }) => [pod, count]);

interface Pods {
  items: {
    metadata: { creationTimestamp: string };
    status: { containerStatuses: { name: string; state: { terminated?: { message?: string } } }[] };
  }[];
}

/** The metadata that the newest build of the space gave to the controller. */
async function handedOver(): Promise<string> {
  const { items } = await kubectlJson<Pods>('get', 'pods', '-n', space, '-l', 'korifi.cloudfoundry.org/build-guid');
  const newest = items.toSorted((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp))[0];
  const message = newest?.status.containerStatuses.find(({ name }) => name === 'registry')?.state.terminated?.message ?? '';
  const packed = message.split('\n').find((line) => line.startsWith('metadata='));
  return gunzipSync(Buffer.from(packed?.slice('metadata='.length) ?? '', 'base64')).toString();
}

test('60,000 spaces after a bracket are parsed like other text, the app runs, and the controller keeps working', async () => {
  const before = await restarts();
  const { stdout } = await kf.ok('push', names.blanks, '-p', folder, '-m', '128M');
  expect(stdout).toContain('ATTACK BEGINS');
  expect(await handedOver()).toContain(`\n[${' '.repeat(60_000)}\n`);
  expect((await get(`${names.blanks}.apps.localhost`, '/')).body).toBe('built\n');
  expect(await restarts()).toEqual(before);
});

test('a build with far too many process types fails with a sentence, and no other build does', async () => {
  const before = await restarts();
  await cp(path.resolve('test/fixtures/apps/node-hello'), work, { recursive: true });
  const types = Array.from({ length: 100 }, (_, index) => `t${index}: node server.js`);
  await writeFile(path.join(work, 'Procfile'), `web: node server.js\n${types.join('\n')}\n`);
  const ran = await kf.run(['push', names.types, '-p', work, '-m', '128M']);
  expect(ran.code, ran.stdout + ran.stderr).toBe(1);
  expect(ran.stdout + ran.stderr).toMatch(/The build declares 10\d process types; at most 64 are taken\./);
  expect(await restarts()).toEqual(before);
});
