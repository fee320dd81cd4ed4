// Recognises that the controller has finished its work.

import { setTimeout as sleep } from 'node:timers/promises';
import type { MemoryCluster } from '../../support/memory-cluster.ts';

const looks = 25;

/**
 * Returns after 25 looks in a row in which only a Lease was written. The controller runs in the same process, and each look gives it a turn. So
 * its immediate work is done then, however slow the machine is.
 */
export async function settled(cluster: MemoryCluster): Promise<void> {
  const written = (): number => cluster.writes.filter(({ kind }) => kind !== 'Lease').length;
  for (let [before, quiet] = [written(), 0]; quiet < looks; quiet += 1) {
    await sleep(20);
    if (written() !== before) [before, quiet] = [written(), 0];
  }
}
