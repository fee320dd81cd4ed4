// Reads zip archives. Nothing in them is trusted: paths, links, sizes, checksums and numbers are checked before they are used.

import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Entry, ZipFile } from 'yauzl';
import { KfError, messageOf } from '../errors.ts';
import { openZipFile } from './zip-file.ts';

/** One entry. Its path is relative, with `/`, and has no `.` or `..`. */
export interface ZipEntry {
  path: string;
  type: 'file' | 'directory' | 'symlink' | 'special';
  /** Permission bits; undefined if the program that wrote the archive did not record them. */
  mode: number | undefined;
  /** Bytes of the content, which reading checks. */
  size: number;
  /** As it is in the archive. */
  raw: Entry;
}

/** Made by (APPNOTE.TXT 4.4.2.2): these record the mode of a file as Unix does. */
const unix = new Set([3, 19]);
/** S_IFMT and its values, in the upper half of the external attributes. */
const kinds = { mask: 0o170000, regular: 0o100000, directory: 0o040000, symlink: 0o120000 };

/** An open archive. Close it when done. */
export class Zip {
  readonly #path: string;
  readonly #file: ZipFile;

  private constructor(path: string, file: ZipFile) {
    this.#path = path;
    this.#file = file;
    // An error while an entry is read is reported to its reader too.
    file.on('error', () => undefined);
  }

  /** @throws KfError `usage` if the file is no zip archive */
  static async open(path: string): Promise<Zip> {
    try {
      return new Zip(path, await openZipFile(path));
    } catch (error) {
      throw unreadable(path, error);
    }
  }

  /** According to the end of the archive. */
  get count(): number {
    return this.#file.entryCount;
  }

  /** All entries in the order of the archive; can be called once. @throws KfError `usage` for a damaged archive or an unsafe path */
  async *entries(): AsyncGenerator<ZipEntry, void, undefined> {
    const each = this.#file.eachEntry();
    for (;;) {
      const next = await each.next().catch((error: unknown) => {
        throw unreadable(this.#path, error);
      });
      if (next.done === true) return;
      const path = this.#safePath(nameOf(next.value));
      if (path !== '') yield { path, ...attributesOf(next.value), size: next.value.uncompressedSize, raw: next.value };
    }
  }

  /** The content of a file or the target of a link. @throws KfError `usage` if the content is encrypted, damaged or packed in an unknown way */
  async *read({ path, raw }: ZipEntry): AsyncGenerator<Buffer, void, undefined> {
    if (raw.isEncrypted()) throw this.refused(path, 'is encrypted');
    if (!raw.canDecodeFileData())
      throw this.refused(path, `is compressed in a way that kf does not read (method ${raw.compressionMethod})`);
    let sum = 0;
    try {
      for await (const chunk of (await this.#file.openReadStreamPromise(raw)) as AsyncIterable<Buffer>) {
        sum = crc32(chunk, sum);
        yield chunk;
      }
    } catch (error) {
      throw this.refused(path, `is damaged: ${sentence(error)}`, error);
    }
    if (sum !== raw.crc32) throw this.refused(path, 'is damaged: its checksum (CRC-32) is wrong');
  }

  /** @param why a verb and what follows */
  refused(path: string, why: string, cause?: unknown): KfError {
    return new KfError('usage', `The entry '${path}' of '${this.#path}' ${why}.`, { details: { file: this.#path, entry: path }, cause });
  }

  close(): void {
    this.#file.close();
  }

  /** yauzl has refused absolute paths and `..` already. `''` is the root itself. */
  #safePath(name: string): string {
    const path = name.replace(/^(?:\.\/)+/, '').replace(/\/$/, '');
    if (path === '' || path === '.') return '';
    // U+FFFD: bytes that are not UTF-8.
    const isSafe = !/[\0\ufffd]/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
    if (!isSafe) throw this.refused(name, 'has a name that no file in a folder can have');
    return path;
  }
}

/** Info-ZIP Unicode Path (APPNOTE.TXT 4.6.9). */
const unicodePath = 0x7075;

/** A name without the mark for UTF-8 should be in code page 437, but zip programs of Unix write the bytes of the file system. */
function nameOf({ fileName, fileNameRaw, extraFields }: Entry): string {
  const isMarked = extraFields.some(({ id }) => id === unicodePath);
  return !isMarked && isUtf8(fileNameRaw) ? fileNameRaw.toString().replaceAll('\\', '/') : fileName;
}

function attributesOf(entry: Entry): { type: ZipEntry['type']; mode: number | undefined } {
  const unixMode = unix.has(entry.versionMadeBy >> 8) ? entry.externalFileAttributes >>> 16 : 0;
  const mode = unixMode === 0 ? undefined : unixMode & 0o777;
  const kind = unixMode & kinds.mask;
  if (entry.fileName.endsWith('/') || kind === kinds.directory) return { type: 'directory', mode };
  if (kind === kinds.symlink) return { type: 'symlink', mode };
  return { type: kind === 0 || kind === kinds.regular ? 'file' : 'special', mode };
}

function unreadable(path: string, error: unknown): KfError {
  const isSystem = error instanceof Error && 'syscall' in error;
  const message = isSystem ? `'${path}' cannot be read: ` : `The file '${path}' cannot be read as a zip, jar or war: `;
  const hints = isSystem ? [] : ['-p takes a folder, or a zip, jar or war file:', 'kf push APP -p PATH'];
  return new KfError(isSystem ? 'upload' : 'usage', `${message}${sentence(error)}.`, { hints, details: { file: path }, cause: error });
}

const sentence = (error: unknown): string => messageOf(error).replace(/\.$/, '');
