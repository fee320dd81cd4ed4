// Walks the folder of an app in a fixed order and yields the entries of a push.

import { type BigIntStats, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { noSuchPath } from '../cf/usage.ts';
import { KfError, messageOf } from '../errors.ts';
import { smallFileBytes } from '../small-file.ts';
import { type IgnoreRules, parseIgnoreRules } from './cfignore.ts';
import { isOnlyDockerfile, noDockerfiles } from '../dockerfile.ts';

/** One file, folder or link of the source. Times in nanoseconds since 1970. */
export interface SourceEntry {
  /** Relative to the root, with `/`. */
  path: string;
  type: 'file' | 'directory' | 'symlink';
  /** Permission bits. */
  mode: number;
  /** Bytes; 0 for folders and links. */
  size: number;
  mtimeNs: bigint;
  ctimeNs: bigint;
  ino: bigint;
  /** Of links, with `/`. */
  target?: string;
}

export interface WalkOptions {
  /** Receives sentences about entries that were left out, and why. */
  warn?: (message: string) => void;
  /** Files and folders that kf itself writes during a push: they are left out. */
  own?: readonly string[];
  signal?: AbortSignal;
}

/** Time before the event loop gets a turn, in which an interruption is noticed. */
const msPerTurn = 25;

/** The real path of a folder or an archive to push (it may be a link itself). Throws KfError `not-found` when it does not exist, in cf's words. */
export function resolveSource(path: string, namedBy: 'flag' | 'manifest' = 'flag'): { root: string; isFolder: boolean } {
  let root: string;
  try {
    root = realpathSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw unreadable(path, error);
    if (namedBy === 'flag') throw noSuchPath(path);
    throw new KfError('not-found', `File not found locally, make sure the file exists at given path ${path}`);
  }
  const stats = statSync(root);
  // To open a named pipe would wait for its writer.
  if (!stats.isDirectory() && !stats.isFile()) throw new KfError('usage', `The path '${path}' is neither a folder nor a file.`);
  return { root, isFolder: stats.isDirectory() };
}

/**
 * All entries that a push takes from `root` (a real path), parents before children, names of a folder sorted by their UTF-8 bytes. Links are not
 * followed. Throws KfError `upload` for links that leave the folder and for unreadable entries.
 */
export async function* walkSource(root: string, options: WalkOptions = {}): AsyncGenerator<SourceEntry, void, undefined> {
  const { warn = () => undefined, own = [] } = options;
  const walk: Walk = { root, rules: parseIgnoreRules(readIgnoreFile(root)), own: new Set(own.flatMap(realPathOf)), warn };
  let turn = performance.now();
  for (const entry of walkFolder(walk, '')) {
    if (performance.now() - turn > msPerTurn) {
      await nextTurn();
      turn = performance.now();
    }
    options.signal?.throwIfAborted();
    if (entry !== undefined) yield entry;
  }
}

export function emptySource(path: string): KfError {
  return new KfError('usage', `No app files found in '${path}'`);
}

/** Reads only the first entries. @throws KfError `usage` when a push of the folder would take nothing, or only a Dockerfile */
export async function assertFolder(root: string, path: string, options: WalkOptions = {}): Promise<void> {
  const names: string[] = [];
  for await (const entry of walkSource(root, options)) {
    names.push(entry.path);
    if (names.length > 2) return;
  }
  if (names.length === 0) throw emptySource(path);
  if (!isOnlyDockerfile(names)) return;
  throw new KfError('usage', `In '${path}' there is only a Dockerfile, which kf does not build: ${noDockerfiles.because}.`, {
    hints: [noDockerfiles.hint],
  });
}

/** The order of the paths of {@link walkSource}: `/` comes before every other character, the others are sorted by code points. */
export function comparePaths(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** UTF-16 sorts surrogates (code points from 0x10000) before 0xE000-0xFFFF; UTF-8 does not. */
function rank(unit: number): number {
  if (unit === 0x2f) return 0;
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** The real path, as those of a walk are; nothing for what does not exist, which no walk meets. */
function realPathOf(path: string): string[] {
  try {
    return [realpathSync(path)];
  } catch {
    return [];
  }
}

interface Walk {
  root: string;
  rules: IgnoreRules;
  /** Real paths. */
  own: ReadonlySet<string>;
  warn: (message: string) => void;
}

// Synchronous on purpose: one call in the thread pool per file costs more than the stat itself. An ignored entry yields undefined, so that the
// walk can also be interrupted in a tree in which everything is ignored.
function* walkFolder(walk: Walk, folder: string): Generator<SourceEntry | undefined, void, undefined> {
  for (const name of readFolder(walk.root, folder)) {
    const path = folder === '' ? name : `${folder}/${name}`;
    if (walk.own.has(join(walk.root, path))) continue;
    const ignored = walk.rules.ignores(path);
    if (ignored) yield undefined;
    if (ignored && walk.rules.prunes(path)) continue;
    const stats = statOf(walk.root, path);
    if (!ignored) {
      const entry = entryOf(walk, path, stats);
      if (entry) yield entry;
    }
    if (stats.isDirectory()) yield* walkFolder(walk, path);
  }
}

function entryOf(walk: Walk, path: string, stats: BigIntStats): SourceEntry | undefined {
  const { mtimeNs, ctimeNs, ino } = stats;
  const base = { path, mode: permissions(stats), size: 0, mtimeNs, ctimeNs, ino };
  if (stats.isFile()) return { ...base, type: 'file', size: Number(stats.size) };
  if (stats.isDirectory()) return { ...base, type: 'directory' };
  if (stats.isSymbolicLink()) return { ...base, type: 'symlink', target: linkTarget(walk.root, path) };
  walk.warn(`'${path}' is ${kindOf(stats)} and is left out.`);
  return undefined;
}

/** Windows has no useful permission bits; as in cf, the owner may read, write and execute everything. */
function permissions(stats: BigIntStats): number {
  return (Number(stats.mode) & 0o777) | (process.platform === 'win32' ? 0o700 : 0);
}

function kindOf(stats: BigIntStats): string {
  if (stats.isSocket()) return 'a socket';
  if (stats.isFIFO()) return 'a named pipe';
  return 'a device';
}

function linkTarget(root: string, path: string): string {
  const target = readlinkSync(join(root, path)).replaceAll(process.platform === 'win32' ? '\\' : '/', '/');
  assertLinkStays(path, target);
  return target;
}

/** @throws KfError `upload` for a link that cannot mean the same in the build, because only this source is sent there */
export function assertLinkStays(path: string, target: string): void {
  const resolved = posix.normalize(posix.join(posix.dirname(path), target));
  if (posix.isAbsolute(target) || /^[A-Za-z]:\//.test(target) || resolved === '..' || resolved.startsWith('../')) {
    throw new KfError('upload', `Symlink '${path}' points outside of the pushed folder, to '${target}'.`, {
      hints: [`Name it in .cfignore (/${path}) to leave it out, or replace it by a copy of what it points to.`],
      details: { file: path, target },
    });
  }
}

function readFolder(root: string, folder: string): string[] {
  try {
    return readdirSync(join(root, folder)).sort(comparePaths);
  } catch (error) {
    throw unreadable(folder === '' ? root : folder, error);
  }
}

function statOf(root: string, path: string): BigIntStats {
  try {
    return lstatSync(join(root, path), { bigint: true });
  } catch (error) {
    // Node replaces bytes that are not UTF-8 by U+FFFD, and no file has that name.
    if (path.includes('\ufffd'))
      throw new KfError('upload', `The name of '${path}' is not valid UTF-8.`, { details: { file: path }, cause: error });
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unreadable(path, error);
    throw new KfError('upload', `The file '${path}' changed while it was read: it is gone.`, { details: { file: path }, cause: error });
  }
}

function readIgnoreFile(root: string): string | undefined {
  const path = join(root, '.cfignore');
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw new KfError('usage', "'.cfignore' is no file.");
    if (stats.size > smallFileBytes) throw new KfError('usage', "The file '.cfignore' is larger than 1 MB, the most that it can have.");
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof KfError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unreadable('.cfignore', error);
  }
}

function unreadable(path: string, error: unknown): KfError {
  return new KfError('upload', `'${path}' cannot be read: ${messageOf(error)}.`, { details: { file: path }, cause: error });
}
