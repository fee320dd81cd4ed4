// What the api and cluster rings need around them.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installPackedKf } from './installed-kf.ts';
import { clusterDown, clusterUp, writeSetupFile, type ClusterEnv } from './local-cluster.ts';

const keep = process.env['KF_KEEP_CLUSTER'] === '1';

/** Runs `use` with a control plane alone: etcd, API server, controller manager. */
export async function withControlPlane<T>(use: (env: ClusterEnv) => Promise<T>): Promise<T> {
  const env = await clusterUp('api-ring', '--control-plane-only');
  try {
    return await use(env);
  } finally {
    if (!keep) await clusterDown('api-ring');
  }
}

/** Runs `use` with a whole cluster and the packed, installed kf (`KF_TEST_BIN`), `KF_TEST_SETUP_FILE` being its setup.yaml. */
export async function withCluster<T>(use: (env: ClusterEnv) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kf-ring-'));
  const [env, binary] = await Promise.all([clusterUp('cluster-ring'), installPackedKf(path.join(folder, 'installed'))]);
  try {
    return await use({ ...env, KF_TEST_BIN: binary, KF_TEST_SETUP_FILE: await writeSetupFile(folder, env) });
  } finally {
    if (!keep) await clusterDown('cluster-ring');
    await rm(folder, { recursive: true, force: true });
  }
}
