// The state folder of a cluster: its paths, its records, and its lock.
import { linkSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { clustersFolder } from './cache.ts';
import { isRunning, markOf } from './process.ts';
import type { ProcessMark } from './process.ts';

export type ClusterMode = 'full' | 'control-plane';

/** The content of `cluster.json` in the state folder. */
export interface ClusterState {
  format: 1;
  name: string;
  /** Distinguishes clusters on the host: the namespaces are reached at 10.99.<number>.2. */
  number: number;
  mode: ClusterMode;
  kwokNodes: number;
  /** True while `up` works on it; if `up` is interrupted, the cluster is not repaired but started again. */
  starting?: boolean;
  /** Init of the namespaces; all processes of the cluster except the forwarder are its descendants. */
  init?: ProcessMark;
  forwarder?: ProcessMark;
  /** Port on the host's loopback that is forwarded to port 80 of the node. */
  httpPort?: number;
  /** Binaries that the cluster runs; a cluster of other binaries does not match the request. */
  parts: Record<string, string>;
}

/** Absolute paths below the state folder. */
export interface ClusterPaths {
  folder: string;
  stateFile: string;
  pki: string;
  log: string;
  auditLog: string;
  pids: string;
  data: string;
  config: string;
  adminKubeconfig: string;
}

export function clusterPaths(name: string): ClusterPaths {
  const folder = join(clustersFolder(), name);
  return {
    folder,
    stateFile: join(folder, 'cluster.json'),
    pki: join(folder, 'pki'),
    log: join(folder, 'log'),
    auditLog: join(folder, 'log', 'audit.log'),
    pids: join(folder, 'pids'),
    data: join(folder, 'data'),
    config: join(folder, 'config'),
    adminKubeconfig: join(folder, 'kubeconfig'),
  };
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
 * Runs `action` while no other process holds the lock `key`. The lock of a process that has died is taken over.
 * @param key a cluster's name, or another word for the protected resource
 */
export async function withLock<T>(key: string, action: () => Promise<T>, folder = clustersFolder()): Promise<T> {
  const file = join(folder, `.${key}.lock`);
  mkdirSync(folder, { recursive: true });
  while (!takeLock(file)) await sleep(100);
  return whileHeld(file, action);
}

/** As {@link withLock}; but when another process holds the lock, nothing is done. */
export async function withLockIfFree(key: string, action: () => Promise<void>, folder = clustersFolder()): Promise<void> {
  const file = join(folder, `.${key}.lock`);
  mkdirSync(folder, { recursive: true });
  if (takeLock(file)) await whileHeld(file, action);
}

async function whileHeld<T>(file: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } finally {
    rmSync(file, { force: true });
  }
}

function takeLock(file: string): boolean {
  const own = `${file}.${String(process.pid)}`;
  writeFileSync(own, JSON.stringify(markOf(process.pid)));
  try {
    // A link appears with its content or not at all, so no process reads a half-written owner.
    linkSync(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(own, { force: true });
  }
  removeStaleLock(file);
  return false;
}

function removeStaleLock(file: string): void {
  try {
    const owner = JSON.parse(readFileSync(file, 'utf8')) as ProcessMark;
    if (isRunning(owner)) return;
    // Renamed first: if two processes see a dead owner, only one removes this file.
    const grave = `${file}.${String(process.pid)}.stale`;
    renameSync(file, grave);
    rmSync(grave, { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
