// Lists and hashes a folder. Files that have not changed since the last push are not read again.

import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { KfError, messageOf } from '../errors.ts';
import type { LayerEntry } from '../oci/layer.ts';
import { emptySource, type SourceEntry, walkSource } from './files.ts';
import { ContentHash, type ListOptions, type SourceListing } from './listing.ts';
import { type HashedEntry, type IndexListing, StatIndexReader, StatIndexWriter } from './stat-index.ts';
import { defined } from '../defined.ts';

/** Bytes that are hashed before the event loop gets a turn: some 20 ms. */
const BYTES_PER_TURN = 32 * 1024 * 1024;
const BUFFER_BYTES = 256 * 1024;

/**
 * @param root its real path
 * @param path as it was given
 * @throws KfError `usage` (empty) or `upload`
 */
export async function listFolder(root: string, path: string, options: ListOptions): Promise<SourceListing> {
  const known = new StatIndexReader(options.cacheDir, root);
  const index = new StatIndexWriter(options.cacheDir, root);
  const totals = { entries: 0, files: 0, bytes: 0, bytesRead: 0 };
  const read = new FileHasher(root, options.signal);
  const hash = new ContentHash();
  try {
    for await (const entry of walkSource(root, { ...options, own: [options.cacheDir, ...(options.own ?? [])] })) {
      const hashed = entry.type === 'file' ? await withHash(entry, known, read) : entry;
      hash.add(hashed);
      index.add(hashed, BigInt(Date.now()) * 1_000_000n);
      totals.entries++;
      totals.files += entry.type === 'file' ? 1 : 0;
      totals.bytes += entry.size;
      totals.bytesRead = read.bytes;
      options.progress?.(totals.entries, totals.bytes);
    }
    if (totals.entries === 0) throw emptySource(path);
  } catch (error) {
    index.discard();
    throw fromSystem(error, options.cacheDir);
  } finally {
    known.close();
  }
  const listing = index.finish();
  return {
    root,
    contentHash: hash.digest(),
    ...totals,
    layerEntries: () => layerEntries(root, listing),
    close: () => listing.close(),
  };
}

/** The walk reports its own failures; the remaining one is an index that cannot be written. */
function fromSystem(error: unknown, cacheDir: string): unknown {
  if (!(error instanceof Error) || typeof (error as NodeJS.ErrnoException).syscall !== 'string') return error;
  return new KfError('upload', `The list of files cannot be kept in '${cacheDir}': ${error.message}.`, { cause: error });
}

async function withHash(entry: SourceEntry, known: StatIndexReader, read: FileHasher): Promise<HashedEntry> {
  return { ...entry, sha256: known.sha256(entry) ?? (await read.hash(entry)) };
}

class FileHasher {
  /** Read so far. */
  bytes = 0;
  readonly #root: string;
  readonly #signal: AbortSignal | undefined;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #untilTurn = BYTES_PER_TURN;

  constructor(root: string, signal: AbortSignal | undefined) {
    this.#root = root;
    this.#signal = signal;
  }

  async hash(entry: SourceEntry): Promise<string> {
    const fd = openFile(this.#root, entry.path);
    try {
      const hash = createHash('sha256');
      let size = 0;
      for (let read = -1; read !== 0; size += read) {
        read = readSync(fd, this.#buffer);
        hash.update(this.#buffer.subarray(0, read));
        await this.#count(read);
      }
      const after = fstatSync(fd, { bigint: true });
      if (size !== entry.size || after.mtimeNs !== entry.mtimeNs || after.size !== BigInt(size)) throw changed(entry.path);
      return hash.digest('hex');
    } finally {
      closeSync(fd);
    }
  }

  async #count(bytes: number): Promise<void> {
    this.bytes += bytes;
    this.#untilTurn -= bytes;
    if (this.#untilTurn > 0) return;
    this.#untilTurn = BYTES_PER_TURN;
    await nextTurn();
    this.#signal?.throwIfAborted();
  }
}

function openFile(root: string, path: string): number {
  try {
    return openSync(join(root, path), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ELOOP') throw changed(path, error);
    throw new KfError('upload', `The file '${path}' cannot be read: ${messageOf(error)}.`, { details: { file: path }, cause: error });
  }
}

function changed(path: string, cause?: unknown): KfError {
  return new KfError('upload', `The file '${path}' changed while it was read.`, {
    hints: ['Run the command again when nothing writes to the folder any more.'],
    details: { file: path },
    ...defined({ cause }),
  });
}

function* layerEntries(root: string, listing: IndexListing): Generator<LayerEntry, void, undefined> {
  for (const entry of listing.entries()) {
    const base = { name: entry.path, mode: entry.mode };
    if (entry.type === 'directory') yield { ...base, type: 'directory' };
    else if (entry.type === 'symlink') yield { ...base, type: 'symlink', mode: 0o777, target: entry.target ?? '' };
    else yield { ...base, type: 'file', source: join(root, entry.path), expect: { size: entry.size, sha256: entry.sha256 ?? '' } };
  }
}
