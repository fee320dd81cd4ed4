// Unpacks the layer of a source image in the build. The archive is not trusted: nothing is written outside of the target folder or through a link,
// and only files, folders and links are created.

import { closeSync, fchmodSync, openSync, rmSync, writeSync } from 'node:fs';
import { chmod, link, lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { defined } from '../defined.ts';
import { KfError, messageOf } from '../errors.ts';
import { MEDIA_TYPES } from '../oci/descriptor.ts';

export interface ExtractOptions {
  /** Media type of the layer; decides the decompression. */
  mediaType: string;
  /** Real path of an existing folder. */
  target: string;
  signal?: AbortSignal;
}

export interface ExtractResult {
  files: number;
  bytes: number;
}

/** Throws KfError `upload` for content that a normal archive does not have; files that were written before stay. */
export async function extractLayer(layer: Readable, options: ExtractOptions): Promise<ExtractResult> {
  const extraction = new Extraction(options.target);
  const reader = extract();
  const abort = defined({ signal: options.signal });
  const decompressed = decompressor(options.mediaType);
  const feeding = decompressed ? pipeline(layer, decompressed, reader, abort) : pipeline(layer, reader, abort);
  // When the layer is cut, the reader fails first, with a less useful error than the layer's own.
  const failure = feeding.then(
    () => undefined,
    (error: unknown) => error,
  );
  try {
    for await (const entry of reader) await extraction.add(entry.header, entry as EntryBody);
  } catch (error) {
    throw error instanceof KfError ? error : damaged((await failure) ?? error);
  }
  const error = await failure;
  if (error !== undefined) throw damaged(error);
  await extraction.finish();
  return extraction.result;
}

/** Decompresses a layer of this media type; undefined when it is not compressed. @throws KfError `upload` for other types */
export function decompressor(mediaType: string): NodeJS.ReadWriteStream | undefined {
  if (mediaType === MEDIA_TYPES.layer) return undefined;
  if (mediaType === MEDIA_TYPES.layerZstd) return createZstdDecompress();
  if (mediaType === MEDIA_TYPES.layerGzip || mediaType === 'application/vnd.docker.image.rootfs.diff.tar.gzip') return createGunzip();
  throw new KfError('upload', `The image has a layer of type '${mediaType}', which kf does not read.`);
}

function damaged(error: unknown): unknown {
  if (error instanceof KfError || (error instanceof Error && error.name === 'AbortError')) return error;
  return new KfError('upload', `The source image cannot be unpacked: ${messageOf(error)}.`, { cause: error });
}

/** An entry's content, as tar-stream gives it. */
interface EntryBody extends AsyncIterable<Buffer> {
  resume(): unknown;
}

class Extraction {
  readonly result: ExtractResult = { files: 0, bytes: 0 };
  readonly #target: string;
  /** Folders that are known to be real folders, not links. */
  readonly #folders = new Map<string, number | undefined>([['', undefined]]);
  readonly #links: string[] = [];

  constructor(target: string) {
    this.#target = target;
  }

  async add(header: Header, body: EntryBody): Promise<void> {
    const path = safePath(header.name);
    if (path !== '') await this.#addAt(path, header, body);
    body.resume();
  }

  /** Folder modes are set last (a read-only folder could not be filled), and links are checked when everything exists that they may lead through. */
  async finish(): Promise<void> {
    for (const path of this.#links) {
      if (await this.#leaves(path)) {
        await rm(join(this.#target, path));
        throw refused(path, 'it is a link that leads outside');
      }
    }
    for (const [path, mode] of [...this.#folders].reverse()) {
      // The user of the build must be able to write, whatever the mode on the developer's machine was.
      if (mode !== undefined) await chmod(join(this.#target, path), mode | 0o700);
    }
  }

  async #addAt(path: string, header: Header, body: EntryBody): Promise<void> {
    await this.#makeFolder(posix.dirname(path) === '.' ? '' : posix.dirname(path));
    // Null if the header has none, whatever the type says.
    const linkname = (header.linkname as string | null) ?? '';
    switch (header.type) {
      case 'directory':
        await this.#makeFolder(path);
        this.#folders.set(path, header.mode & 0o777);
        return;
      case 'file':
      case 'contiguous-file':
        return this.#writeFile(path, header.mode & 0o777, body);
      case 'symlink':
        return this.#makeLink(path, linkname);
      case 'link':
        return this.#makeHardLink(path, safePath(linkname));
      default:
        throw refused(path, `it is of the kind '${header.type}'`);
    }
  }

  async #makeFolder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    await this.#makeFolder(posix.dirname(path) === '.' ? '' : posix.dirname(path));
    const full = join(this.#target, path);
    await mkdir(full).catch(async (error: NodeJS.ErrnoException) => {
      // lstat: a link to a folder is a link.
      if (error.code !== 'EEXIST' || !(await lstat(full)).isDirectory()) throw refused(path, 'something else lies where a folder belongs');
    });
    this.#folders.set(path, undefined);
  }

  // Synchronous: the program does nothing else, and it often writes tens of thousands of small files.
  async #writeFile(path: string, mode: number, body: EntryBody): Promise<void> {
    const fd = this.#create(path);
    try {
      for await (const chunk of body) {
        for (let at = 0; at < chunk.length;) at += writeSync(fd, chunk, at);
        this.result.bytes += chunk.length;
      }
      fchmodSync(fd, mode | 0o400);
    } finally {
      closeSync(fd);
    }
    this.result.files++;
  }

  /** `wx` opens with O_EXCL, which never follows a link. A later entry of the same name replaces an earlier one, as in tar. */
  #create(path: string): number {
    const full = join(this.#target, path);
    try {
      return openSync(full, 'wx', 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    this.#clear(path);
    return openSync(full, 'wx', 0o600);
  }

  async #makeLink(path: string, target: string): Promise<void> {
    const resolved = posix.normalize(posix.join(posix.dirname(path), target));
    if (target === '' || target.includes('\0') || posix.isAbsolute(target) || resolved === '..' || resolved.startsWith('../')) {
      throw refused(path, 'it is a link that leads outside');
    }
    this.#clear(path);
    await symlink(target, join(this.#target, path));
    this.#links.push(path);
  }

  async #makeHardLink(path: string, target: string): Promise<void> {
    await this.#makeFolder(posix.dirname(target) === '.' ? '' : posix.dirname(target));
    const stats = await lstat(join(this.#target, target)).catch(() => undefined);
    if (!stats?.isFile()) throw refused(path, 'it is a link to a file that does not exist');
    this.#clear(path);
    await link(join(this.#target, target), join(this.#target, path));
  }

  /** Removes an existing entry before a new one is written. A folder is never replaced. */
  #clear(path: string): void {
    if (this.#folders.has(path)) throw refused(path, 'a folder lies there');
    rmSync(join(this.#target, path), { force: true });
  }

  /** Follows a link step by step, as the kernel would, and returns whether it leaves the target folder. */
  async #leaves(start: string): Promise<boolean> {
    const pending = start.split('/');
    const at: string[] = [];
    for (let links = 0; pending.length > 0;) {
      const name = pending.shift() ?? '';
      if (name === '' || name === '.') continue;
      if (name === '..') {
        if (at.pop() === undefined) return true;
        continue;
      }
      at.push(name);
      const next = await readlink(join(this.#target, ...at)).catch(() => undefined);
      if (next === undefined) continue;
      // The kernel's own limit (ELOOP): such a link leads nowhere.
      if (++links > 40) return false;
      if (posix.isAbsolute(next)) return true;
      at.pop();
      pending.unshift(...next.split('/'));
    }
    return false;
  }
}

/** Without the slashes at its end. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/**
 * A relative path without `.` and `..`; `''` is the root itself. Images of Korifi's API name files from the root; as in tar, that is the target
 * folder.
 */
function safePath(name: string): string {
  const path = withoutSlashes(name.replace(/^(?:\.?\/)+/, ''));
  if (path === '' || path === '.') return '';
  const isSafe = !name.includes('\0') && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSafe) throw refused(name, 'its path leads outside');
  return path;
}

function refused(path: string, why: string): KfError {
  return new KfError('upload', `The source image holds '${path}', which is not unpacked: ${why}.`, { details: { file: path } });
}
