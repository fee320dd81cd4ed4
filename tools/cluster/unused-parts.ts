// Removes parts of earlier versions from the cache: each version of a part has a folder of its own, and they take hundreds of megabytes.
import { existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join, sep } from 'node:path';

import { withLockIfFree } from './state.ts';

/** A version that nobody used for this long is removed: somebody who switches between branches builds neither again. */
const unusedMs = 14 * 24 * 3_600_000;

/** Records that the part in this folder is used now. */
export function markUsed(folder: string, now: number): void {
  utimesSync(folder, new Date(now), new Date(now));
}

export interface Use {
  /** The folders that the present sources name. */
  named: readonly string[];
  /** Paths of programs that recorded clusters were started with. */
  inUse: readonly string[];
  now: number;
}

/**
 * Removes the parts of the cache that the present sources do not name, no cluster runs on, and nobody used for 14 days. While another process
 * builds parts, nothing is removed.
 */
export async function removeUnused(cache: string, use: Use): Promise<void> {
  if (unused(cache, use).length === 0) return;
  const remove = (): Promise<void> => {
    for (const folder of unused(cache, use)) {
      // Renamed first: a removal that is cut off must not leave half a part under its name.
      const temporary = `${folder}.${String(process.pid)}.tmp`;
      renameSync(folder, temporary);
      rmSync(temporary, { recursive: true, force: true });
    }
    return Promise.resolve();
  };
  await withLockIfFree('parts', remove, cache);
}

function unused(cache: string, { named, inUse, now }: Use): string[] {
  const root = join(cache, 'parts');
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .filter((name) => !named.includes(name))
    .map((name) => join(root, name))
    .filter((folder) => !inUse.some((program) => program.startsWith(folder + sep)))
    .filter((folder) => now - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? now) > unusedMs);
}
