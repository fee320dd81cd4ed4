// Starts a cluster, or leaves a healthy one unchanged.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { expectedObjects, notReady } from './addons.ts';
import { hostLink } from './addresses.ts';
import { ApiClient } from './api.ts';
import { stopCluster } from './down.ts';
import { ensureForwarder } from './forwarder.ts';
import { bringImages } from './image-store.ts';
import type { BuiltImage } from './images/index.ts';
import { restartProgram } from './namespaces.ts';
import { fetchNpmPackages, npmMirror } from './npm-mirror.ts';
import type { PartPaths } from './parts.ts';
import { prepareCluster } from './prepare.ts';
import { isRunning } from './process.ts';
import { startCluster } from './start.ts';
import { clusterPaths, listStates, nodeCount, readState, withLock, writeState } from './state.ts';
import type { ClusterMode, ClusterState } from './state.ts';

export interface UpOptions {
  name: string;
  mode: ClusterMode;
  /** Number of nodes that kwok simulates; 0 for none. */
  kwokNodes: number;
  /** Number of real nodes. */
  nodes: number;
  log: (line: string) => void;
}

/** Starts the cluster. A healthy one is not changed; one that was killed is started again with its objects. Returns its state. */
export async function up(options: UpOptions): Promise<ClusterState> {
  const { parts, images } = await prepareCluster({ mode: options.mode, kwok: options.kwokNodes > 0 }, options.log);
  return withLock(options.name, () => upLocked(options, parts, images));
}

async function upLocked(options: UpOptions, parts: PartPaths, images: BuiltImage[]): Promise<ClusterState> {
  const before = readState(options.name);
  if (before && before.mode !== options.mode) {
    throw new Error(`Cluster ${options.name} exists in mode ${before.mode}. Run \`npm run cluster -- down --name ${options.name}\` first.`);
  }
  const reason = before && (await reasonToStart(before, options, parts));
  if (before && reason === undefined) {
    await refresh(before, parts, images, options.log);
    options.log(`cluster ${options.name} is up already, nothing to do`);
    return before;
  }
  if (before) {
    options.log(`cluster ${options.name} is started again with the objects it has: ${String(reason)}`);
    await stopCluster(before);
  }
  const state = before ?? (await newState(options));
  state.kwokNodes = options.kwokNodes;
  state.nodes = options.nodes;
  state.parts = { ...parts };
  if (state.mode === 'full') await fetchNpmPackages(options.log);
  const startedAt = Date.now();
  state.starting = true;
  await startCluster(state, parts, images, options.log);
  await ensureForwarderIfFull(state);
  delete state.starting;
  writeState(state);
  options.log(`cluster ${options.name} is ready after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  return state;
}

/** Records a new cluster under the lowest number that no other cluster has. */
function newState(options: UpOptions): Promise<ClusterState> {
  return withLock('numbers', async () => {
    const taken = new Set(listStates().map((state) => state.number));
    const isFree = (n: number): boolean => !taken.has(n) && !existsSync(`/sys/class/net/${hostLink(n).device}`);
    const number = Array.from({ length: 254 }, (_, index) => index + 1).find(isFree);
    if (number === undefined) throw new Error('254 clusters exist already.');
    const state: ClusterState = { format: 1, name: options.name, number, mode: options.mode, kwokNodes: options.kwokNodes, parts: {} };
    writeState(state);
    return Promise.resolve(state);
  });
}

/** Updates what may have changed around a healthy cluster: the forwarder on the host, images, npm packages. */
async function refresh(state: ClusterState, parts: PartPaths, images: BuiltImage[], log: (line: string) => void): Promise<void> {
  if (state.mode !== 'full' || !state.init) return;
  await ensureForwarder(state);
  state.parts = { ...parts };
  writeState(state);
  await bringImages(state.init, parts, clusterPaths(state.name).data, images);
  if (await fetchNpmPackages(log)) await restartProgram(state.init, npmMirror());
}

async function ensureForwarderIfFull(state: ClusterState): Promise<void> {
  if (state.mode === 'full') await ensureForwarder(state);
}

/** A change of these binaries requires a new start of the cluster; the others are used on the host or in images. */
const runningBinaries = ['kfnode', 'containerd', 'containerd-shim-runc-v2', 'runc', 'registry', 'netpol', 'kwok'];

/** The time for which a cluster may be unready before it is started again: its programs restart by themselves. */
const patienceMs = 20_000;

/** Why a recorded cluster does not match the request, or undefined if it does and is ready. */
async function reasonToStart(
  state: ClusterState,
  { kwokNodes, nodes }: Pick<UpOptions, 'kwokNodes' | 'nodes'>,
  parts: PartPaths,
): Promise<string | undefined> {
  if (!isRunning(state.init)) return 'it does not run';
  if (state.kwokNodes !== kwokNodes) return 'the number of kwok nodes is another';
  if (state.mode === 'full' && nodeCount(state) !== nodes) return 'the number of nodes is another';
  const changed = runningBinaries.find((name) => parts[name] !== undefined && parts[name] !== state.parts[name]);
  if (changed !== undefined) return `${changed} was built anew`;
  if (state.starting) return 'an earlier start was cut off';
  const end = Date.now() + patienceMs;
  for (;;) {
    const missing = await whatIsNotReady(state, parts);
    if (missing === undefined || Date.now() > end) return missing;
    await sleep(500);
  }
}

async function whatIsNotReady(state: ClusterState, parts: PartPaths): Promise<string | undefined> {
  const client = new ApiClient(clusterPaths(state.name).adminKubeconfig);
  try {
    if (!(await client.isReady())) return 'the API server is not ready';
    const missing = state.mode === 'full' ? await notReady(client, expectedObjects(parts, nodeCount(state))) : [];
    return missing.length > 0 ? `not ready: ${missing.join(', ')}` : undefined;
  } finally {
    client.close();
  }
}
