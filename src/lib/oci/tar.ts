// Writes tar archives whose bytes are equal for equal input. Files are read directly into blocks of 256 KiB, which makes 100,000 small files
// cheap: one buffer per block instead of several stream chunks per file.

import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { KfError, messageOf } from '../errors.ts';
import { defined } from '../defined.ts';

interface EntryBase {
  /** Path inside the archive with `/`, without a leading or trailing slash. */
  name: string;
  /** Permission bits; default 0o755 for directories, 0o644 for files, 0o777 for links. */
  mode?: number;
  uid?: number;
  gid?: number;
}

/** Content that is read when its turn comes. */
export interface StreamedContent {
  size: number;
  read: () => AsyncIterable<Buffer>;
}

export interface FileEntry extends EntryBase {
  type: 'file';
  /** A path on disk, or the content itself. */
  source: string | Buffer | StreamedContent;
  /** The state of the file when it was listed; another size or hash (hex SHA-256) at packing time is an error. */
  expect?: { size: number; sha256: string };
}

export interface DirectoryEntry extends EntryBase {
  type: 'directory';
}

export interface SymlinkEntry extends EntryBase {
  type: 'symlink';
  target: string;
}

export type LayerEntry = FileEntry | DirectoryEntry | SymlinkEntry;

const BLOCK_BYTES = 256 * 1024;
const RECORD_BYTES = 512;
/** The largest number in the eleven octal digits of a ustar size, and in the seven of a uid. */
const MAX_OCTAL_SIZE = 0o77777777777;
const MAX_OCTAL_ID = 0o7777777;

/**
 * Reuses the memory of blocks that the consumer returns. Otherwise unused blocks accumulate until garbage collection: half the memory of a whole
 * push.
 */
export class BlockPool {
  readonly #free: ArrayBufferLike[] = [];

  /** An empty block, new or returned. */
  take(): Buffer {
    const memory = this.#free.pop();
    return memory ? Buffer.from(memory) : Buffer.from(new ArrayBuffer(BLOCK_BYTES));
  }

  /** Returns a block (or a part of it with the same start) that is no longer needed. */
  give(block: Buffer): void {
    this.#free.push(block.buffer);
  }
}

/** The archive as blocks. Entries keep their order; sort them before. Times are 0, owner names empty. */
export async function* tarBlocks(
  entries: AsyncIterable<LayerEntry> | Iterable<LayerEntry>,
  pool = new BlockPool(),
): AsyncGenerator<Buffer, void, undefined> {
  const block = new BlockBuffer(pool);
  for await (const entry of entries) {
    if (entry.type !== 'file') yield* block.put(headerOf(entry, 0));
    else if (typeof entry.source === 'object' && 'read' in entry.source) yield* writeStream(block, entry, entry.source);
    else yield* writeFile(block, entry, entry.source);
  }
  yield* block.put(Buffer.alloc(2 * RECORD_BYTES));
  if (block.length > 0) yield block.take();
}

/** Collects bytes and returns them in blocks. A returned block is not written again until it comes back through the pool. */
class BlockBuffer {
  readonly #pool: BlockPool;
  #buffer: Buffer;
  length = 0;

  constructor(pool: BlockPool) {
    this.#pool = pool;
    this.#buffer = pool.take();
  }

  /** The free rest of the block; never empty. */
  get free(): Buffer {
    return this.#buffer.subarray(this.length);
  }

  take(): Buffer {
    const full = this.#buffer.subarray(0, this.length);
    this.#buffer = this.#pool.take();
    this.length = 0;
    return full;
  }

  /** Marks bytes of `free` as filled. */
  *fill(bytes: number): Generator<Buffer, void, undefined> {
    this.length += bytes;
    if (this.length === BLOCK_BYTES) yield this.take();
  }

  *put(bytes: Buffer): Generator<Buffer, void, undefined> {
    for (let at = 0; at < bytes.length;) {
      const copied = bytes.copy(this.free, 0, at);
      at += copied;
      yield* this.fill(copied);
    }
  }

  *pad(size: number): Generator<Buffer, void, undefined> {
    const rest = size % RECORD_BYTES;
    if (rest !== 0) yield* this.put(Buffer.alloc(RECORD_BYTES - rest));
  }
}

async function* writeStream(
  block: BlockBuffer,
  entry: FileEntry,
  { size, read }: StreamedContent,
): AsyncGenerator<Buffer, void, undefined> {
  yield* block.put(headerOf(entry, size));
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of read()) {
    bytes += chunk.length;
    if (bytes > size) throw changed(entry.name);
    hash.update(chunk);
    yield* block.put(chunk);
  }
  if (bytes !== size || (entry.expect && hash.digest('hex') !== entry.expect.sha256)) throw changed(entry.name);
  yield* block.pad(size);
}

function* writeFile(block: BlockBuffer, entry: FileEntry, source: string | Buffer): Generator<Buffer, void, undefined> {
  if (typeof source !== 'string') {
    yield* block.put(headerOf(entry, source.length));
    yield* block.put(source);
    yield* block.pad(source.length);
    return;
  }
  const fd = openSource(entry, source);
  try {
    yield* copyFile(block, entry, fd);
  } finally {
    closeSync(fd);
  }
}

