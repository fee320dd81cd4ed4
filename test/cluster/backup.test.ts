// docs/backup.md: the programs of that page save the ring's cluster and restore it in an empty one.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, ringEnv } from '../support/kf.ts';
import { clusterDown, clusterUp, type ClusterEnv } from '../support/local-cluster.ts';
import { applyAsAdmin, conditionOf, displayName, TestWorld, type Member } from '../support/members.ts';
import { startsClusters } from '../support/starts-clusters.ts';
import { until } from '../support/until.ts';

startsClusters();

const execute = promisify(execFile);
const name = 'backup-ring';
const [host, sharedHost] = ['backup-kept.apps.localhost', 'backup-shared.apps.localhost'];
const refusedRoute = randomUUID();
const world = new TestWorld();
let folder: string;
let env: ClusterEnv;
let place: { org: string; space: string };
let other: { org: string; space: string };
let member: Member;
let here: Kf;
let there: Kf;

const ctl = (...args: string[]): Promise<string> => kubectl('--kubeconfig', env['KF_TEST_KUBECONFIG'] ?? '', ...args);
const ask = (address: string, at = '/') => get(address, at, {}, Number(env['KF_CLUSTER_HTTP_PORT']));

/** Runs a program of the page with the rights of that kubeconfig. */
const script = (program: string, kubeconfig: string) =>
  execute('sh', [path.join(folder, program), path.join(folder, 'backup')], { env: { ...process.env, KUBECONFIG: kubeconfig } });

/** Writes the programs of the page into the folder. */
async function extractPrograms(): Promise<void> {
  const page = await readFile('docs/backup.md', 'utf8');
  for (const program of ['backup.sh', 'restore.sh']) {
    const [, text] = new RegExp(`^\`\`\`sh\n(#!/bin/sh\n# ${program} [^]*?)^\`\`\`$`, 'm').exec(page) ?? [];
    if (text === undefined) throw new Error(`docs/backup.md has no ${program}.`);
    await writeFile(path.join(folder, program), text);
  }
}

interface Item {
  kind: string;
  metadata: { name: string; uid: string; namespace?: string; ownerReferences?: { kind: string; name: string; uid: string }[] };
  status?: { droplet?: { registry: { image: string } }; revision?: { version: number } };
}

const kindsOfSpaces = 'cfapps,cfprocesses,cfpackages,cfbuilds,cfroutes,cfserviceinstances,cfservicebindings,cfnetworkpolicies';
const list = async (kubeconfig: string, kinds: string, ns: string): Promise<Item[]> =>
  (JSON.parse(await kubectl('--kubeconfig', kubeconfig, 'get', kinds, '-n', ns, '-o', 'json')) as { items: Item[] }).items;

/** What must be the same in both clusters: the objects of a space by name, and the digests of its droplets. */
async function contents(kubeconfig: string, ns: string): Promise<string[]> {
  const items = await list(kubeconfig, `${kindsOfSpaces},rolebindings`, ns);
  return items.map(({ kind, metadata, status }) => `${kind} ${metadata.name} ${status?.droplet?.registry.image ?? ''}`).toSorted();
}

