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

/** The cgroup of the node's programs: beside the pods, so that version 2 has no processes in an inner cgroup. */
export function programCgroup(clusterName: string): string {
  return `${cgroupName(clusterName)}/system`;
}

function hierarchies(): string[] {
  if (isCgroupV2()) return [root];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'cgroup.procs')))
    .map((entry) => join(root, entry.name));
}

/** Creates a cluster's cgroups; existing ones stay. */
export function makeCgroups(clusterName: string): void {
  for (const hierarchy of hierarchies()) {
    const top = join(hierarchy, cgroupName(clusterName));
    if (isCgroupV2()) passControllersOn(hierarchy);
    mkdirSync(top, { recursive: true });
    if (isCgroupV2()) passControllersOn(top);
    const below = join(hierarchy, programCgroup(clusterName));
    mkdirSync(below, { recursive: true });
    // Version 1 refuses processes in a cpuset that lists no cpus or memory nodes.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      if (!isCgroupV2() && existsSync(join(top, file))) {
        const value = readFileSync(join(hierarchy, file), 'utf8');
        writeFileSync(join(top, file), value);
        writeFileSync(join(below, file), value);
      }
    }
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

/** Removes a cluster's cgroups. Processes in them must have been ended; the kernel may take a moment to forget them. */
export async function removeCgroups(clusterName: string): Promise<void> {
  const end = Date.now() + 10_000;
  for (const hierarchy of hierarchies()) {
    const top = join(hierarchy, cgroupName(clusterName));
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

/** Host pids of all processes in a cluster's cgroups. */
export function processesInCgroups(clusterName: string): number[] {
  const found = new Set<number>();
  const collect = (folder: string): void => {
    for (const line of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n')) if (line) found.add(Number(line));
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) collect(join(folder, entry.name));
  };
  for (const hierarchy of hierarchies()) {
    const top = join(hierarchy, cgroupName(clusterName));
    if (existsSync(top)) collect(top);
  }
  return [...found];
}
