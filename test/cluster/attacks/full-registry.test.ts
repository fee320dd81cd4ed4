// Attacker: a developer who fills the registry with images, with unfinished uploads, and by never deleting anything. Also a registry that is full
// or away: the messages for each user.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Kf, kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld } from '../../support/members.ts';
import { startRegistry, stopRegistry } from '../../support/registry-absence.ts';
import { until } from '../../support/until.ts';

const execute = promisify(execFile);
const world = new TestWorld();
const space = ringEnv('KF_TEST_SPACE_GUID');
const names = { big: 'full-big', kept: 'full-kept', gone: 'full-gone', first: 'full-first' };
const repositories = '/var/lib/registry/docker/registry/v2/repositories';
const blobs = '/var/lib/registry/docker/registry/v2/blobs/sha256';
let kf: Kf;
let folder: string;

async function sourceOf(name: string, bytes: number): Promise<string> {
  const at = await mkdtemp(path.join(folder, `${name}-`));
  await writeFile(path.join(at, 'index.html'), name);
  await writeFile(path.join(at, 'noise.bin'), randomBytes(bytes));
  await writeFile(path.join(at, 'Staticfile'), '');
  return at;
}

beforeAll(async () => {
  [kf, folder] = [await Kf.create(), await mkdtemp(path.join(tmpdir(), 'kf-full-'))];
});
afterAll(async () => {
  await setGate({});
  await startRegistry();
  for (const name of Object.values(names)) await kf.run(['delete', name, '-r', '-f']);
  await world.remove();
  await Promise.all([kf.remove(), rm(folder, { recursive: true, force: true })]);
});

/** Changes settings of the gate, and waits until it runs with them. */
async function setGate(settings: Record<string, string>): Promise<void> {
  const wanted = { KF_GATE_SPACE_QUOTA: '4294967296', KF_GATE_RESERVE: '', ...settings };
  const words = Object.entries(wanted).map(([name, value]) => (value === '' ? `${name}-` : `${name}=${value}`));
  await kubectl('set', 'env', 'deployment/kf-registry', '-n', 'kf-system', '-c', 'gate', ...words);
  await until('one pod of the registry with these settings to run', async () => {
    const { items } = await kubectlJson<{
      items: { spec: { containers: { name: string; env: { name: string; value?: string }[] }[] }; status: { phase: string } }[];
    }>('get', 'pods', '-n', 'kf-system', '-l', 'app=kf-registry');
    const env = items[0]?.spec.containers.find(({ name }) => name === 'gate')?.env ?? [];
    const isSo = Object.entries(wanted).every(([name, value]) => (env.find((one) => one.name === name)?.value ?? '') === value);
    return items.length === 1 && items[0]?.status.phase === 'Running' && isSo;
  });
  await until(
    'the gate to answer',
    async () => (await inGate('node', '-e', "fetch('http://127.0.0.1:5000/healthz').then((r) => console.log(r.status))")).trim() === '200',
  );
}

const inGate = (...command: string[]): Promise<string> =>
  kubectl('exec', '-n', 'kf-system', 'deploy/kf-registry', '-c', 'gate', '--', ...command);

/** Names in a folder of the registry's volume. */
const listed = async (at: string): Promise<string[]> =>
  JSON.parse(
    await inGate(
      'node',
      '-e',
      `const fs = require('fs'); console.log(JSON.stringify(fs.existsSync('${at}') ? fs.readdirSync('${at}') : []))`,
    ),
  ) as string[];

const hasBlob = async (digest: string): Promise<boolean> => {
  const hex = digest.replace('sha256:', '');
  return (await listed(`${blobs}/${hex.slice(0, 2)}`)).includes(hex);
};

/** GUID of an app, and the digests of the manifests of its source and its droplet. */
async function contentOf(app: string): Promise<{ guid: string; digests: string[] }> {
  const guid = (
    await kubectl('get', 'cfapps', '-n', space, '-o', `jsonpath={.items[?(@.spec.displayName=="${app}")].metadata.name}`)
  ).trim();
  const of = (kind: string, field: string): Promise<string> =>
    kubectl('get', kind, '-n', space, '-o', `jsonpath={.items[?(@.spec.appRef.name=="${guid}")].${field}}`);
  const images = [await of('cfpackages', 'spec.source.registry.image'), await of('cfbuilds', 'status.droplet.registry.image')];
  return { guid, digests: images.flatMap((text) => /sha256:[0-9a-f]{64}/.exec(text) ?? []) };
}

test('the images of an app are deleted with it, and shared layers and concurrent pushes stay', async () => {
  const shared = await sourceOf('shared', 200_000);
  await kf.ok('push', names.kept, '-p', shared, '-m', '64M', '--no-route');
  await kf.ok('push', names.gone, '-p', shared, '-m', '64M', '--no-route');
  const [kept, gone] = [await contentOf(names.kept), await contentOf(names.gone)];
  const own = gone.digests.filter((digest) => !kept.digests.includes(digest));
  expect([kept.digests.length, gone.digests.length]).toEqual([2, 2]);
  await kf.ok('delete', names.gone, '-f');
  const pushes = kf.run(['push', names.big, '-p', await sourceOf('meanwhile', 200_000), '-m', '64M', '--no-route']);
  await until(
    'the repositories of the app to go',
    async () => !(await listed(`${repositories}/${space}`)).some((name) => name.startsWith(gone.guid)),
  );
  for (const digest of own) await until(`the manifest ${digest} to go`, async () => !(await hasBlob(digest)));
  for (const digest of kept.digests) expect([digest, await hasBlob(digest)]).toEqual([digest, true]);
  expect((await pushes).code).toBe(0);
  // Its image is complete, because a pod of it starts again.
  await kf.ok('restart', names.kept);
});