// Reads are synchronous. For a small file that is several times cheaper than three calls in the thread pool, and between two blocks the consumer
// (a compressor in the pool) lets the event loop continue.
function* copyFile(block: BlockBuffer, entry: FileEntry, fd: number): Generator<Buffer, void, undefined> {
  const before = fstatSync(fd, { bigint: true });
  const size = Number(before.size);
  if (!before.isFile() || (entry.expect && entry.expect.size !== size)) throw changed(entry.name);
  yield* block.put(headerOf(entry, size));
  const hash = entry.expect && createHash('sha256');
  for (let left = size; left > 0;) {
    const free = block.free.subarray(0, Math.min(left, block.free.length));
    const read = readSync(fd, free);
    if (read === 0) throw changed(entry.name);
    hash?.update(free.subarray(0, read));
    left -= read;
    yield* block.fill(read);
  }
  if (hash) {
    if (hash.digest('hex') !== entry.expect?.sha256) throw changed(entry.name);
  } else {
    const after = fstatSync(fd, { bigint: true });
    if (after.size !== before.size || after.mtimeNs !== before.mtimeNs) throw changed(entry.name);
  }
  yield* block.pad(size);
}

/** A listed file that became a link or a pipe since then is not followed and not waited for. Windows has neither flag. */
function openSource(entry: FileEntry, path: string): number {
  const follow = entry.expect ? (constants.O_NOFOLLOW ?? 0) : 0;
  try {
    return openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | follow);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ELOOP' || code === 'ENOTDIR') throw changed(entry.name, error);
    throw new KfError('upload', `The file '${entry.name}' cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

function changed(name: string, cause?: unknown): KfError {
  return new KfError('upload', `The file '${name}' changed while it was packed.`, {
    hints: ['Run the command again when nothing writes to the folder any more.'],
    details: { file: name },
    ...defined({ cause }),
  });
}

const TYPE_FLAGS = { file: '0', symlink: '2', directory: '5' } as const;
const DEFAULT_MODES = { file: 0o644, symlink: 0o777, directory: 0o755 } as const;

/** A ustar header (POSIX.1-1988), preceded by a pax record (POSIX.1-2001) for values that do not fit into ustar. */
function headerOf(entry: LayerEntry, size: number): Buffer {
  const name = entry.type === 'directory' ? `${entry.name}/` : entry.name;
  const target = entry.type === 'symlink' ? entry.target : '';
  const records = [
    fits(name) ? '' : paxRecord('path', name),
    fits(target) ? '' : paxRecord('linkpath', target),
    size > MAX_OCTAL_SIZE ? paxRecord('size', String(size)) : '',
    (entry.uid ?? 0) > MAX_OCTAL_ID ? paxRecord('uid', String(entry.uid)) : '',
    (entry.gid ?? 0) > MAX_OCTAL_ID ? paxRecord('gid', String(entry.gid)) : '',
  ].join('');
  const mode = (entry.mode ?? DEFAULT_MODES[entry.type]) & 0o7777;
  const ids = { uid: entry.uid ?? 0, gid: entry.gid ?? 0 };
  const header = ustar({ name, target, size, mode, flag: TYPE_FLAGS[entry.type], ...ids });
  if (records === '') return header;
  const body = Buffer.from(records);
  const paxHeader = ustar({ name: 'PaxHeader', target: '', size: body.length, mode: 0o644, flag: 'x', uid: 0, gid: 0 });
  return Buffer.concat([paxHeader, body, Buffer.alloc((RECORD_BYTES - (body.length % RECORD_BYTES)) % RECORD_BYTES), header]);
}

/** Whether a path fits into the 100-byte field. Longer and non-ASCII paths go into a pax record, whose encoding is clear. */
function fits(path: string): boolean {
  return path.length <= 100 && !/[^\x20-\x7e]/.test(path);
}

/** `LENGTH KEY=VALUE\n`, where LENGTH includes its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

interface UstarFields {
  name: string;
  target: string;
  size: number;
  mode: number;
  flag: string;
  uid: number;
  gid: number;
}

function ustar(fields: UstarFields): Buffer {
  const header = Buffer.alloc(RECORD_BYTES);
  header.write(fields.name, 0, 100, 'latin1');
  octal(header, 100, 8, fields.mode);
  octal(header, 108, 8, fields.uid > MAX_OCTAL_ID ? 0 : fields.uid);
  octal(header, 116, 8, fields.gid > MAX_OCTAL_ID ? 0 : fields.gid);
  octal(header, 124, 12, fields.size > MAX_OCTAL_SIZE ? 0 : fields.size);
  octal(header, 136, 12, 0);
  header.write('        ', 148, 'latin1');
  header.write(fields.flag, 156, 'latin1');
  header.write(fields.target, 157, 100, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

function octal(header: Buffer, at: number, width: number, value: number): void {
  header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
}
