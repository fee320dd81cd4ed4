// The folder where packing keeps what makes the next push cheap. A home that cannot be written costs speed, never the push.

import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';

export interface SourceCache {
  dir: string;
  /** Removes the folder when it was only a stand-in. */
  close(): void;
}

/** Leftovers of killed runs are removed after this. */
const STALE_MS = 24 * 60 * 60 * 1000;

/** `preferred` if it can be made and written, else a temporary folder for this run, with a warning. */
export function openSourceCache(preferred: string, warn?: (message: string) => void): SourceCache {
  try {
    mkdirSync(preferred, { recursive: true, mode: 0o700 });
    accessSync(preferred, constants.W_OK);
    sweep(preferred);
    return { dir: preferred, close: () => undefined };
  } catch (error) {
    warn?.(`The cache folder '${preferred}' cannot be used, so the next push reads every file again: ${messageOf(error)}.`);
    const dir = mkdtempSync(join(tmpdir(), 'kf-cache-'));
    return { dir, close: () => rmSync(dir, { recursive: true, force: true }) };
  }
}

/** Indexes stay for ever (they are small and one per folder); packed layers and unfinished files do not. */
function sweep(dir: string): void {
  const oldest = Date.now() - STALE_MS;
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    const isLeftover = name.endsWith('.tmp') || name.startsWith('layer-');
    if (isLeftover && (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? oldest) < oldest) rmSync(path, { force: true });
  }
}
