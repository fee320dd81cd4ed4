// Brings a cluster up, or leaves it alone when it is.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { expectedObjects, notReady } from './addons.ts';
import { hostLink, nodeRegistry } from './addresses.ts';
import { ApiClient } from './api.ts';
import { cacheFolder } from './cache.ts';
import { stopCluster } from './down.ts';
import { ensureForwarder } from './forwarder.ts';
import { bringImages } from './image-store.ts';
import { buildImages } from './images/index.ts';
import type { BuiltImage } from './images/index.ts';
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
  if (before && (await isHealthy(before, options.kwokNodes, parts))) {
    await refresh(before, parts, images, options.log);
    options.log(`cluster ${options.name} is up already, nothing to do`);
    return before;
  }
  if (before) {
    options.log(`cluster ${options.name} is not healthy, starting it again with the objects it has`);
    await stopCluster(before);
  }
  const state = before ?? (await newState(options));
  state.kwokNodes = options.kwokNodes;
  state.parts = { ...parts };
  if (state.mode === 'full') await fetchNpmPackages(options.log);
  const startedAt = Date.now();
  await startCluster(state, parts, images, options.log);
  await ensureForwarderIfFull(state);
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
  writeState(state);
  await bringImages(state.init, parts, clusterPaths(state.name).data, images);
  if (await fetchNpmPackages(log)) await restartProgram(state.init, npmMirror());
}

async function ensureForwarderIfFull(state: ClusterState): Promise<void> {
  if (state.mode === 'full') await ensureForwarder(state);
}

/** Whether the cluster runs on just these parts and everything in it that belongs to it is ready. */
async function isHealthy(state: ClusterState, kwokNodes: number, parts: PartPaths): Promise<boolean> {
  if (!isRunning(state.init) || state.kwokNodes !== kwokNodes || !hasParts(state, parts)) return false;
  const client = new ApiClient(clusterPaths(state.name).adminKubeconfig);
  try {
    if (!(await client.isReady())) return false;
    return state.mode === 'control-plane' || (await notReady(client, expectedObjects(parts))).length === 0;
  } finally {
    client.close();
  }
}

function hasParts(state: ClusterState, parts: PartPaths): boolean {
  return Object.entries(parts).every(([name, path]) => state.parts[name] === path);
}
