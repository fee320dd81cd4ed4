// The status of a cluster in lines, and its settings as shell exports.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { hostLink, nodeRegistry, privateRegistry, registryPort } from './addresses.ts';
import { expectedObjects, notReady } from './addons.ts';
import { ApiClient } from './api.ts';
import { processesInNamespaces } from './namespaces.ts';
import { npmMirrorUrl } from './npm-mirror.ts';
import { partPath } from './parts.ts';
import { isRunning } from './process.ts';
import { clusterPaths } from './state.ts';
import type { ClusterState } from './state.ts';

/** Environment variables for people and tests. */
export function clusterEnvironment(state: ClusterState): Record<string, string> {
  const paths = clusterPaths(state.name);
  const { clusterAddress } = hostLink(state.number);
  const full = (): Record<string, string> => ({
    KF_CLUSTER_HTTP_PORT: String(state.httpPort ?? ''),
    KF_CLUSTER_HTTPS_PORT: String(state.httpsPort ?? ''),
    KF_CLUSTER_ADDRESS: clusterAddress,
    KF_CLUSTER_REGISTRY: `${clusterAddress}:${String(registryPort)}`,
    KF_CLUSTER_NODE_REGISTRY: nodeRegistry,
    KF_CLUSTER_PRIVATE_REGISTRY: privateRegistry,
    KF_CLUSTER_NPM_REGISTRY: npmMirrorUrl,
    KF_CLUSTER_CRANE: partPath(state.parts, 'crane'),
  });
  return {
    KUBECONFIG: paths.adminKubeconfig,
    KF_TEST_KUBECONFIG: paths.adminKubeconfig,
    KF_CLUSTER_NAME: state.name,
    KF_CLUSTER_AUDIT_LOG: paths.auditLog,
    KF_CLUSTER_KUBECTL: partPath(state.parts, 'kubectl'),
    ...(state.mode === 'full' ? full() : {}),
  };
}

/** The same as lines for a shell's `eval`, with kubectl and crane added to PATH. */
export function environmentLines(state: ClusterState): string[] {
  const quoted = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;
  const lines = Object.entries(clusterEnvironment(state)).map(([name, value]) => `export ${name}=${quoted(value)}`);
  const tools = ['kubectl', 'crane'].filter((tool) => state.parts[tool] !== undefined).map((tool) => dirname(partPath(state.parts, tool)));
  return [...lines, `export PATH=${[...new Set(tools)].map(quoted).join(':')}:"$PATH"`];
}

/** Running programs and ready objects, for people. `ready` is false if something differs from the state after `up`. */
export async function clusterStatus(state: ClusterState): Promise<{ ready: boolean; lines: string[] }> {
  const head = `cluster ${state.name} (number ${String(state.number)}, ${state.mode})`;
  if (!isRunning(state.init)) return { ready: false, lines: [`${head}: stopped`] };
  const client = new ApiClient(clusterPaths(state.name).adminKubeconfig);
  try {
    const programs = runningPrograms(state);
    const apiReady = await client.isReady();
    const missing = apiReady && state.mode === 'full' ? await notReady(client, expectedObjects(state.parts)) : [];
    const ready = apiReady && missing.length === 0;
    const lines = [
      `${head}: ${ready ? 'ready' : 'not ready'}`,
      `API server: ${apiReady ? 'ready' : 'does not answer'} at https://${hostLink(state.number).clusterAddress}:6443`,
      `programs: ${programs.join(' ')}; ${String(processesInNamespaces(state.init).length)} processes in all`,
      ...(missing.length > 0 ? [`not ready: ${missing.join(', ')}`] : []),
      ...(state.mode === 'full' ? [httpLine(state)] : []),
    ];
    return { ready, lines };
  } finally {
    client.close();
  }
}

function runningPrograms(state: ClusterState): string[] {
  const { pids } = clusterPaths(state.name);
  const names = existsSync(pids) ? readdirSync(pids) : [];
  const inside = (name: string): string => `/proc/${String(state.init?.pid)}/root/proc/${readFileSync(join(pids, name), 'utf8').trim()}`;
  return names.map((name) => (existsSync(inside(name)) ? name : `${name} (ended)`));
}

function httpLine(state: ClusterState): string {
  if (!isRunning(state.forwarder)) return 'HTTP: the forwarder does not run';
  return `HTTP: http://127.0.0.1:${String(state.httpPort)} leads to port 80 of the node, https://127.0.0.1:${String(state.httpsPort)} to port 443`;
}
