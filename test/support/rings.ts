// The environment of the api and cluster rings.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { controllerLine, readControllerReport } from './controller-report.ts';
import { writeRoleKubeconfig } from './developer.ts';
import { installPackedKf } from './installed-kf.ts';
import { isInterrupted } from './interruption.ts';
import { lanesEnv, startsClustersLock } from './lanes.ts';
import { withLock } from '../../tools/cluster/state.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from './local-cluster.ts';

const execute = promisify(execFile);
const keep = process.env['KF_KEEP_CLUSTER'] === '1';

const otherName = process.env['KF_TEST_CLUSTER'];

/** Starts the cluster. What an interrupted run has left of it goes first: tests count what exists. With `KF_KEEP_CLUSTER=1` it is used again. */
async function freshCluster(name: string, ...flags: string[]): Promise<ClusterEnv> {
  if (!keep) await clusterDown(name);
  try {
    return await clusterUp(name, ...flags);
  } catch (error) {
    // After a failure it stays: its logs say why. Ctrl-C reaches the program that starts it too.
    if (isInterrupted() && !keep) await clusterDown(name);
    throw error;
  }
}

/** Runs `use` with only a control plane: etcd, API server, controller manager. `KF_TEST_CLUSTER` names it as in {@link withCluster}, plus `-api`. */
export async function withControlPlane<T>(
  use: (env: ClusterEnv) => Promise<T>,
  name = otherName === undefined ? 'api-ring' : `${otherName}-api`,
): Promise<T> {
  const env = await freshCluster(name, '--control-plane-only');
  try {
    return await use(env);
  } finally {
    // The cluster ring may have begun, and one of its files compares the firewall.
    if (!keep) await withLock(startsClustersLock, () => clusterDown(name));
  }
}

interface SetupOutput {
  result: { org: { guid: string; name: string }; space: { guid: string; name: string } };
}

/** Runs `kf setup` once for the whole ring; its JSON and duration are stored for the tests of setup. */
async function setUp(binary: string, env: ClusterEnv, folder: string): Promise<ClusterEnv> {
  const started = performance.now();
  const file = await writeSetupFile(folder, env);
  const { stdout } = await execute(binary, ['setup', '-f', file, '--json'], { env: { ...process.env, ...env, CF_HOME: folder } });
  const milliseconds = Math.round(performance.now() - started);
  const output = JSON.parse(stdout) as SetupOutput;
  const resultFile = path.join(folder, 'setup.json');
  await writeFile(resultFile, JSON.stringify({ ...output, milliseconds }));
  const { org, space } = output.result;
  const place = { org: org.guid, space: space.guid };
  const admin = env['KF_TEST_KUBECONFIG'] ?? '';
  const [developer, auditor] = [path.join(folder, 'developer.yaml'), path.join(folder, 'auditor.yaml')];
  await writeRoleKubeconfig(admin, developer, 'spaceDeveloper', place);
  await writeRoleKubeconfig(admin, auditor, 'spaceAuditor', place);
  return {
    KF_TEST_SETUP_FILE: file,
    KF_TEST_SETUP_RESULT: resultFile,
    KF_TEST_DEVELOPER: developer,
    KF_TEST_AUDITOR: auditor,
    KF_TEST_ORG: org.name,
    KF_TEST_SPACE: space.name,
    KF_TEST_SPACE_GUID: space.guid,
  };
}

/** A cluster with kf set up in it. */
interface OpenCluster {
  env: ClusterEnv;
  close(): Promise<void>;
}

/** Another cluster than one with a single real node. */
export interface ClusterShape {
  /** Of `npm run cluster -- up`. */
  flags: string[];
  /** Runs before `kf setup`. */
  prepare(env: ClusterEnv): Promise<void>;
}

const oneNode: ClusterShape = { flags: [], prepare: () => Promise.resolve() };

async function openCluster(name: string, binary: Promise<string>, folder: string, shape: ClusterShape): Promise<OpenCluster> {
  const close = async (): Promise<void> => {
    if (!keep) await clusterDown(name);
  };
  const [made, packed] = await Promise.allSettled([freshCluster(name, ...shape.flags), binary]);
  if (made.status === 'rejected') throw made.reason;
  const env = made.value;
  try {
    if (packed.status === 'rejected') throw packed.reason;
    const program = packed.value;
    await shape.prepare(env);
    return { env: { ...env, KF_TEST_BIN: program, ...(await setUp(program, env, folder)) }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Clusters with the packed and installed kf (`KF_TEST_BIN`), and kf set up in each. */
async function withNamedClusters<T>(names: string[], use: (envs: ClusterEnv[]) => Promise<T>, shape = oneNode): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-ring-'));
  const binary = installPackedKf(path.join(folder, 'installed'));
  const opened = await Promise.allSettled(names.map((name) => openCluster(name, binary, path.join(folder, name), shape)));
  const clusters = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  try {
    for (const result of opened) if (result.status === 'rejected') throw result.reason;
    const result = await use(clusters.map(({ env }) => env));
    for (const { env } of clusters)
      for (const report of await readControllerReport(env['KF_TEST_KUBECONFIG'] ?? '')) console.log(controllerLine(report));
    return result;
  } finally {
    await Promise.all(clusters.map(({ close }) => close()));
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Runs `use` with a whole cluster. `KF_TEST_CLUSTER` names another cluster than the ring's own, for a second run in parallel; with
 * `KF_KEEP_CLUSTER=1` the cluster stays.
 */
export function withCluster<T>(use: (env: ClusterEnv) => Promise<T>, name = otherName ?? 'cluster-ring', shape?: ClusterShape): Promise<T> {
  return withNamedClusters([name], ([env = {}]) => use(env), shape);
}

/** As {@link withCluster}, with a cluster for each lane of the ring. */
export function withLanes<T>(count: number, use: (env: ClusterEnv) => Promise<T>): Promise<T> {
  const first = otherName ?? 'cluster-ring';
  const names = Array.from({ length: count }, (_, index) => (index === 0 ? first : `${first}-${String(index + 1)}`));
  return withNamedClusters(names, (envs) => use(lanesEnv(envs)));
}
