// What a push takes, listed: of a folder and of an archive alike.

import { createHash } from 'node:crypto';
import type { LayerEntry } from '../oci/layer.ts';

export interface ListOptions {
  /** The folder of the stat index; created if it does not exist. */
  cacheDir: string;
  /** Whether a flag or the manifest names the source, for the message when it does not exist. */
  namedBy?: 'flag' | 'manifest';
  warn?: (message: string) => void;
  /** Files that kf itself writes meanwhile, besides the index: they are left out. */
  own?: readonly string[];
  /** Entries and bytes of files so far. */
  progress?: (entries: number, bytes: number) => void;
  signal?: AbortSignal;
}

/** A source at the time of listing. Close it when done. */
export interface SourceListing {
  /** Real path of the folder or the archive. */
  root: string;
  /** `sha256:` and 64 hex digits; see {@link ContentHash}. */
  contentHash: string;
  entries: number;
  files: number;
  /** Of all files. */
  bytes: number;
  /** Bytes of files that had to be read because the index did not have them. */
  bytesRead: number;
  /** Entries for the layer, with the expected state of each file at packing time. */
  layerEntries(): Generator<LayerEntry, void, undefined>;
  close(): void;
}

interface HashedEntry {
  path: string;
  type: 'file' | 'directory' | 'symlink';
  mode: number;
  /** Of files: hex. */
  sha256?: string;
  /** Of links. */
  target?: string;
}

/** Equal for equal source, independent of the machine and the compression. */
export class ContentHash {
  readonly #hash = createHash('sha256').update('kf-content-1\n');

  /**
   * One line per entry: type, the relevant part of the mode, path, and link target or content. Of the mode only "executable by its owner" counts, as
   * in git: the rest depends on the umask at the checkout, so two machines would have different hashes.
   */
  add(entry: HashedEntry): void {
    const executable = entry.type === 'file' && (entry.mode & 0o100) !== 0;
    this.#hash.update(`${JSON.stringify([entry.type, executable, entry.path, entry.sha256 ?? entry.target ?? ''])}\n`);
  }

  digest(): string {
    return `sha256:${this.#hash.digest('hex')}`;
  }
}
