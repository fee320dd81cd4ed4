// Several streams over one WebSocket: the first byte of a message is the number of its stream.
// Source: https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/apimachinery/pkg/util/remotecommand (v4 and v5.channel.k8s.io)

import { Readable, Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Identity } from './errors.ts';
import { unreachableError } from './errors.ts';

/** v5 can close a single channel, which programs need that read their input to the end. */
export const channelProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const;

const closeChannel = 255;
/** Messages of the server's own transports have at most 32 KiB; larger ones of ours would delay each other. */
const mostMessageBytes = 32 * 1024;
const defaultPingMs = 20_000;

export interface ChannelOptions {
  identity: Identity;
  signal?: AbortSignal | undefined;
  /** Interval between pings; a connection without a pong before the next ping counts as lost. */
  pingMs?: number;
}

/** The streams of one connection. All bytes are read in order, so an unread channel blocks all of them. */
export class Channels {
  readonly #socket: WebSocket;
  readonly #identity: Identity;
  readonly #readables = new Map<number, Readable>();
  readonly #full = new Set<number>();
  /** Resolves when the server has closed the connection normally. Rejects with a KubeError `unreachable` when it was cut. */
  readonly closed: Promise<void>;
  #lost: Error | undefined;
  #endedHere = false;

  constructor(socket: WebSocket, { identity, signal, pingMs = defaultPingMs }: ChannelOptions) {
    this.#socket = socket;
    this.#identity = identity;
    this.closed = new Promise((resolve, reject) => {
      socket.on('close', (code) => {
        const lost = this.#fault(code);
        for (const readable of this.#readables.values()) {
          if (lost === undefined) readable.push(null);
          else readable.destroy(lost);
        }
        if (lost === undefined) resolve();
        else reject(lost);
      });
    });
    // Readers of a stream get the error there.
    this.closed.catch(() => undefined);
    socket.on('error', (error) => (this.#lost ??= error));
    // Of the forms of RawData, ws gives this one by default.
    socket.on('message', (data) => this.#take(data as Buffer));
    this.#keepAlive(pingMs);
    this.#endWith(signal);
    socket.resume();
  }

  /** The subprotocol that the server chose. */
  get protocol(): string {
    return this.#socket.protocol;
  }

  /** The bytes of a channel. A channel that is not requested before the next turn of the event loop is read and dropped. */
  readable(channel: number): Readable {
    const readable = new Readable({
      read: () => {
        this.#full.delete(channel);
        if (this.#full.size === 0) this.#socket.resume();
      },
      destroy: (error, done) => {
        this.#full.delete(channel);
        if (this.#full.size === 0) this.#socket.resume();
        done(error);
      },
    });
    // Readers get the error by reading; all others get it from `closed`.
    readable.on('error', () => undefined);
    this.#readables.set(channel, readable);
    return readable;
  }

  /** Bytes for a channel. Its end closes the channel if the protocol allows that. */
  writable(channel: number): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => void this.send(channel, chunk).then(() => done(), done),
      final: (done) => {
        if (this.protocol !== 'v5.channel.k8s.io') done();
        else void this.#sendMessage(Buffer.from([closeChannel, channel])).then(() => done(), done);
      },
    });
  }

  /** Sends bytes on a channel; resolves when they were sent. */
  async send(channel: number, data: Buffer): Promise<void> {
    for (let at = 0; at < data.length; at += mostMessageBytes) {
      await this.#sendMessage(Buffer.concat([Buffer.from([channel]), data.subarray(at, at + mostMessageBytes)]));
    }
  }

  /** Closes the connection normally. */
  close(): void {
    this.#endedHere = true;
    // A paused socket would never read the close frame of the server.
    this.#full.clear();
    this.#socket.resume();
    this.#socket.close(1000);
  }

  #sendMessage(message: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(message, (error) =>
        error === undefined || error === null ? resolve() : reject(unreachableError(error, this.#identity)),
      );
    });
  }

  #take(message: Buffer): void {
    const [channel = 0] = message;
    const readable = this.#readables.get(channel);
    const data = message.subarray(1);
    if (channel === closeChannel) this.#readables.get(data[0] ?? closeChannel)?.push(null);
    else if (readable === undefined || readable.readableEnded || readable.destroyed) return;
    else if (data.length > 0 && !readable.push(data)) {
      this.#full.add(channel);
      this.#socket.pause();
    }
  }

  /** The error of the closed connection, if any. 1005: closed without a code, as the API server does. */
  #fault(code: number): Error | undefined {
    if (this.#lost === undefined && (this.#endedHere || code === 1000 || code === 1005)) return undefined;
    const cause = this.#lost ?? Object.assign(new Error(`the connection ended with code ${String(code)}`), { code: 'ECONNRESET' });
    return unreachableError(cause, this.#identity);
  }

  #keepAlive(pingMs: number): void {
    let isAnswered = true;
    this.#socket.on('pong', () => (isAnswered = true));
    const timer = setInterval(() => {
      // While nobody reads, pongs are not read either.
      if (this.#full.size > 0) {
        isAnswered = true;
        return;
      }
      if (!isAnswered) {
        this.#lost ??= Object.assign(new Error(`no answer to a ping within ${String(pingMs)} ms`), { code: 'ETIMEDOUT' });
        this.#socket.terminate();
        return;
      }
      isAnswered = false;
      this.#socket.ping();
    }, pingMs);
    this.#socket.on('close', () => clearInterval(timer));
  }

  #endWith(signal: AbortSignal | undefined): void {
    const onAbort = (): void => {
      this.#endedHere = true;
      this.#socket.terminate();
    };
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#socket.on('close', () => signal?.removeEventListener('abort', onAbort));
  }
}
