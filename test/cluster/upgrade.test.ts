// `kf setup` over an installation of each earlier build, on a cluster of its own: while it runs, apps answer every request and their pods stay. Sessions of
// the older CLI with the newer controller, and the other way round; and the older setup afterwards.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { earlierReleases, installedRelease, latestOf } from '../../tools/releases/releases.ts';
import {
  changedPods,
  checkRestarts,
  isDuring,
  type CheckedPod,
  type CheckRestarts,
  type CountedPod,
  type KillingEvent,
} from '../support/check-restarts.ts';
import { Kf, kubectl } from '../support/kf.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from '../support/local-cluster.ts';
import { askNode, loadNode } from '../support/node-load.ts';
import { startsClusters } from '../support/starts-clusters.ts';
import { until } from '../support/until.ts';

startsClusters();

/** The last release and the newest build; `npm test -- cluster --all` gives all of them. */
const releases = process.env['KF_TEST_RELEASES'] === 'all' ? earlierReleases() : latestOf(earlierReleases());
const name = 'upgrade-ring';
const apps = Array.from({ length: 20 }, (_, index) => `app-${String(index + 1)}`);
const hostOf = (app: string): string => `${app}.apps.localhost`;
const hosts = apps.map(hostOf);
let folder: string;
let env: ClusterEnv;
let address: string;
let present: Kf;
let presentFile: string;

const ctl = (...args: string[]): Promise<string> => kubectl('--kubeconfig', env['KF_TEST_KUBECONFIG'] ?? '', ...args);
/** Between the end of the earlier gateway and that of setup are the start of its successor and a pause for kube-proxy. */
const afterOldEndMs = 6_000;
/** The kubelet gives a program so long to end before it starts it again. */
const restartMs = 15_000;
const image = (): string => `${env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`;

function admin(program?: string): Promise<Kf> {
  const place = { KF_ORG: 'default', KF_SPACE: 'default' };
  return Kf.as(env['KF_TEST_KUBECONFIG'] ?? '', { PATH: env['PATH'] ?? '', ...place }, program);
}

interface Pod extends CheckedPod {
  metadata: { name: string; uid: string; labels: Record<string, string> };
}
interface App {
  metadata: { name: string };
  spec: { displayName: string };
}
interface Deployment {
  metadata: { name: string; generation: number };
}

const itemsOf = async <T>(...args: string[]): Promise<T[]> =>
  (JSON.parse(await ctl('get', ...args, '-A', '-o', 'json')) as { items: T[] }).items;

const listPods = (): Promise<Pod[]> => itemsOf<Pod>('pods', '-l', 'korifi.cloudfoundry.org/process-type');

/** The pods of all apps, by app. */
type AppPods = Record<string, CountedPod[]>;

async function appPods(): Promise<AppPods> {
  const [pods, live] = await Promise.all([listPods(), itemsOf<App>('cfapps')]);
  const names = new Map(live.map(({ metadata, spec }) => [metadata.name, spec.displayName]));
  const appOf = ({ metadata }: Pod): string => names.get(metadata.labels['korifi.cloudfoundry.org/app-guid'] ?? '') ?? '';
  // An earlier build deletes an app before the pods of the app have ended.
  const byApp = Object.groupBy(
    pods.filter((pod) => appOf(pod) !== ''),
    appOf,
  );
  const facts = ({ metadata, status }: Pod): CountedPod => ({
    uid: metadata.uid,
    restarts: status.containerStatuses?.[0]?.restartCount ?? 0,
  });
  return Object.fromEntries(Object.entries(byApp).map(([app, own = []]) => [app, own.map(facts)]));
}

/**
 * How often the kubelet has restarted the program of an app between two times because a single answer to its check took longer than a second. Setup has
 * no part in that (docs/upgrade.md).
 */
