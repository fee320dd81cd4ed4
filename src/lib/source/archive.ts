// Lists a zip, jar or war as the folder that it would be unpacked to: the same entries in the same order, so that both have the same content hash
// and the same image. Nothing is unpacked to disk: an entry is read once for its hash, and once more if it is packed.

import { createHash } from 'node:crypto';
import type { LayerEntry } from '../oci/layer.ts';
import { smallFileBytes } from '../small-file.ts';
import { KfError } from '../errors.ts';
import { defined } from '../defined.ts';
import { type IgnoreRules, parseIgnoreRules } from './cfignore.ts';
import { assertLinkStays, comparePaths, emptySource } from './files.ts';
import { ContentHash, type ListOptions, type SourceListing } from './listing.ts';
import { Zip, type ZipEntry } from './zip.ts';

/** Modes of entries whose archive has none: those that cf gives to all entries of an archive. */
const defaultModes = { file: 0o744, directory: 0o755, symlink: 0o777 };
/** An archive of some KB can claim petabytes. These are larger than every app: a space can have 4 GiB of images. */
const mostEntries = 1_000_000;
const mostBytes = 16 * 1024 ** 3;
/** PATH_MAX of Linux. */
const longestTarget = 4096;

interface ArchiveEntry {
  path: string;
  type: 'file' | 'directory' | 'symlink';
  mode: number;
  size: number;
  /** Missing for folders that the archive only implies. */
  zipped?: ZipEntry;
  sha256?: string;
  target?: string;
}

/** @throws KfError `usage` for what is no archive, is damaged or empty, or has entries that no folder can have; `upload` for links that lead out */
export async function listArchive(path: string, options: ListOptions): Promise<SourceListing> {
  const zip = await Zip.open(path);
  try {
    const entries = await entriesOf(zip, path, options);
    const totals = { entries: 0, files: 0, bytes: 0 };
    const hash = new ContentHash();
    for (const entry of entries) {
      if (entry.type === 'file') entry.sha256 = await hashOf(zip, entry, options.signal);
      if (entry.type === 'symlink') entry.target = await targetOf(zip, entry);
      hash.add(entry);
      totals.entries++;
      totals.files += entry.type === 'file' ? 1 : 0;
      totals.bytes += entry.size;
      options.progress?.(totals.entries, totals.bytes);
    }
    return {
      root: path,
      contentHash: hash.digest(),
      ...totals,
      bytesRead: totals.bytes,
      layerEntries: () => layerEntries(zip, entries),
      close: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

/** Reads only the directory of the archive. @throws KfError as {@link listArchive} */
export async function assertArchive(path: string, signal?: AbortSignal): Promise<void> {
  const zip = await Zip.open(path);
  try {
    await entriesOf(zip, path, defined({ signal }));
  } finally {
    zip.close();
  }
}

/** What a push takes of it, in the order of a folder. */
async function entriesOf(zip: Zip, path: string, options: Pick<ListOptions, 'warn' | 'signal'>): Promise<ArchiveEntry[]> {
  const tree = new Tree(zip, path);
  for await (const entry of zip.entries()) {
    options.signal?.throwIfAborted();
    tree.add(entry, options.warn);
  }
  const rules = await ignoreRules(zip, tree);
  const entries = tree.entries().filter((entry) => !rules.ignores(entry.path));
  if (entries.length === 0) throw emptySource(path);
  return entries.sort((a, b) => comparePaths(a.path, b.path));
}

class Tree {
  readonly #zip: Zip;
  readonly #path: string;
  readonly #byPath = new Map<string, ArchiveEntry>();
  #bytes = 0;

  constructor(zip: Zip, path: string) {
    this.#zip = zip;
    this.#path = path;
    if (zip.count > mostEntries) throw this.#tooLarge(`${zip.count} entries, and ${mostEntries} are the most that kf reads`);
  }

  entries(): ArchiveEntry[] {
    return [...this.#byPath.values()];
  }

  get(path: string): ArchiveEntry | undefined {
    return this.#byPath.get(path);
  }

  add(zipped: ZipEntry, warn?: (message: string) => void): void {
    const { path, type } = zipped;
    if (type === 'special') return warn?.(`'${path}' is a device, a named pipe or a socket and is left out.`);
    const there = this.#byPath.get(path);
    // A folder may be named after the files in it, and more than once.
    if (there !== undefined && (type !== 'directory' || there.type !== 'directory')) throw this.#zip.refused(path, 'is there twice');
    this.#makeParents(path);
    const size = type === 'file' ? zipped.size : 0;
    this.#byPath.set(path, {
      path,
      type,
      mode: type === 'symlink' ? defaultModes.symlink : (zipped.mode ?? defaultModes[type]),
      size,
      zipped,
    });
    this.#bytes += size;
    if (this.#bytes > mostBytes) throw this.#tooLarge(`more than ${mostBytes / 1024 ** 3}G when it is unpacked`);
    if (this.#byPath.size > mostEntries) throw this.#tooLarge(`more than ${mostEntries} entries`);
  }

  #makeParents(path: string): void {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const parent = path.slice(0, at);
      const there = this.#byPath.get(parent);
      if (there !== undefined && there.type !== 'directory') throw this.#zip.refused(path, `lies below '${parent}', which is no folder`);
      if (there !== undefined) return;
      this.#byPath.set(parent, { path: parent, type: 'directory', mode: defaultModes.directory, size: 0 });
    }
  }

  #tooLarge(what: string): KfError {
    return new KfError('usage', `The archive '${this.#path}' has ${what}.`, { details: { file: this.#path } });
  }
}

/** As in cf, `.cfignore` in the archive holds for the archive. */
async function ignoreRules(zip: Zip, tree: Tree): Promise<IgnoreRules> {
  const zipped = tree.get('.cfignore')?.zipped;
  if (zipped?.type !== 'file') return parseIgnoreRules();
  if (zipped.size > smallFileBytes) throw zip.refused('.cfignore', 'is larger than 1 MB, the most that it can have');
  return parseIgnoreRules(await textOf(zip, zipped));
}

async function textOf(zip: Zip, zipped: ZipEntry): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of zip.read(zipped)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function targetOf(zip: Zip, { path, zipped }: ArchiveEntry): Promise<string> {
  if (zipped === undefined || zipped.size > longestTarget) throw zip.refused(path, 'is a link with a target longer than any path');
  const target = await textOf(zip, zipped);
  if (target === '' || target.includes('\0')) throw zip.refused(path, 'is a link without a valid target');
  assertLinkStays(path, target);
  return target;
}

async function hashOf(zip: Zip, { zipped }: ArchiveEntry, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  if (zipped !== undefined) {
    for await (const chunk of zip.read(zipped)) {
      signal?.throwIfAborted();
      hash.update(chunk);
    }
  }
  return hash.digest('hex');
}

function* layerEntries(zip: Zip, entries: readonly ArchiveEntry[]): Generator<LayerEntry, void, undefined> {
  for (const { path: name, type, mode, size, zipped, sha256 = '', target = '' } of entries) {
    if (type === 'directory') yield { type, name, mode };
    else if (type === 'symlink') yield { type, name, mode, target };
    else if (zipped !== undefined) yield { type, name, mode, source: { size, read: () => zip.read(zipped) }, expect: { size, sha256 } };
  }
}
