// The status of a cluster in lines, and its settings as shell exports.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { hostLink, nodePlace, nodeRegistry, privateRegistry, registryPort } from './addresses.ts';
import { expectedObjects, notReady } from './addons.ts';
import { ApiClient } from './api.ts';
import { isFrozen } from './cgroups.ts';
import { processesInNamespaces } from './namespaces.ts';
import { npmMirrorUrl } from './npm-mirror.ts';
import { partPath } from './parts.ts';
import { isRunning } from './process.ts';
import { clusterPaths, initOf, nodeCount, nodePaths } from './state.ts';
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
    const apiReady = await client.isReady();
    const missing = apiReady && state.mode === 'full' ? await notReady(client, expectedObjects(state.parts, nodeCount(state))) : [];
    const ready = apiReady && missing.length === 0;
    const lines = [
      `${head}: ${ready ? 'ready' : 'not ready'}`,
      `API server: ${apiReady ? 'ready' : 'does not answer'} at https://${hostLink(state.number).clusterAddress}:6443`,
      `programs: ${programsOf(state, 0)}`,
      ...furtherNodes(state),
      ...(missing.length > 0 ? [`not ready: ${missing.join(', ')}`] : []),
      ...(state.mode === 'full' ? [httpLine(state)] : []),
    ];
    return { ready, lines };
  } finally {
    client.close();
  }
}

/** The programs of a running node, and the number of all its processes. */
function programsOf(state: ClusterState, node: number): string {
  const init = initOf(state, node);
  if (!isRunning(init)) return 'none';
  const { pids } = nodePaths(state.name, node);
  const names = existsSync(pids) ? readdirSync(pids) : [];
  const inside = (name: string): string => `/proc/${String(init.pid)}/root/proc/${readFileSync(join(pids, name), 'utf8').trim()}`;
  const said = names.map((name) => (existsSync(inside(name)) ? name : `${name} (ended)`));
  return `${said.join(' ')}; ${String(processesInNamespaces(init).length)} processes in all`;
}

/** A line for each node but the first. */
function furtherNodes(state: ClusterState): string[] {
  return Array.from({ length: Math.max(0, nodeCount(state) - 1) }, (_, index) => index + 1).map((node) => {
    const { name } = nodePlace(node);
    if (!isRunning(initOf(state, node))) return `${name}: stopped`;
    return `${name}: ${isFrozen(state.name, node) ? 'frozen' : 'runs'}: ${programsOf(state, node)}`;
  });
}

function httpLine(state: ClusterState): string {
  if (!isRunning(state.forwarder)) return 'HTTP: the forwarder does not run';
  return `HTTP: http://127.0.0.1:${String(state.httpPort)} leads to port 80 of the node, https://127.0.0.1:${String(state.httpsPort)} to port 443`;
}