/** Objects whose owner has another uid than they say: the garbage collector deletes them. */
async function orphans(ns: string): Promise<string[]> {
  const items = await list(env['KF_TEST_KUBECONFIG'] ?? '', `${kindsOfSpaces},cftasks,secrets,configmaps,statefulsets,appworkloads`, ns);
  const uids = new Set(items.map(({ metadata }) => metadata.uid));
  const namespaces = (await list(env['KF_TEST_KUBECONFIG'] ?? '', 'namespaces', ns)).map(({ metadata }) => metadata.uid);
  for (const uid of namespaces) uids.add(uid);
  return items
    .filter(({ metadata }) => (metadata.ownerReferences ?? []).some(({ uid }) => !uids.has(uid)))
    .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

/** Two revisions of an app from source, with a service, a finished task and an autoscaler; in the other space an app that shares a route. */
async function pushApps(): Promise<void> {
  const source = path.join(folder, 'app');
  await cp(path.resolve('test/fixtures/apps/node-hello'), source, { recursive: true });
  const { kf } = member;
  await kf.ok('create-user-provided-service', 'backup-db', '-p', '{"password":"of-the-service"}');
  for (const COLOUR of ['first', 'second']) {
    const app = { name: 'backup-kept', path: source, memory: '64M', services: ['backup-db'], env: { COLOUR } };
    await writeFile(path.join(folder, 'manifest.yml'), JSON.stringify({ applications: [app] }));
    await writeFile(path.join(source, 'version.txt'), COLOUR);
    await kf.ok('push', '-f', path.join(folder, 'manifest.yml'));
  }
  await kf.ok('run-task', 'backup-kept', '--command', 'true', '--name', 'once', '--wait');
  await kf.ok('run-task', 'backup-kept', '--command', 'sleep 10000', '--name', 'going');
  await kf.ok('autoscale', 'backup-kept', '--min', '1', '--max', '2', '--cpu', '80');
  const { kf: neighbour } = await world.member('spaceDeveloper', other);
  const otherName = await displayName('cfspace', other.org, other.space);
  await kf.ok('create-route', 'apps.localhost', '-n', 'backup-shared');
  await here.ok('share-route', 'apps.localhost', '-n', 'backup-shared', '-s', otherName);
  await neighbour.ok('push', 'backup-image', '-o', `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`, '-m', '64M', '--no-route');
  await neighbour.ok('map-route', 'backup-image', 'apps.localhost', '-n', 'backup-shared');
  await here.ok('add-network-policy', 'backup-kept', 'backup-image', '-s', otherName);
  // Of a host that the first space has: it is refused, and must not get the host in the new cluster.
  const domainRef = { name: 'default-domain', namespace: 'cf' };
  const spec = { host: 'backup-kept', path: '', protocol: 'http', domainRef };
  await applyAsAdmin({
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFRoute',
    metadata: { name: refusedRoute, namespace: other.space },
    spec,
  });
  await until(
    'the route to be refused',
    async () => (await conditionOf('cfroute', other.space, refusedRoute, 'Claimed'))?.status === 'False',
  );
}

beforeAll(async () => {
  [folder, place] = [await mkdtemp(path.join(tmpdir(), 'kf-backup-')), await world.space()];
  other = await world.space(place.org);
  const target = {
    KF_ORG: await displayName('cforg', 'cf', place.org),
    KF_SPACE: await displayName('cfspace', place.org, place.space),
  };
  [member, here] = [await world.member('spaceDeveloper', place), await Kf.create('admin', target)];
  await Promise.all([extractPrograms(), pushApps()]);
  await script('backup.sh', ringEnv('KF_TEST_KUBECONFIG'));
  await clusterDown(name);
  env = await clusterUp(name);
  there = await Kf.create('admin', { ...target, KUBECONFIG: env['KF_TEST_KUBECONFIG'] ?? '' });
});
afterAll(async () => {
  await there.remove();
  await clusterDown(name);
  await Promise.all([here.remove(), world.remove(), rm(folder, { recursive: true, force: true })]);
});

test('restore.sh refuses a cluster in which kf runs', async () => {
  const refused = await script('restore.sh', ringEnv('KF_TEST_KUBECONFIG')).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('kf runs in this cluster') as string });
});

test('an empty cluster gets all objects and images, and the apps serve with the GUIDs, variables and services of before', async () => {
  const target = env['KF_TEST_KUBECONFIG'] ?? '';
  await script('restore.sh', target);
  // Interrupted and run again.
  await script('restore.sh', target);
  await there.ok('setup', '--gateway-port', env['KF_CLUSTER_HTTP_PORT'] ?? '80', '--https-port', env['KF_CLUSTER_HTTPS_PORT'] ?? '443');
  const shown = await until('the app to serve', async () => {
    const answer = await ask(host, '/env');
    return answer.status === 200 && (JSON.parse(answer.body) as Record<string, string>);
  });
  expect(shown).toMatchObject({
    COLOUR: 'second',
    VCAP_SERVICES: expect.stringContaining('of-the-service') as string,
    VCAP_APPLICATION: expect.stringContaining((await member.kf.ok('app', 'backup-kept', '--guid')).stdout.trim()) as string,
  });
  await until('the shared route to serve', async () => (await ask(sharedHost)).status === 200);
  for (const { space: ns } of [place, other]) {
    const before = await contents(ringEnv('KF_TEST_KUBECONFIG'), ns);
    expect(await contents(target, ns)).toEqual(before.filter((item) => !item.includes(refusedRoute)));
    expect(await orphans(ns)).toEqual([]);
    // Nothing was built again.
    expect(await ctl('get', 'buildworkloads,jobs', '-n', ns, '-o', 'name')).toBe('');
  }
  expect((await there.ok('ca-certificate')).stdout).toBe((await here.ok('ca-certificate')).stdout);
});

