// The environment of the api and cluster rings.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { controllerLine, readControllerReport } from './controller-report.ts';
import { writeRoleKubeconfig } from './developer.ts';
import { installPackedKf } from './installed-kf.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from './local-cluster.ts';

const execute = promisify(execFile);
const keep = process.env['KF_KEEP_CLUSTER'] === '1';

const otherName = process.env['KF_TEST_CLUSTER'];

/** Runs `use` with only a control plane: etcd, API server, controller manager. `KF_TEST_CLUSTER` names it as in {@link withCluster}, plus `-api`. */
export async function withControlPlane<T>(
  use: (env: ClusterEnv) => Promise<T>,
  name = otherName === undefined ? 'api-ring' : `${otherName}-api`,
): Promise<T> {
  const env = await clusterUp(name, '--control-plane-only');
  try {
    return await use(env);
  } finally {
    if (!keep) await clusterDown(name);
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

/**
 * Runs `use` with a whole cluster, the packed and installed kf (`KF_TEST_BIN`), and kf set up in it. `KF_TEST_CLUSTER` names another cluster than
 * the ring's own, for a second run in parallel; with `KF_KEEP_CLUSTER=1` the cluster stays.
 */
export async function withCluster<T>(use: (env: ClusterEnv) => Promise<T>, name = otherName ?? 'cluster-ring'): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-ring-'));
  const [env, binary] = await Promise.all([clusterUp(name), installPackedKf(path.join(folder, 'installed'))]);
  try {
    const result = await use({ ...env, KF_TEST_BIN: binary, ...(await setUp(binary, env, folder)) });
    for (const report of await readControllerReport(env['KF_TEST_KUBECONFIG'] ?? '')) console.log(controllerLine(report));
    return result;
  } finally {
    if (!keep) await clusterDown(name);
    await rm(folder, { recursive: true, force: true });
  }
}
