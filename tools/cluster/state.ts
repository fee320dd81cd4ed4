// The state folder of a cluster: its paths, its records, and its lock.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

import { clustersFolder } from './cache.ts';
import { markOf } from './process.ts';
import type { ProcessMark } from './process.ts';

export type ClusterMode = 'full' | 'control-plane';

/** The content of `cluster.json` in the state folder. */
export interface ClusterState {
  /** Of this record; nothing compares it while there is only one. */
  format: 1;
  name: string;
  /** Distinguishes clusters on the host: the namespaces are reached at 10.99.<number>.2. */
  number: number;
  mode: ClusterMode;
  kwokNodes: number;
  /** Number of real nodes; missing: 1. */
  nodes?: number;
  /** Init of the namespaces of each node but the first, by its number in the cluster. */
  others?: Record<string, ProcessMark>;
  /** True while `up` works on it; if `up` is interrupted, the cluster is not repaired but started again. */
  starting?: boolean;
  /** Init of the first node's namespaces; all processes of the cluster except the forwarder and the other nodes are its descendants. */
  init?: ProcessMark;
  forwarder?: ProcessMark;
  /** Port on the host's loopback that is forwarded to port 80 of the node. */
  httpPort?: number;
  /** Its port that is forwarded to port 443 of the node. */
  httpsPort?: number;
  /** Binaries that the cluster runs; a cluster of other binaries does not match the request. */
  parts: Record<string, string>;
}

/** Number of real nodes of a cluster, those of kwok not counted. */
export function nodeCount({ mode, nodes = 1 }: Pick<ClusterState, 'mode' | 'nodes'>): number {
  return mode === 'full' ? nodes : 0;
}

/** Init of the namespaces of a node; undefined for one that was never started. */
export function initOf(state: ClusterState, node: number): ProcessMark | undefined {
  return node === 0 ? state.init : state.others?.[node];
}

/** Absolute paths of one node. Its folder is /run/kf inside. */
export interface NodePaths {
  folder: string;
  pki: string;
  log: string;
  pids: string;
  data: string;
  config: string;
}

/** Absolute paths below the state folder, which is that of the first node too. */
export interface ClusterPaths extends NodePaths {
  stateFile: string;
  auditLog: string;
  adminKubeconfig: string;
}

function nodePathsIn(folder: string): NodePaths {
  const below = (name: string): string => join(folder, name);
  return { folder, pki: below('pki'), log: below('log'), pids: below('pids'), data: below('data'), config: below('config') };
}

export function clusterPaths(name: string): ClusterPaths {
  const node = nodePathsIn(join(clustersFolder(), name));
  return {
    ...node,
    stateFile: join(node.folder, 'cluster.json'),
    auditLog: join(node.log, 'audit.log'),
    adminKubeconfig: join(node.folder, 'kubeconfig'),
  };
}

/** The paths of a node by its number in the cluster. */
export function nodePaths(name: string, node: number): NodePaths {
  const { folder } = clusterPaths(name);
  return nodePathsIn(node === 0 ? folder : join(folder, 'nodes', String(node)));
}

/** Reads the record of a cluster; undefined if there is none. */
export function readState(name: string): ClusterState | undefined {
  const file = clusterPaths(name).stateFile;
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ClusterState) : undefined;
}

export function writeState(state: ClusterState): void {
  const { folder, stateFile } = clusterPaths(state.name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${stateFile}.tmp`, `${JSON.stringify(state, undefined, 2)}\n`);
  renameSync(`${stateFile}.tmp`, stateFile);
}

/** All recorded clusters. */
export function listStates(): ClusterState[] {
  const root = clustersFolder();
  if (!existsSync(root)) return [];
  const names = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return names.map((entry) => readState(entry.name)).filter((state) => state !== undefined);
}

/**
 * Runs `action` while no other process holds the lock `key`. When a process ends, however it ends, its locks are free.
 * @param key a cluster's name, or another word for the protected resource
 */
export async function withLock<T>(key: string, action: () => Promise<T>, folder = clustersFolder()): Promise<T> {
  const lock = await takeLock(key, folder);
  return whileHeld(lock, action);
}

/** As {@link withLock}; but when another process holds the lock, nothing is done. */
export async function withLockIfFree(key: string, action: () => Promise<void>, folder = clustersFolder()): Promise<void> {
  const lock = await takeLock(key, folder, '--nonblock');
  if (lock !== undefined) await whileHeld(lock, action);
}

/** An open file with a lock of the kernel (flock(2)). */
interface Lock {
  file: string;
  fd: number;
}

async function whileHeld<T>({ file, fd }: Lock, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } finally {
    // In this order: who waits for the lock sees that its file is gone, and opens a new one.
    rmSync(file, { force: true });
    closeSync(fd);
  }
}

function takeLock(key: string, folder: string): Promise<Lock>;
function takeLock(key: string, folder: string, mode: '--nonblock'): Promise<Lock | undefined>;
async function takeLock(key: string, folder: string, mode?: '--nonblock'): Promise<Lock | undefined> {
  const file = join(folder, `.${key}.lock`);
  mkdirSync(folder, { recursive: true });
  for (;;) {
    const fd = openSync(file, 'a');
    const isLocked = await flock(fd, mode);
    if (isLocked && isAt(fd, file)) {
      // For people who look whose lock it is.
      ftruncateSync(fd);
      writeSync(fd, JSON.stringify(markOf(process.pid)));
      return { file, fd };
    }
    closeSync(fd);
    if (!isLocked) return undefined;
  }
}

/** False if the file was removed, or replaced, since it was opened: a lock on it excludes nobody. */
function isAt(fd: number, file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino;
}

/** Locks the open file with the program of util-linux, because Node has no flock. The lock belongs to the open file, and outlives the program. */
async function flock(fd: number, mode?: '--nonblock'): Promise<boolean> {
  const child = spawn('flock', ['--exclusive', ...(mode === undefined ? [] : [mode]), '3'], { stdio: ['ignore', 'ignore', 'inherit', fd] });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0) return true;
  if (code === 1 && mode === '--nonblock') return false;
  throw new Error(`flock ended with ${String(code)}.`);
}
