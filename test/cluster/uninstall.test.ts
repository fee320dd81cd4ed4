// kf uninstall, on its own cluster: what it removes, what it leaves, and that a later setup continues.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl } from '../support/kf.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from '../support/local-cluster.ts';
import { until } from '../support/until.ts';
import { startsClusters } from '../support/starts-clusters.ts';

startsClusters();

const name = 'uninstall-ring';
let folder: string;
let setupFile: string;
let env: ClusterEnv;
let kf: Kf;

interface Item {
  kind: string;
  metadata: { name: string; namespace?: string; uid: string; finalizers?: string[] };
}

const ctl = (...args: string[]): Promise<string> => kubectl('--kubeconfig', env['KF_TEST_KUBECONFIG'] ?? '', ...args);
const list = async <T = Item>(...args: string[]): Promise<T[]> =>
  (JSON.parse(await ctl('get', ...args, '-o', 'json')) as { items: T[] }).items;

const policyKinds = [
  'validatingadmissionpolicies,validatingadmissionpolicybindings',
  'mutatingadmissionpolicies,mutatingadmissionpolicybindings',
].join(',');
/** Kinds that outlive a namespace, and those that an installation could leave in other namespaces. */
const kindsLookedAt = [
  'namespaces,crds,clusterroles,clusterrolebindings',
  policyKinds,
  'persistentvolumes,storageclasses,priorityclasses,apiservices,gatewayclasses',
  'deployments,statefulsets,services,configmaps,secrets,serviceaccounts,persistentvolumeclaims,roles,rolebindings,gateways,httproutes',
  'networkpolicies,resourcequotas,leases',
].join(',');

/** Everything of these kinds in the cluster, by name, with its UID. */
async function inventory(): Promise<Record<string, string>> {
  const items = await list(kindsLookedAt, '-A');
  return Object.fromEntries(
    items.map(({ kind, metadata }) => [`${kind} ${metadata.namespace ?? ''}/${metadata.name}`, metadata.uid] as const).toSorted(),
  );
}

interface Pod extends Item {
  status: { containerStatuses?: { restartCount: number }[] };
}

/** The pods of all apps, and how often they were restarted. */
async function appPods(): Promise<{ uid: string; restarts: number | undefined }[]> {
  const pods = await list<Pod>('pods', '-A', '-l', 'korifi.cloudfoundry.org/process-type');
  return pods.map(({ metadata, status }) => ({ uid: metadata.uid, restarts: status.containerStatuses?.[0]?.restartCount }));
}

/** Finalizers on objects of kf's kinds, each with its object. */
async function finalizers(): Promise<string[]> {
  const kinds = (await ctl('api-resources', '--api-group=korifi.cloudfoundry.org', '--verbs=list', '-o', 'name')).trim().split('\n');
  const items = await list(kinds.join(','), '-A');
  return items.flatMap(({ kind, metadata }) => (metadata.finalizers ?? []).map((finalizer) => `${kind} ${metadata.name}: ${finalizer}`));
}

const setup = (): Promise<unknown> => kf.ok('setup', '-f', setupFile);
const push = (app: string): Promise<unknown> =>
  kf.ok('push', app, '-o', `${env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`, '-m', '128M');
const statusOf = async (app: string): Promise<number> =>
  (await get(`${app}.apps.localhost`, '/', {}, Number(env['KF_CLUSTER_HTTP_PORT']))).status;

/** Sends requests to the app while `act` runs; returns the failures. */
async function badAnswersDuring(app: string, act: () => Promise<unknown>): Promise<unknown[]> {
  const answers: unknown[] = [];
  let isDone = false;
  const ask = async (): Promise<void> => {
    while (!isDone) {
      answers.push(await statusOf(app).catch(String));
      await sleep(50);
    }
    answers.push(await statusOf(app).catch(String));
  };
  await Promise.all([ask(), act().finally(() => (isDone = true))]);
  expect(answers.length).toBeGreaterThan(3);
  return answers.filter((answer) => answer !== 200);
}

/** Objects of another user, in their own namespace and cluster-wide. */
const foreign = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'foreign' } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'foreign', namespace: 'foreign' }, data: { kept: 'yes' } },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'foreign' }, rules: [] },
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'foreign', namespace: 'foreign' },
    spec: { parentRefs: [{ name: 'foreign' }], hostnames: ['foreign.example.com'] },
  },
];

async function createForeign(): Promise<void> {
  const file = path.join(folder, 'foreign.json');
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: foreign }));
  await ctl('create', '-f', file);
  await ctl('wait', '--for=create', '-n', 'foreign', 'serviceaccount/default', 'configmap/kube-root-ca.crt', '--timeout=120s');
}

