// The cgroups of a cluster, for both versions of the kernel's interface.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { clustersFolder } from './cache.ts';

const root = '/sys/fs/cgroup';

/** Whether only version 2 is mounted; a hybrid machine counts as version 1, because its controllers are there. */
export function isCgroupV2(): boolean {
  return existsSync(join(root, 'cgroup.controllers'));
}

/** Name of a cluster's cgroup, below the root of each hierarchy. The kubelet puts pods below it. Clusters in other folders have other cgroups. */
export function cgroupName(clusterName: string): string {
  const folder = clustersFolder();
  const suffix = folder === clustersFolder({}) ? '' : `-${createHash('sha256').update(folder).digest('hex').slice(0, 8)}`;
  return `kf-${clusterName}${suffix}`;
}

/** The cgroup of one node, for its kubelet's pods: that of the whole cluster for the first one, and one below it for each other, so that it can be frozen alone. */
export function nodeCgroup(clusterName: string, node: number): string {
  return node === 0 ? cgroupName(clusterName) : `${cgroupName(clusterName)}/node-${String(node)}`;
}

/** The cgroup of a node's programs: beside the pods, so that version 2 has no processes in an inner cgroup. */
export function programCgroup(clusterName: string, node = 0): string {
  return `${nodeCgroup(clusterName, node)}/system`;
}

function hierarchies(): string[] {
  if (isCgroupV2()) return [root];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'cgroup.procs')))
    .map((entry) => join(root, entry.name));
}

/** Creates the cgroups of a node; existing ones stay. */
export function makeCgroups(clusterName: string, node = 0): void {
  const folders = programCgroup(clusterName, node).split('/');
  for (const hierarchy of hierarchies()) {
    folders.reduce((above, folder) => {
      if (isCgroupV2()) passControllersOn(above);
      const cgroup = join(above, folder);
      mkdirSync(cgroup, { recursive: true });
      if (!isCgroupV2()) copyCpuset(above, cgroup);
      return cgroup;
    }, hierarchy);
  }
}

/** Version 1 refuses processes in a cpuset that lists no cpus or memory nodes. */
function copyCpuset(above: string, cgroup: string): void {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    if (existsSync(join(cgroup, file))) writeFileSync(join(cgroup, file), readFileSync(join(above, file), 'utf8'));
  }
}

/** Version 2: children of a cgroup have only the controllers that it passes on. */
function passControllersOn(cgroup: string): void {
  const names = readFileSync(join(cgroup, 'cgroup.controllers'), 'utf8').trim().split(' ').filter(Boolean);
  try {
    for (const name of names) writeFileSync(join(cgroup, 'cgroup.subtree_control'), `+${name}`);
  } catch (error) {
    // EBUSY: there are processes in this cgroup itself, as in a container without its own cgroup namespace.
    throw new Error(`The controllers of ${cgroup} cannot be passed on to a cluster.`, { cause: error });
  }
}

/** Puts this process into a cluster's cgroup. Throws when the cluster has none. */
export function joinProgramCgroup(clusterName: string): void {
  for (const hierarchy of hierarchies()) writeFileSync(join(hierarchy, programCgroup(clusterName), 'cgroup.procs'), String(process.pid));
}

/** Removes the cgroups of a cluster, or of one of its nodes. Processes in them must have been ended; the kernel may take a moment to forget them. */
export async function removeCgroups(clusterName: string, node = 0): Promise<void> {
  const end = Date.now() + 10_000;
  for (const hierarchy of hierarchies()) {
    const top = join(hierarchy, nodeCgroup(clusterName, node));
    while (existsSync(top)) {
      try {
        removeTree(top);
      } catch (error) {
        if (Date.now() > end) throw new Error(`The cgroup ${top} cannot be removed.`, { cause: error });
        await sleep(50);
      }
    }
  }
}

function removeTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  rmdirSync(folder);
}

/** Host pids of all processes in the cgroups of a cluster, or of one of its other nodes. */
export function processesInCgroups(clusterName: string, node = 0): number[] {
  const found = new Set<number>();
  const collect = (folder: string): void => {
    for (const line of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n')) if (line) found.add(Number(line));
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) collect(join(folder, entry.name));
  };
  for (const hierarchy of hierarchies()) {
    const top = join(hierarchy, nodeCgroup(clusterName, node));
    if (existsSync(top)) collect(top);
  }
  return [...found];
}

/** The file that freezes a cgroup with everything below it, and what it says of the states. */
function freezer(clusterName: string, node: number): { file: string; frozen: string; thawed: string } {
  const cgroup = nodeCgroup(clusterName, node);
  return isCgroupV2()
    ? { file: join(root, cgroup, 'cgroup.freeze'), frozen: '1', thawed: '0' }
    : { file: join(root, 'freezer', cgroup, 'freezer.state'), frozen: 'FROZEN', thawed: 'THAWED' };
}

/** Whether all processes of a node are frozen. */
export function isFrozen(clusterName: string, node: number): boolean {
  const { file, frozen } = freezer(clusterName, node);
  return existsSync(file) && readFileSync(file, 'utf8').trim() === frozen;
}

/** Stops all processes of a node where they are, or lets them go on. A frozen process ends, even by SIGKILL, only after that. */
export async function setFrozen(clusterName: string, node: number, freeze: boolean): Promise<void> {
  const { file, frozen, thawed } = freezer(clusterName, node);
  if (!existsSync(file)) return;
  const end = Date.now() + 10_000;
  writeFileSync(file, freeze ? frozen : thawed);
  while (isFrozen(clusterName, node) !== freeze) {
    if (Date.now() > end) throw new Error(`The cgroup of node ${String(node)} does not become ${freeze ? frozen : thawed}.`);
    await sleep(20);
  }
}
