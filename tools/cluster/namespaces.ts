// The namespaces of a cluster: created, entered, connected to the host, removed.
import { existsSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { bridge, firstNode, hostLink } from './addresses.ts';
import { makeCgroups, processesInCgroups, programCgroup, removeCgroups } from './cgroups.ts';
import { endProcess, isRunning, markOf, run, startDetached, tryRun } from './process.ts';
import type { ProcessMark } from './process.ts';
import { clusterPaths } from './state.ts';

const scripts = join(import.meta.dirname, 'node');
const readyTimeoutMs = 10_000;

/** Creates mount, network, pid and host name namespaces with the cgroups of a cluster and returns their init. */
export async function makeNamespaces(clusterName: string, clusterNumber: number): Promise<ProcessMark> {
  const paths = clusterPaths(clusterName);
  for (const folder of [paths.log, paths.pids, paths.data]) mkdirSync(folder, { recursive: true });
  makeCgroups(clusterName);
  const namespaces = ['--mount', '--net', '--pid', '--uts', '--fork', '--mount-proc'];
  const init = ['/bin/sh', join(scripts, 'init.sh'), paths.folder, firstNode.name, programCgroup(clusterName)];
  const outer = startDetached('unshare', [...namespaces, '--', ...init], join(paths.log, 'init.log'));
  const mark = await firstChild(outer, join(paths.log, 'init.log'));
  await waitFor(() => existsSync(`/proc/${String(mark.pid)}/root/run/ready`), `the mounts of cluster ${clusterName}`);
  await connect(mark, clusterNumber, paths.folder);
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

/** Creates the devices of the network namespace: loopback, the link to the host, the bridge of the pods. */
async function connect(init: ProcessMark, clusterNumber: number, folder: string): Promise<void> {
  const { device, hostAddress, clusterAddress } = hostLink(clusterNumber);
  await removeLink(device, folder);
  await run('ip', ['link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(init.pid)]);
  await run('ip', ['address', 'add', `${hostAddress}/30`, 'dev', device]);
  await run('ip', ['link', 'set', device, 'up', 'alias', linkOwner(folder)]);
  const inside = [
    'ip link set lo up',
    `ip address add ${clusterAddress}/30 dev eth0`,
    'ip link set eth0 up',
    `ip route add default via ${hostAddress}`,
    `ip link add ${bridge} type bridge`,
    // A fixed address: a bridge uses the lowest one of its ports, which changes with every pod.
    `ip link set ${bridge} address 0a:58:0a:f4:00:01`,
    `ip address add ${firstNode.address}/24 dev ${bridge}`,
    `ip link set ${bridge} up`,
    'echo 1 >/proc/sys/net/ipv4/ip_forward',
    // Traffic from a pod through a Service to a pod of the same node passes only the bridge; kube-proxy must see the answer to translate it back.
    'if [ -e /proc/sys/net/bridge ]; then echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables; fi',
  ];
  await runInside(init, ['/bin/sh', '-ec', inside.join('\n')]);
}

/** The alias of a link: the path of the state folder, within the kernel's limit of 255 characters. */
function linkOwner(folder: string): string {
  return folder.slice(-200);
}

/** Removes the host's end of a link unless it belongs to another cluster, whose state is in another folder. */
async function removeLink(device: string, folder: string): Promise<void> {
  const file = `/sys/class/net/${device}/ifalias`;
  const owner = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (owner === '' || owner === linkOwner(folder)) await tryRun('ip', ['link', 'delete', device]);
}

/** Arguments for `nsenter` that run a command in the namespaces. */
function enter(init: ProcessMark, command: string[]): string[] {
  return ['--target', String(init.pid), '--mount', '--net', '--pid', '--uts', '--wd=/', '--', ...command];
}

/** Runs a command in a cluster's namespaces until it ends and returns its stdout. */
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

/** Starts a program in a cluster's namespaces, and starts it again whenever it ends. */
export async function startInside(init: ProcessMark, clusterName: string, program: NodeProgram): Promise<void> {
  const environment = Object.entries(program.env ?? {}).map(([name, value]) => `${name}=${value}`);
  // It runs in its own session and in the background, so that nsenter ends and init becomes the parent.
  const background = 'setsid /usr/bin/env "$@" </dev/null >/dev/null 2>&1 &';
  const supervise = ['/bin/sh', join(scripts, 'supervise.sh'), program.name, programCgroup(clusterName), ...program.command];
  await runInside(init, ['/bin/sh', '-c', background, 'start', ...environment, ...supervise]);
}

/** Ends a program that `startInside` restarts, so that it starts again. */
export async function restartProgram(init: ProcessMark, program: Pick<NodeProgram, 'name'>): Promise<void> {
  await runInside(init, ['/bin/sh', '-c', 'kill "$(cat "/run/kf/pids/$1")"', 'restart', program.name]);
}

/**
 * Ends all programs of a cluster, and removes mounts, devices and cgroups. Files stay.
 * This works after any crash: it needs only the cluster's name and number, because it finds processes by their cgroups too.
 */
export async function removeNamespaces(clusterName: string, clusterNumber: number, init: ProcessMark | undefined): Promise<void> {
  const namespaces = isRunning(init) ? processesInNamespaces(init) : [];
  await endProcess(init, 0);
  const left = [...namespaces, ...processesInCgroups(clusterName).map(markOf)];
  await Promise.all(left.map((mark) => endProcess(mark, 0)));
  await removeLink(hostLink(clusterNumber).device, clusterPaths(clusterName).folder);
  await removeCgroups(clusterName);
  for (const pidFile of existsSync(clusterPaths(clusterName).pids) ? readdirSync(clusterPaths(clusterName).pids) : []) {
    rmSync(join(clusterPaths(clusterName).pids, pidFile), { force: true });
  }
}

/** Every process in the pid namespace of a cluster. */
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
