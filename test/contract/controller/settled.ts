// When the controller has done all there is to do.

import { setTimeout as sleep } from 'node:timers/promises';
import type { MemoryCluster } from '../../support/memory-cluster.ts';

const looks = 25;

/**
 * Returns once nothing but a Lease has been written for 25 looks in a row. The controller works in this very process, and each look gives it its
 * turn: however slow the machine is, what it has to do at once is done by then.
 */
export async function settled(cluster: MemoryCluster): Promise<void> {
  const written = (): number => cluster.writes.filter(({ kind }) => kind !== 'Lease').length;
  for (let [before, quiet] = [written(), 0]; quiet < looks; quiet += 1) {
    await sleep(20);
    if (written() !== before) [before, quiet] = [written(), 0];
  }
}
