// Faults of one node of a cluster: killed or frozen without warning, and started again.
import { setFrozen } from './cgroups.ts';
import { stopNode } from './down.ts';
import { prepareCluster } from './prepare.ts';
import { isRunning } from './process.ts';
import { startNodeAlone } from './start.ts';
import { initOf, nodeCount, readState, withLock } from './state.ts';
import type { ClusterState } from './state.ts';

/** What can be done to a node but the first, which has the control plane. */
export const nodeActions = ['kill', 'freeze', 'thaw', 'start'] as const;
type NodeAction = (typeof nodeActions)[number];

/**
 * `kill` ends all processes of the node at once, as if its power failed; `freeze` stops them where they are until `thaw`, as if the machine hung;
 * `start` starts a node that was killed, with its files.
 * @param node its number, from 1
 */
export function actOnNode(clusterName: string, action: NodeAction, node: number, log: (line: string) => void): Promise<void> {
  return withLock(clusterName, async () => {
    const state = readState(clusterName);
    if (!isRunning(state?.init)) throw new Error(`Cluster ${clusterName} does not run.`);
    if (state === undefined || !Number.isInteger(node) || node < 1 || node >= nodeCount(state)) {
      const most = state === undefined ? 0 : nodeCount(state) - 1;
      throw new Error(
        most < 1 ? `Cluster ${clusterName} has only one node.` : `The other nodes of cluster ${clusterName} are 1 to ${String(most)}.`,
      );
    }
    await actions[action](state, node, log);
  });
}

const actions: Record<NodeAction, (state: ClusterState, node: number, log: (line: string) => void) => Promise<void>> = {
  kill: (state, node) => stopNode(state, node),
  freeze: ({ name }, node) => setFrozen(name, node, true),
  thaw: ({ name }, node) => setFrozen(name, node, false),
  start: async (state, node, log) => {
    if (isRunning(initOf(state, node))) return;
    await stopNode(state, node);
    const { parts, images } = await prepareCluster({ mode: state.mode, kwok: false }, log);
    await startNodeAlone(state, node, { parts, images, log });
  },
};
