// Stops a cluster. Nothing of it stays on the machine, except its files if it is only stopped.
import { rmSync } from 'node:fs';

import { removeNamespaces } from './namespaces.ts';
import { endProcess } from './process.ts';
import { clusterPaths, readState, withLock } from './state.ts';
import type { ClusterState } from './state.ts';

const forwarderGraceMs = 1_000;

/** Ends all processes of a cluster and removes its kernel objects. Its files stay, so that it can be started again. */
export async function stopCluster(state: ClusterState): Promise<void> {
  await endProcess(state.forwarder, forwarderGraceMs);
  await removeNamespaces(state.name, state.number, state.init);
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
