// How much room the volume with the images has.

import { statfs } from 'node:fs/promises';
import type { GateStatus } from '../../lib/api/gate-status.ts';

/** Of the volume; with less free it is nearly full. Uploads are refused then, so that what is there can still be read, renamed and removed. */
const reserve = 0.05;

/** @param folder lies on the volume */
export async function roomOf(folder: string): Promise<GateStatus['room']> {
  const { blocks, bavail, bsize } = await statfs(folder);
  const [total, free] = [blocks * bsize, bavail * bsize];
  return { total, free, nearlyFull: free < total * reserve };
}
