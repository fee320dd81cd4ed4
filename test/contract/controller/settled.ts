// Recognises that the controller has finished its work.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { MemoryCluster, RecordedWrite } from '../../support/memory-cluster.ts';

const looks = 25;

/** The writes of a leader election go on all the time: the Lease, and the record of who leads. */
export const isElection = ({ kind, name }: RecordedWrite): boolean =>
  kind === 'Lease' || (kind === 'RunnerInfo' && name === 'kf-controller');

/**
 * Returns after 25 looks in a row in which only a leader election has written. The controller runs in the same process, and each look gives it a turn. So
 * its immediate work is done then, however slow the machine is.
 */
export async function settled(cluster: MemoryCluster): Promise<void> {
  const written = (): number => cluster.writes.filter((write) => !isElection(write)).length;
  for (let [before, quiet] = [written(), 0]; quiet < looks; quiet += 1) {
    await sleep(20);
    if (written() !== before) [before, quiet] = [written(), 0];
  }
}

/** The controller has come to an end: from now on it writes nothing, and reads no log. @param reads the logs that were read, which grows */
export async function expectNoMoreWork(cluster: MemoryCluster, reads: readonly string[]): Promise<void> {
  await settled(cluster);
  const [written, read] = [cluster.writes.length, reads.length];
  await settled(cluster);
  expect(cluster.writes.slice(written).filter((write) => !isElection(write))).toEqual([]);
  expect(reads).toHaveLength(read);
}
