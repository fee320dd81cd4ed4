// The namespaces of a node: created and entered.
import { existsSync, mkdirSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { nodePlace } from './addresses.ts';
import { makeCgroups, programCgroup } from './cgroups.ts';
import { markOf, run, startDetached } from './process.ts';
import type { ProcessMark } from './process.ts';
import { nodePaths } from './state.ts';

const scripts = join(import.meta.dirname, 'node');
const readyTimeoutMs = 10_000;

/** Creates mount, network, pid and host name namespaces with the cgroups of a node, and returns their init. Their network has no devices yet. */
export async function makeNamespaces(clusterName: string, index: number): Promise<ProcessMark> {
  const paths = nodePaths(clusterName, index);
  const { name } = nodePlace(index);
  for (const folder of [paths.log, paths.pids, paths.data]) mkdirSync(folder, { recursive: true });
  makeCgroups(clusterName, index);
  const namespaces = ['--mount', '--net', '--pid', '--uts', '--fork', '--mount-proc'];
  const init = ['/bin/sh', join(scripts, 'init.sh'), paths.folder, name, programCgroup(clusterName, index)];
  const outer = startDetached('unshare', [...namespaces, '--', ...init], join(paths.log, 'init.log'));
  const mark = await firstChild(outer, join(paths.log, 'init.log'));
  await waitFor(() => existsSync(`/proc/${String(mark.pid)}/root/run/ready`), `the mounts of ${name} of cluster ${clusterName}`);
  return mark;
}

async function firstChild(pid: number, log: string): Promise<ProcessMark> {
  let mark: ProcessMark | undefined;
  const look = (): boolean => {
    if (!markOf(pid)) throw new Error(`The namespaces cannot be made: ${readFileSync(log, 'utf8').trim()}`);
    const child = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8')
      .trim()
      .split(' ')[0];
    mark = child ? markOf(Number(child)) : undefined;
    return mark !== undefined;
  };
  await waitFor(look, 'the first process of the namespaces');
  if (!mark) throw new Error('The first process of the namespaces ended at once.');
  return mark;
}

async function waitFor(check: () => boolean, what: string): Promise<void> {
  const end = Date.now() + readyTimeoutMs;
  while (!check()) {
    if (Date.now() > end) throw new Error(`Waited ${String(readyTimeoutMs / 1000)} s in vain for ${what}.`);
    await sleep(10);
  }
}

/** Arguments for `nsenter` that run a command in the namespaces. */
function enter(init: ProcessMark, command: string[]): string[] {
  return ['--target', String(init.pid), '--mount', '--net', '--pid', '--uts', '--wd=/', '--', ...command];
}

/** Runs a command in the namespaces of a node until it ends and returns its stdout. */
export function runInside(init: ProcessMark, command: string[]): Promise<string> {
  return run('nsenter', enter(init, command));
}

/** A program that a node restarts when it ends. */
export interface NodeProgram {
  /** Also the name of its log and pid file. */
  name: string;
  command: string[];
  env?: Record<string, string>;
}

const GiB = 1024 ** 3;

/**
 * How often the Go programs of a node collect garbage: by default that is a sixth of the API server's processor time. Here heaps may grow to five times
 * what is in use before it, which a machine with little memory cannot afford.
 * @param memory of the machine, or of the container that this runs in, in bytes
 */
export function garbageCollection(memory: number): Record<string, string> {
  return memory >= 12 * GiB ? { GOGC: '400' } : {};
}

/** Starts a program in the namespaces of a node, and starts it again whenever it ends. @param cgroup of the node's programs */
export async function startInside(init: ProcessMark, cgroup: string, program: NodeProgram): Promise<void> {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  const environment = Object.entries({ ...garbageCollection(memory), ...program.env }).map(([name, value]) => `${name}=${value}`);
  // It runs in its own session and in the background, so that nsenter ends and init becomes the parent.
  const background = 'setsid /usr/bin/env "$@" </dev/null >/dev/null 2>&1 &';
  const supervise = ['/bin/sh', join(scripts, 'supervise.sh'), program.name, cgroup, ...program.command];
  await runInside(init, ['/bin/sh', '-c', background, 'start', ...environment, ...supervise]);
}

/** Ends a program that `startInside` restarts, so that it starts again. */
export async function restartProgram(init: ProcessMark, program: Pick<NodeProgram, 'name'>): Promise<void> {
  await runInside(init, ['/bin/sh', '-c', 'kill "$(cat "/run/kf/pids/$1")"', 'restart', program.name]);
}

/** Every process in the pid namespace of a node. */
export function processesInNamespaces(init: ProcessMark): ProcessMark[] {
  const namespaceOf = (pid: string): string | undefined => {
    try {
      return readlinkSync(`/proc/${pid}/ns/pid`);
    } catch {
      return undefined;
    }
  };
  const own = namespaceOf(String(init.pid));
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry) && own !== undefined && namespaceOf(entry) === own);
  return pids.map((pid) => markOf(Number(pid))).filter((mark) => mark !== undefined);
}