let before: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-uninstall-'));
  // Remains of an interrupted run are not checked.
  await clusterDown(name);
  env = await clusterUp(name);
  setupFile = await writeSetupFile(folder, env);
  kf = await Kf.create('admin', { KUBECONFIG: env['KF_TEST_KUBECONFIG'] ?? '', KF_ORG: 'default', KF_SPACE: 'default' });
  await createForeign();
  before = await inventory();
  await setup();
  await push('kept');
});
afterAll(async () => {
  await kf.remove();
  await clusterDown(name);
  await rm(folder, { recursive: true, force: true });
});

describe('without a terminal and without --yes', () => {
  test.each([
    [['uninstall'], '1 app: kept?'],
    [['uninstall', '--keep-data'], 'Apps that go on serving: 1'],
  ])('%j is refused, lists what it would do, and deletes nothing', async (args, what) => {
    const there = await inventory();
    const ran = await kf.run(args);
    expect(ran.code).toBe(1);
    expect(ran.stdout.trimEnd().endsWith('FAILED')).toBe(true);
    expect(ran.stderr).toContain(what);
    expect(ran.stderr).toContain('--yes');
    expect(await inventory()).toEqual(there);
    expect(await statusOf('kept')).toBe(200);
  });
});

describe('--keep-data', () => {
  test('removes the controller, its policies and the finalizers, and the app still serves in the same pod', async () => {
    const pods = await appPods();
    expect(pods).toHaveLength(1);
    expect(await finalizers()).not.toEqual([]);
    const bad = await badAnswersDuring('kept', async () => {
      const { stdout } = await kf.ok('uninstall', '--keep-data', '--yes');
      expect(stdout).toMatch(/apps that keep running: +1\n/);
      expect(stdout).toMatch(/apps removed: +0\n/);
    });
    expect(bad).toEqual([]);
    expect(await list('pods', '-n', 'kf-system', '-l', 'app=kf-controller')).toEqual([]);
    expect(await list('deployments', '-n', 'kf-system')).toMatchObject([
      { metadata: { name: 'kf-pages' } },
      { metadata: { name: 'kf-registry' } },
    ]);
    expect(await list(policyKinds, '-l', 'kf.cloudfoundry.org/part-of')).toEqual([]);
    expect(await finalizers()).toEqual([]);
    expect(await appPods()).toEqual(pods);
    expect((await kf.ok('app', 'kept')).stdout).toMatch(/instances: +1\/1\n/);
  });

  test('lets a later setup adopt everything without a restart, and kf works as before', async () => {
    const pods = await appPods();
    expect(await badAnswersDuring('kept', setup)).toEqual([]);
    expect((await kf.ok('app', 'kept')).stdout).toMatch(/instances: +1\/1\n/);
    await until('the finalizers of org and space', async () => (await finalizers()).length === 2);
    await kf.ok('set-env', 'kept', 'COLOUR', 'green');
    expect(await appPods()).toEqual(pods);
    await kf.ok('restart', 'kept');
    expect(await statusOf('kept')).toBe(200);
    await until('the pod before the restart to end', async () => !(await appPods()).some(({ uid }) => uid === pods[0]?.uid));
  });
});

/** The remaining objects after the cluster's own controllers have finished: volumes are deleted with their claims, APIServices with their kinds. */
async function expectAsBefore(): Promise<void> {
  await expect.poll(inventory).toEqual(before);
}

describe('--yes', () => {
  test('removes everything that setup and apps made, and nothing else', async () => {
    const { stdout } = await kf.ok('uninstall', '--yes');
    expect(stdout).toMatch(/apps removed: +1\n/);
    expect(stdout).toMatch(/orgs removed: +1\n/);
    await expectAsBefore();
    expect(Object.keys(before)).toEqual(
      expect.arrayContaining(['ConfigMap foreign/foreign', 'CustomResourceDefinition /httproutes.gateway.networking.k8s.io']),
    );
  });

  test('says at the second run that there was nothing to remove, and other commands name kf setup', async () => {
    const { stdout } = await kf.ok('uninstall', '--yes');
    expect(stdout).toContain('There was nothing to remove.');
    expect((await kf.ok('uninstall', '--keep-data', '--yes')).stdout).toContain('There was nothing to remove.');
    const apps = await kf.run(['apps']);
    expect(apps.code).toBe(1);
    expect(apps.stderr).toContain('kf setup');
  });

  test('deletes the data without a controller, after another setup and an uninstall that kept the data', async () => {
    await setup();
    await push('again');
    expect(await statusOf('again')).toBe(200);
    await kf.ok('uninstall', '--keep-data', '--yes');
    const { stdout } = await kf.ok('uninstall', '--yes');
    expect(stdout).toMatch(/apps removed: +1\n/);
    await expectAsBefore();
  });
});
