// Stops a cluster or one of its nodes. Nothing of it stays on the machine, except its files if it is only stopped.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { hostLink } from './addresses.ts';
import { processesInCgroups, removeCgroups, setFrozen } from './cgroups.ts';
import { processesInNamespaces } from './namespaces.ts';
import { removeLink } from './network.ts';
import { endProcess, isRunning, markOf } from './process.ts';
import type { ProcessMark } from './process.ts';
import { clusterPaths, initOf, nodeCount, nodePaths, readState, withLock } from './state.ts';
import type { ClusterState } from './state.ts';

const forwarderGraceMs = 1_000;

/** Ends all processes of a cluster and removes its kernel objects. Its files stay, so that it can be started again. */
export async function stopCluster(state: ClusterState): Promise<void> {
  const { name, number } = state;
  await endProcess(state.forwarder, forwarderGraceMs);
  for (let node = nodeCount(state) - 1; node > 0; node -= 1) await stopNode(state, node);
  await endNode(name, 0, state.init);
  await removeLink(hostLink(number).device, clusterPaths(name).folder);
  await removeCgroups(name);
}

/** Ends all processes of a further node, as if its power failed, and removes its kernel objects. Its files stay. */
export async function stopNode(state: ClusterState, node: number): Promise<void> {
  await setFrozen(state.name, node, false);
  await endNode(state.name, node, initOf(state, node));
  await removeCgroups(state.name, node);
}

/**
 * Ends all programs of a node; its mounts and devices end with them. This works after any crash: it needs only the numbers, because it finds
 * processes by their cgroups too. With the first node all others end.
 */
async function endNode(name: string, node: number, init: ProcessMark | undefined): Promise<void> {
  const namespaces = isRunning(init) ? processesInNamespaces(init) : [];
  await endProcess(init, 0);
  const left = [...namespaces, ...processesInCgroups(name, node).map(markOf)];
  await Promise.all(left.map((mark) => endProcess(mark, 0)));
  const { pids } = nodePaths(name, node);
  for (const pidFile of existsSync(pids) ? readdirSync(pids) : []) rmSync(join(pids, pidFile), { force: true });
}

/** Stops a cluster and removes its files. Returns whether there was one. */
export function down(name: string): Promise<boolean> {
  return withLock(name, async () => {
    const state = readState(name);
    if (!state) return false;
    await stopCluster(state);
    rmSync(clusterPaths(name).folder, { recursive: true, force: true });
    return true;
  });
}