test('the images of a space are deleted with it', async () => {
  const place = await world.space();
  const member = await world.member('spaceDeveloper', place);
  await member.kf.ok('push', 'leaves', '-p', await sourceOf('leaves', 100_000), '-m', '64M', '--no-route');
  expect(await listed(repositories)).toContain(place.space);
  // As a push of an earlier version could create it.
  const other = `${repositories}/${place.space}/left-over/_layers`;
  await inGate('node', '-e', `require('fs').mkdirSync('${other}', { recursive: true })`);
  await kubectl('delete', 'cfspace', place.space, '-n', place.org);
  await until('the images of the space to go', async () => (await listed(`${repositories}/${place.space}`)).length === 0, 180_000);
});

test('a space has a limited number of repositories, gets a clear message, and all of them are deleted with it', async () => {
  const place = await world.space();
  const member = await world.member('spaceDeveloper', place);
  const script = `for (let n = 0; n < 3000; n++) require('fs').mkdirSync('${repositories}/${place.space}/many-' + n + '/_uploads', { recursive: true })`;
  await inGate('node', '-e', script);
  const ran = await member.kf.run(['push', 'one-more', '-p', await sourceOf('one-more', 1_000), '-m', '64M', '--no-route']);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('the space has 3000 repositories, the most that are possible')]);
  expect(ran.stderr).toContain('kf delete APP');
  await kubectl('delete', 'cfspace', place.space, '-n', place.org);
  await until('the repositories of the space to go', async () => (await listed(`${repositories}/${place.space}`)).length === 0, 180_000);
});

test('a space can use its own quota and no more, with sources and with droplets, and gets a clear message', async () => {
  const place = await world.space();
  const member = await world.member('spaceDeveloper', place);
  await setGate({ KF_GATE_SPACE_QUOTA: '3000000' });
  const ran = await member.kf.run(['push', 'fills', '-p', await sourceOf('fills', 4_000_000), '-m', '64M', '--no-route']);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('would take more than 2.9M, its share of the registry')]);
  expect(ran.stderr).toContain('registrySpaceQuotaMB');
  // The source fits, but the droplet does not: its base alone is larger.
  const built = await member.kf.run(['push', 'fits', '-p', await sourceOf('fits', 100_000), '-m', '64M', '--no-route']);
  expect([built.code, built.stderr]).toEqual([1, expect.stringContaining('would take more than 2.9M, its share of the registry')]);
  await setGate({});
  await member.kf.ok('push', 'fits', '-p', await sourceOf('fits', 100_000), '-m', '64M', '--no-route');
});

test('a registry that is nearly full refuses pushes, reports it in its readiness and in setup, and still serves reads', async () => {
  await setGate({ KF_GATE_RESERVE: '9007199254740991' });
  const ran = await kf.run(['push', names.big, '-p', await sourceOf('late', 100_000), '-m', '64M', '--no-route']);
  expect([ran.code, ran.stderr]).toEqual([
    1,
    expect.stringMatching(/the registry has no disk space left: [\d.]+[BKMGT] of [\d.]+[BKMGT] are free/),
  ]);
  const ready = [
    'get',
    'pods',
    '-n',
    'kf-system',
    '-l',
    'app=kf-registry',
    '-o',
    'jsonpath={.items[0].status.conditions[?(@.type=="Ready")].status}',
  ];
  await until('the registry not to be ready', async () => (await kubectl(...ready)) === 'False');
  const env = { ...process.env, KUBECONFIG: ringEnv('KF_TEST_KUBECONFIG'), CF_HOME: folder };
  const setup = await execute(ringEnv('KF_TEST_BIN'), ['setup', '-f', ringEnv('KF_TEST_SETUP_FILE')], { env });
  expect(setup.stderr).toContain('The registry is nearly full');
  await kf.ok('restart', names.kept);
  await setGate({});
});

test('a push while the registry is away names the registry and the next step', async () => {
  await stopRegistry();
  // A first push asks the registry before it makes the app, and another one uploads.
  for (const name of [names.first, names.big]) {
    const ran = await kf.run(['push', name, '-p', await sourceOf('away', 100_000), '-m', '64M', '--no-route']);
    expect([ran.code, ran.stderr]).toEqual([
      1,
      expect.stringContaining("The registry 'kf-registry' in the namespace 'kf-system' does not answer"),
    ]);
    expect(ran.stderr).toContain('kubectl -n kf-system get pods -l app=kf-registry');
  }
  await startRegistry();
  await setGate({});
  await kf.ok('push', names.big, '-p', await sourceOf('back', 100_000), '-m', '64M', '--no-route');
});
