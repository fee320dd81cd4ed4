// The folder in which packing stores data that makes the next push faster. If the home is not writable, the push is slower but still works.

import { accessSync, constants, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';

export interface SourceCache {
  dir: string;
  /** Removes the folder if it is a temporary replacement. */
  close(): void;
}

/** Files of killed runs are removed after this time. */
const STALE_MS = 24 * 60 * 60 * 1000;

/** `preferred` if it can be created and written, otherwise a temporary folder for this run, with a warning. */
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

/** Indexes stay for ever (they are small, and there is one per folder); packed layers and unfinished files do not. */
function sweep(dir: string): void {
  const oldest = Date.now() - STALE_MS;
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    const isLeftover = name.endsWith('.tmp') || name.startsWith('layer-');
    if (isLeftover && (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? oldest) < oldest) rmSync(path, { force: true });
  }
}