async function restartsByCheck(from: number, to: number): Promise<CheckRestarts[]> {
  const [events, pods] = await Promise.all([itemsOf<KillingEvent>('events', '--field-selector', 'reason=Killing'), listPods()]);
  return checkRestarts(events, pods, { from, to });
}

/** The pods of all apps, when no restart is under way: none that has begun by then is seen only later. */
async function steadyPods(): Promise<AppPods> {
  await until('the last restart by a check to be over', async () => {
    const now = Date.now();
    return (await restartsByCheck(now - restartMs, now)).length === 0;
  });
  return appPods();
}

const restartsOf = (restarts: readonly CheckRestarts[], pods: readonly CountedPod[] = []): CheckRestarts[] =>
  restarts.filter((one) => pods.some(({ uid }) => uid === one.uid));

/** How the pods of the apps differ, by app, beyond restarts by their checks. */
function changesOf(before: AppPods, after: AppPods, restarts: readonly CheckRestarts[]): Record<string, string[]> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changes = names.map((app): [string, string[]] => [app, changedPods(before[app] ?? [], after[app] ?? [], restarts)]);
  return Object.fromEntries(changes.filter(([, faults]) => faults.length > 0));
}

/** What a setup changes first: the programs of kf itself. */
const generations = async (): Promise<string[]> =>
  (await itemsOf<Deployment>('deployments')).map(({ metadata }) => `${metadata.name} ${String(metadata.generation)}`);

/** Pushes the apps, some at a time, and returns when all answer. */
async function pushAll(kf: Kf): Promise<void> {
  const left = [...apps];
  const pusher = async (): Promise<void> => {
    for (let app = left.shift(); app !== undefined; app = left.shift()) await kf.ok('push', app, '-o', image(), '-m', '32M');
  };
  await Promise.all([pusher(), pusher(), pusher(), pusher()]);
  await until('all apps to answer', async () =>
    (await Promise.all(hosts.map((host) => askNode({ address, hosts: [host] })))).every((it) => it === '200'),
  );
}

/** What a developer does every day. */
async function everyday(kf: Kf, app: string): Promise<void> {
  await kf.ok('push', app, '-o', image(), '-m', '32M');
  await kf.ok('scale', app, '-i', '2');
  await kf.ok('set-env', app, 'GREETING', 'hello');
  await kf.ok('restart', app);
  await kf.ok('logs', app, '--recent');
  await until(`${app} to answer`, async () => (await askNode({ address, hosts: [hostOf(app)] })) === '200');
  await kf.ok('delete', app, '-r', '-f');
}

/** Settings of the ring; clients connect to the node's own address. @param drop keys that the build does not know */
async function settings(file: string, drop: string[] = []): Promise<string> {
  const text = (await readFile(file, 'utf8'))
    .replace(/^gatewayPort: .*$/m, `gatewayPort: 80\ngatewayAddress: ${address}`)
    .replace(/^httpsPort: .*$/m, 'httpsPort: 443');
  const kept = text.split('\n').filter((line) => !drop.some((key) => line.startsWith(`${key}:`)));
  const changed = path.join(folder, `setup-${drop.join('-')}.yaml`);
  await writeFile(changed, kept.join('\n'));
  return changed;
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-upgrade-'));
  await clusterDown(name);
  env = await clusterUp(name);
  address = env['KF_CLUSTER_ADDRESS'] ?? '';
  presentFile = await settings(await writeSetupFile(folder, env));
  present = await admin();
});
afterAll(async () => {
  await present.remove();
  await clusterDown(name);
  await rm(folder, { recursive: true, force: true });
});