test('the restore itself is no event of an app', async () => {
  const kinds = ['package.create', 'build.create', 'map-route', 'unmap-route'].map((kind) => `audit.app.${kind}`);
  const told = async (kf: Kf): Promise<string[]> =>
    (await kf.json<{ events: { type: string; description: string }[] }>('events', 'backup-kept')).events
      .filter(({ type }) => kinds.includes(type) || type.startsWith('audit.service_binding.'))
      .map(({ type, description }) => `${type} ${description}`)
      .toSorted();
  expect(await told(there)).toEqual(await told(here));
});

test('a network policy is listed, is not added again, and can be removed', async () => {
  const ends = ['backup-kept', 'backup-image', '-s', await displayName('cfspace', other.org, other.space)];
  expect((await there.ok('network-policies')).stdout).toMatch(/^backup-kept +backup-image +tcp +8080 /m);
  expect(await there.json('add-network-policy', ...ends)).toMatchObject({ added: false });
  expect(await there.json('remove-network-policy', ...ends, '--protocol', 'tcp', '--port', '8080')).toMatchObject({ removed: true });
  for (const { space: ns } of [place, other]) expect(await ctl('get', 'cfnetworkpolicies', '-n', ns, '-o', 'name')).toBe('');
});

test('roles hold for the same users, and for no other space', async () => {
  const may = (ns: string): Promise<boolean> =>
    ctl('auth', 'can-i', 'create', 'cfapps.korifi.cloudfoundry.org', '--quiet', '-n', ns, '--as', member.user).then(
      () => true,
      () => false,
    );
  expect([await may(place.space), await may(other.space)]).toEqual([true, false]);
});

test('revisions, tasks and the autoscaler are kept, a rollback uses the old droplet, and a push needs no upload', async () => {
  const versions = async (kf: Kf): Promise<string[]> =>
    [...(await kf.ok('revisions', 'backup-kept')).stdout.matchAll(/^(\d+)(?:\(deployed\))? /gm)].map(([, version = '']) => version);
  expect(await versions(there)).toEqual(await versions(member.kf));
  const { stdout: tasks } = await there.ok('tasks', 'backup-kept');
  expect(tasks).toMatch(/^1 +once +SUCCEEDED/m);
  // It ran while the backup was made.
  expect(tasks).not.toContain('going');
  expect((await there.ok('autoscale', 'backup-kept')).stdout).toContain('80');
  await there.ok('rollback', 'backup-kept', '--version', '1', '-f');
  expect(JSON.parse((await ask(host, '/env')).body)).toMatchObject({ COLOUR: 'first' });
  const { stdout } = await there.ok('push', '-f', path.join(folder, 'manifest.yml'));
  expect(stdout).not.toContain('Uploading files...');
  expect(JSON.parse((await ask(host, '/env')).body)).toMatchObject({ COLOUR: 'second' });
});

test('a new volume of the registry is filled from the backup', async () => {
  const lost = async (): Promise<string[]> =>
    (await there.json<{ lost: { app: string }[] }>('rebuild', '--dry-run')).lost.map(({ app }) => app);
  expect(await lost()).toEqual([]);
  const page = await readFile('docs/backup.md', 'utf8');
  const documented = async (line: RegExp): Promise<void> => {
    const [command = 'exit 1'] = line.exec(page) ?? [];
    const own = { ...process.env, KUBECONFIG: env['KF_TEST_KUBECONFIG'] ?? '' };
    await execute('sh', ['-c', command.replace('FOLDER', path.join(folder, 'backup'))], { env: own });
  };
  await documented(/^kubectl delete deployment.*$/m);
  await there.ok('setup');
  expect(await lost()).toContain('backup-kept');
  expect((await ask(host)).status).toBe(200);
  await documented(/^kubectl exec -i .*images\.tar$/m);
  expect(await lost()).toEqual([]);
});

test('what belongs to an app goes with it, as before', async () => {
  const guid = (await there.ok('app', 'backup-kept', '--guid')).stdout.trim();
  expect(await ctl('get', 'secrets', '-n', place.space, '-o', 'name')).toContain(`${guid}-env`);
  await there.ok('delete', 'backup-kept', '-r', '-f');
  await until('its Secrets to go', async () => !(await ctl('get', 'secrets,configmaps', '-n', place.space, '-o', 'name')).includes(guid));
});
