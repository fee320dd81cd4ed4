// Stores the hash of every file of a folder between two pushes, so that an unchanged tree is recognized by its stats alone. It has one line of
// JSON per entry in the order of the walk; the old and the new index are read and written in parallel, so 100,000 files need no extra memory.

import { createHash, randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { comparePaths, type SourceEntry } from './files.ts';

/** An entry with the hex SHA-256 of its content (files only). */
export interface HashedEntry extends SourceEntry {
  sha256?: string;
}

const FORMAT = 'kf-stat-index-1';
const BUFFER_BYTES = 64 * 1024;
/**
 * A file that changed this shortly before it was hashed may change again within the same timestamp of a coarse file system, so the next run does
 * not trust its hash (git calls such entries racy). FAT has two seconds, the coarsest in use.
 */
const RACY_NS = 2_000_000_000n;

/** Path of the index of a root. */
function indexPath(cacheDir: string, root: string): string {
  const key = createHash('sha256').update(root).digest('hex').slice(0, 24);
  return join(cacheDir, `index-${key}.jsonl`);
}

/** Looks up entries in the index of the last run, in the order of the walk. */
export class StatIndexReader {
  #lines: Iterator<string> | undefined;
  #current: IndexLine | undefined;
  readonly #fd: number | undefined;

  constructor(cacheDir: string, root: string) {
    this.#fd = openIfThere(indexPath(cacheDir, root));
    if (this.#fd === undefined) return;
    const lines = linesOf(this.#fd)[Symbol.iterator]();
    if (lines.next().value === headerLine(root)) this.#lines = lines;
    this.#advance();
  }

  /** The hash of a file whose stats have not changed; otherwise undefined. */
  sha256(entry: SourceEntry): string | undefined {
    while (this.#current && comparePaths(this.#current.path, entry.path) < 0) this.#advance();
    const known = this.#current;
    if (!known || known.path !== entry.path || !known.trusted || known.type !== 'file') return undefined;
    const same =
      known.size === entry.size &&
      known.mode === entry.mode &&
      known.mtimeNs === entry.mtimeNs &&
      known.ctimeNs === entry.ctimeNs &&
      known.ino === entry.ino;
    return same ? known.sha256 : undefined;
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }

  #advance(): void {
    const next = this.#lines?.next();
    this.#current = next === undefined || next.done === true ? undefined : parseLine(next.value);
    // An unreadable line ends the index: the files after it are hashed again.
    if (!this.#current) this.#lines = undefined;
  }
}

/** Writes the index of this run next to the old one and replaces it when complete. */
export class StatIndexWriter {
  readonly #path: string;
  readonly #temporary: string;
  #fd: number;
  #pending: string;

  constructor(cacheDir: string, root: string) {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    this.#path = indexPath(cacheDir, root);
    this.#temporary = `${this.#path}.${randomUUID()}.tmp`;
    this.#fd = openSync(this.#temporary, 'wx+', 0o600);
    this.#pending = `${headerLine(root)}\n`;
  }

  /** `nowNs`: the wall clock at the time of the entry's stat. */
  add(entry: HashedEntry, nowNs: bigint): void {
    const changed = entry.mtimeNs > entry.ctimeNs ? entry.mtimeNs : entry.ctimeNs;
    this.#pending += `${formatLine(entry, changed < nowNs - RACY_NS)}\n`;
    if (this.#pending.length > BUFFER_BYTES) this.#flush();
  }

  /** Publishes the index. The returned listing stays readable when another run replaces the file. */
  finish(): IndexListing {
    this.#flush();
    renameSync(this.#temporary, this.#path);
    return new IndexListing(this.#fd);
  }

  /** Discards the new index; the old one stays. */
  discard(): void {
    closeSync(this.#fd);
    unlinkSync(this.#temporary);
  }

  #flush(): void {
    const bytes = Buffer.from(this.#pending);
    this.#pending = '';
    for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at);
  }
}

/** The entries of a finished index; can be read repeatedly. */
export class IndexListing {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  *entries(): Generator<HashedEntry, void, undefined> {
    const lines = linesOf(this.#fd);
    lines.next();
    for (const line of lines) {
      const entry = parseLine(line);
      if (entry) yield entry;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

interface IndexLine extends HashedEntry {
  trusted: boolean;
}

function headerLine(root: string): string {
  return JSON.stringify([FORMAT, root]);
}

const TYPES = { f: 'file', d: 'directory', l: 'symlink' } as const;
const LETTERS = { file: 'f', directory: 'd', symlink: 'l' } as const;

function formatLine(entry: HashedEntry, trusted: boolean): string {
  const { path, mode, size, mtimeNs, ctimeNs, ino } = entry;
  const stats = [mode, size, String(mtimeNs), String(ctimeNs), String(ino)];
  return JSON.stringify([path, LETTERS[entry.type], ...stats, trusted ? 1 : 0, entry.sha256 ?? entry.target ?? '']);
}

function parseLine(line: string): IndexLine | undefined {
  try {
    const fields = JSON.parse(line) as [string, keyof typeof TYPES, number, number, string, string, string, number, string];
    const [path, letter, mode, size, mtime, ctime, ino, trusted, last] = fields;
    const type = TYPES[letter];
    const entry = { path, type, mode, size, mtimeNs: BigInt(mtime), ctimeNs: BigInt(ctime), ino: BigInt(ino), trusted: trusted === 1 };
    if (type === 'file') return { ...entry, sha256: last };
    return type === 'symlink' ? { ...entry, target: last } : entry;
  } catch {
    return undefined;
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    return undefined;
  }
}

/** Lines of a file from its beginning, whatever the position of the descriptor. */
function* linesOf(fd: number): Generator<string, void, undefined> {
  const decoder = new StringDecoder('utf8');
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let rest = '';
  for (let position = 0; ;) {
    const read = readSync(fd, buffer, 0, buffer.length, position);
    if (read === 0) return;
    position += read;
    const lines = (rest + decoder.write(buffer.subarray(0, read))).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
