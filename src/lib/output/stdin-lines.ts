// Reads single lines of a stdin that is no terminal, and not a byte more: the rest may be the script of the shell that started kf (`bash -s`).

import { fstatSync, readSync } from 'node:fs';
import { Socket } from 'node:net';

export interface LineSource {
  /**
   * The next line without its end. Undefined if there is none, or if it is longer than any answer.
   * @throws the signal's reason
   */
  next(signal: AbortSignal): Promise<string | undefined>;
}

/** No password is longer. An endless line must not fill the memory. */
const longestLine = 64 * 1024;
const lineEnd = 0x0a;

/** stdin is one for the whole process, and so is its reader: a second one would compete for the same bytes. */
let stdin: LineSource | undefined;

/** Undefined if nothing can be read there: stdin is a terminal, a device such as /dev/null, or closed (Node then opens /dev/null). */
export function stdinLines(): LineSource | undefined {
  return (stdin ??= linesOf(0));
}

/** The lines of an open file, pipe or socket. */
function linesOf(fd: number): LineSource | undefined {
  const stats = fstatSync(fd);
  if (stats.isFile()) return new FileLines(fd);
  return stats.isFIFO() || stats.isSocket() ? new PipeLines(fd) : undefined;
}

/** Collects the bytes of one line. */
class Line {
  readonly #bytes: number[] = [];

  /** Whether the line is complete, or too long. */
  add(byte: number): boolean {
    if (byte !== lineEnd) this.#bytes.push(byte);
    return byte === lineEnd || this.#isTooLong;
  }

  get text(): string | undefined {
    return this.#isTooLong ? undefined : Buffer.from(this.#bytes).toString().replace(/\r$/, '');
  }

  /** The last line of an input may have no end. */
  get rest(): string | undefined {
    return this.#bytes.length === 0 ? undefined : this.text;
  }

  get #isTooLong(): boolean {
    return this.#bytes.length > longestLine;
  }
}

class FileLines implements LineSource {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  next(signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted();
    const line = new Line();
    const buffer = Buffer.alloc(1);
    while (readSync(this.#fd, buffer) === 1) if (line.add(buffer[0] ?? lineEnd)) return Promise.resolve(line.text);
    return Promise.resolve(line.rest);
  }
}

/**
 * The socket has a buffer of one byte, so the kernel is never asked for more. A read in Node's thread pool would do the same, but the process
 * could not end before the writer of the pipe does.
 */
class PipeLines implements LineSource {
  readonly #fd: number;
  #socket: Socket | undefined;
  #line = new Line();
  #settle: (line: string | undefined) => void = () => undefined;

  constructor(fd: number) {
    this.#fd = fd;
  }

  async next(signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    this.#line = new Line();
    this.#settle = resolve;
    const socket = (this.#socket ??= this.#open());
    if (socket.destroyed) resolve(undefined);
    socket.ref().resume();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', stop);
      // The process may end while the writer of the pipe goes on.
      socket.pause().unref();
    }
  }

  #open(): Socket {
    const take = (_count: number, buffer: Uint8Array): boolean => {
      const isDone = this.#line.add(buffer[0] ?? lineEnd);
      if (isDone) this.#settle(this.#line.text);
      return !isDone;
    };
    const socket = new Socket({ fd: this.#fd, readable: true, writable: false, onread: { buffer: Buffer.alloc(1), callback: take } });
    // Without a listener, an error ends the process; `close` follows it.
    return socket.on('error', () => undefined).on('close', () => this.#settle(this.#line.rest));
  }
}
