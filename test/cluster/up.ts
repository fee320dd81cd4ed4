// Brings a cluster up, or leaves it alone when it is.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { expectedObjects, notReady } from './addons.ts';
import { hostLink, nodeRegistry } from './addresses.ts';
import { ApiClient } from './api.ts';
import { cacheFolder } from './cache.ts';
import { stopCluster } from './down.ts';
import { ensureForwarder } from './forwarder.ts';
import { bringImages } from './image-store.ts';
import { buildImages } from './images/index.ts';
import type { BuiltImage } from './images/index.ts';
import { raiseLimits } from './limits.ts';
import { restartProgram } from './namespaces.ts';
import { fetchNpmPackages, npmMirror } from './npm-mirror.ts';
import { installPackages } from './packages.ts';
import { buildParts, partSets } from './parts.ts';
import type { PartPaths } from './parts.ts';
import { isRunning } from './process.ts';
import { startCluster } from './start.ts';
import { clusterPaths, listStates, readState, withLock, writeState } from './state.ts';
import type { ClusterMode, ClusterState } from './state.ts';

export interface UpOptions {
  name: string;
  mode: ClusterMode;
  /** Number of nodes that kwok plays; 0 for none. */
  kwokNodes: number;
  log: (line: string) => void;
}

/** Brings the cluster up. A healthy one stays untouched; one that was killed comes back with its objects. Returns its state. */
export async function up(options: UpOptions): Promise<ClusterState> {
  assertPossible();
  raiseLimits(options.log);
  await installPackages(options.log);
  const names = options.mode === 'full' ? partSets.node : [...partSets.controlPlane];
  const parts = await buildParts(options.kwokNodes > 0 ? [...names, ...partSets.kwok] : names, options.log);
  const imageOptions = { cacheDir: join(cacheFolder(), 'images'), parts, log: options.log, insideRegistry: nodeRegistry };
  const images = options.mode === 'full' ? await buildImages(imageOptions) : [];
  return withLock(options.name, () => upLocked(options, parts, images));
}

function assertPossible(): void {
  const instead =
    'With docker, make a cluster with kind or k3d instead, and give its kubeconfig context to kf and to `npm run demo -- --context NAME`.';
  if (process.platform !== 'linux') throw new Error(`A cluster from packages needs Linux. ${instead}`);
  if (process.getuid?.() !== 0)
    throw new Error(`A cluster from packages needs root, since it makes namespaces, mounts and cgroups. ${instead}`);
}

async function upLocked(options: UpOptions, parts: PartPaths, images: BuiltImage[]): Promise<ClusterState> {
  const before = readState(options.name);
  if (before && before.mode !== options.mode) {
    throw new Error(`Cluster ${options.name} exists in mode ${before.mode}. Run \`npm run cluster -- down --name ${options.name}\` first.`);
  }
  const reason = before && (await reasonToStart(before, options.kwokNodes, parts));
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

/** Brings what may have changed around a healthy cluster up to date: door on the host, images, npm packages. */
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

/** Binaries whose change means that the cluster must be started again; the others are used on the host or in images. */
const runningBinaries = ['kfnode', 'containerd', 'containerd-shim-runc-v2', 'runc', 'registry', 'kwok'];

/** How long a cluster may be unready before it is started again: its programs come back by themselves. */
const patienceMs = 20_000;

/** Why a recorded cluster is not the one that is wanted, or undefined when it is and all of it is ready. */
async function reasonToStart(state: ClusterState, kwokNodes: number, parts: PartPaths): Promise<string | undefined> {
  if (!isRunning(state.init)) return 'it does not run';
  if (state.kwokNodes !== kwokNodes) return 'the number of kwok nodes is another';
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
    const missing = state.mode === 'full' ? await notReady(client, expectedObjects(parts)) : [];
    return missing.length > 0 ? `not ready: ${missing.join(', ')}` : undefined;
  } finally {
    client.close();
  }
}
