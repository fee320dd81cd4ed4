// Gives yauzl the bytes of a zip archive in a file. The archive may follow something else: an executable jar begins with a shell script.

import { close, closeSync, fstatSync, openSync, read, readSync } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { fromRandomAccessReaderPromise, RandomAccessReader, type ZipFile } from 'yauzl';

/** The last record of an archive (APPNOTE.TXT 4.3.16): its length without the comment, and where its fields are. */
const end = { signature: 0x06054b50, bytes: 22, directorySize: 12, directoryOffset: 16, commentLength: 20 };
const longestComment = 0xffff;
/** Precedes the last record if the archive is one of Zip64 (4.3.15). */
const locator = { signature: 0x07064b50, bytes: 20 };

const chunkBytes = 64 * 1024;
const readAsync = promisify(read);

/** @throws Error of the system, or of yauzl if the file is no archive */
export async function openZipFile(path: string): Promise<ZipFile> {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const start = startOfArchive(fd, size);
    return await fromRandomAccessReaderPromise(new FileReader(fd, start), size - start, { autoClose: false });
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * The offsets in an archive count from its own first byte, unless the program that added the script has corrected them. The directory lies right
 * before the last record, so the difference to where it should be is the length of the script. Archives of Zip64 have more records there, and
 * are read from the first byte of the file.
 */
function startOfArchive(fd: number, size: number): number {
  const tail = Buffer.alloc(Math.min(size, locator.bytes + end.bytes + longestComment));
  const offset = size - tail.length;
  readSync(fd, tail, 0, tail.length, offset);
  for (let at = tail.length - end.bytes; at >= 0; at -= 1) {
    const isEnd = tail.readUInt32LE(at) === end.signature && at + end.bytes + tail.readUInt16LE(at + end.commentLength) === tail.length;
    if (!isEnd) continue;
    if (at >= locator.bytes && tail.readUInt32LE(at - locator.bytes) === locator.signature) return 0;
    const directory = tail.readUInt32LE(at + end.directoryOffset) + tail.readUInt32LE(at + end.directorySize);
    return Math.max(0, offset + at - directory);
  }
  return 0;
}

/** Closed by yauzl. */
class FileReader extends RandomAccessReader {
  readonly #fd: number;
  readonly #start: number;

  constructor(fd: number, start: number) {
    super();
    this.#fd = fd;
    this.#start = start;
  }

  override _readStreamForRange(from: number, to: number): Readable {
    return Readable.from(this.#chunks(from, to), { objectMode: false });
  }

  // A ReadStream of Node would close the file when it is destroyed.
  async *#chunks(from: number, to: number): AsyncGenerator<Buffer, void, undefined> {
    for (let at = from; at < to;) {
      const chunk = Buffer.allocUnsafe(Math.min(to - at, chunkBytes));
      const { bytesRead } = await readAsync(this.#fd, chunk, 0, chunk.length, this.#start + at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  }

  override read(buffer: Buffer, offset: number, length: number, position: number, callback: (error: Error | null) => void): void {
    read(this.#fd, buffer, offset, length, this.#start + position, callback);
  }

  override close(callback: (error: Error | null) => void): void {
    close(this.#fd, callback);
  }
}