describe.each(releases)('from $name', (release) => {
  let old: Kf;
  let oldFile: string;

  beforeAll(async () => {
    old = await admin(await installedRelease(release, console.log));
    oldFile = release.name === '0.1.0' ? await settings(path.join(folder, 'setup.yaml'), ['httpsPort']) : presentFile;
    await old.ok('setup', '-f', oldFile);
    await old.ok('create-user-provided-service', 'mail', '-p', '{"host":"mail.example.com"}');
    await pushAll(old);
  }, 600_000);
  afterAll(async () => {
    await present.ok('uninstall', '--yes');
    await old.remove();
  }, 300_000);

  test('the present CLI works with the older controller', () => everyday(present, 'newer-cli'), 300_000);

  test('no request is lost while setup runs, and the pods of apps stay', async () => {
    const before = await steadyPods();
    expect(Object.keys(before).toSorted()).toEqual(apps.toSorted());
    const began = Date.now();
    const { sent, failures, tookMs } = await loadNode({ address, hosts }, () => present.ok('setup', '-f', presentFile), { kept: true });
    const ended = Date.now();
    const after = await appPods();
    const restarts = await restartsByCheck(began, ended);
    const ofApp = (app: string): CheckRestarts[] => restartsOf(restarts, after[app]);
    expect(apps.filter((app) => ofApp(app).length > 0).length).toBeLessThan(apps.length / 4);
    expect(sent).toBeGreaterThan(hosts.length * 2);
    const restartsAt = new Map(apps.map((app) => [hostOf(app), ofApp(app)]));
    const lost = failures.filter(
      ({ host, sentMs, atMs }) => !isDuring(restartsAt.get(host) ?? [], { from: began + sentMs, to: began + atMs }),
    );
    // A gateway that is told to end closes connections without a request at once. One that is on its way then is lost: on the connection that stays,
    // once, when the earlier gateway ends (decision 88). The second gateway, which ends last, loses none.
    const atOldEnd = lost.filter(({ kept, answer, atMs }) => kept && /ECONNRESET|hang up/.test(answer) && atMs < tookMs - afterOldEndMs);
    expect(atOldEnd.length).toBeLessThanOrEqual(1);
    expect(lost.filter((failure) => !atOldEnd.includes(failure))).toEqual([]);
    expect(changesOf(before, after, restarts)).toEqual({});
  }, 600_000);

  test('apps, routes and services are listed afterwards, and an app can be pushed', async () => {
    const [listed, routes, services] = await Promise.all([present.ok('apps'), present.ok('routes'), present.ok('services')]);
    for (const app of apps) {
      expect(listed.stdout).toContain(app);
      expect(routes.stdout).toContain(app);
    }
    expect(services.stdout).toContain('mail');
    await present.ok('push', 'app-1', '-o', image(), '-m', '32M');
  }, 300_000);

  test('the older CLI works with the present controller', () => everyday(old, 'older-cli'), 300_000);

  test('the older setup is refused or leaves the apps as they are', async () => {
    const [before, programs] = [await appPods(), await generations()];
    const { code, stderr } = await old.run(['setup', '-f', oldFile]);
    if (release.name === '0.1.0') expect(code).not.toBe(0);
    if (code !== 0) {
      expect(stderr).toContain('This kf is too old to replace the one that set this cluster up');
      expect(await generations()).toEqual(programs);
    }
    expect(await appPods()).toEqual(before);
    for (const host of hosts) expect(await askNode({ address, hosts: [host] })).toBe('200');
  }, 300_000);

  test('after the older setup, an app can be restarted or the older CLI says why not, and the present setup leaves the apps as they are', async () => {
    const restarted = await old.run(['restart', 'app-2']);
    if (restarted.code !== 0) expect(restarted.stderr).toMatch(/^.* is too old for .*\.$/m);
    await until('the new instance alone', async () => (await appPods())['app-2']?.length === 1);
    const before = await steadyPods();
    expect(Object.keys(before).toSorted()).toEqual(apps.toSorted());
    const began = Date.now();
    await present.ok('setup', '-f', presentFile);
    const after = await appPods();
    expect(changesOf(before, after, await restartsByCheck(began, Date.now()))).toEqual({});
    for (const host of hosts) await until(`${host} to answer`, async () => (await askNode({ address, hosts: [host] })) === '200');
    await present.ok('restart', 'app-2');
  }, 600_000);
});
