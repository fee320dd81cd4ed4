// Limits the exchanges with a body at the registry, over all spaces and both ports. Each exchange takes memory there for as long as its client
// lets it last. Without the limit, clients that do not read, or stop sending, would make the registry unusable for all spaces.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RegistryPath } from './path.ts';
import { inodeOf, readUnread } from './unread.ts';

export interface ExchangeLimits {
  /** Open exchanges of all spaces together. */
  open: number;
  /** How long a client may neither read nor send. */
  patienceMs: number;
}

/**
 * For an answer with a blob, Distribution 3.1 holds 4 MiB to read ahead, and up to 208 KiB in its socket; for a manifest of 512 KiB
 * (`mostManifestBytes`), up to 5 MB once parsed. With 128 of them and clients that do not read, the registry was measured at 570 MiB for blobs and
 * 680 MiB for manifests, including the program's own 45 MiB. That fits into its 1 GiB (src/templates/setup/registry.ts).
 *
 * For each exchange the gate keeps 128 KiB, and the kernel up to 4 MiB for its connection when a client reads fast and then stops: 512 MiB for 128
 * of them.
 *
 * 60 s: the kernel accepts more data for a client when a third of these 4 MiB is read, so a client that reads 25 kB/s never stalls.
 */
export const defaultExchangeLimits: ExchangeLimits = { open: 128, patienceMs: 60_000 };

/** A connection may leave this much of its answers unread without being counted. */
const mostUncounted = 64 * 1024;
/** How often the kernel is asked while answers are on their way. */
const lookEveryMs = 100;

/**
 * True when the registry holds memory for the exchange for as long as its client decides. Other exchanges have no body, or one that goes straight
 * to disk.
 */
export function takesMemory(method: string, { endpoint }: RegistryPath): boolean {
  return endpoint === 'manifest' || endpoint === 'tags' || (endpoint === 'blob' && method === 'GET');
}

/** One request and its answer. */
export interface Exchange {
  /** Call it when the client has read or sent something. */
  moved(): void;
  /** Aborts the request to the registry. */
  readonly signal: AbortSignal;
}

interface Held extends Exchange {
  space: string;
  request: IncomingMessage;
  response: ServerResponse;
  start: (exchange: Exchange) => void;
  control: AbortController;
  timer?: NodeJS.Timeout;
  /** Set once the whole answer is in the kernel: the bytes that the client has not read yet. */
  unread?: number;
}

type BySpace = Map<string, Set<Held>>;

function add(sets: BySpace, held: Held): void {
  const set = sets.get(held.space) ?? new Set<Held>();
  sets.set(held.space, set.add(held));
}

function take(sets: BySpace, held: Held): boolean {
  const set = sets.get(held.space);
  if (set?.delete(held) !== true) return false;
  if (set.size === 0) sets.delete(held.space);
  return true;
}

/**
 * Keeps a limit on open exchanges and shares it between spaces. When all are in use and a space asks that has at least two fewer than the space
 * with the most, that space loses one: the one whose client has been inactive for longest. So a space keeps its share, however many others ask and
 * however slowly they read. A space that has as many as any other one waits for its turn.
 */
export class Exchanges {
  readonly #limits: ExchangeLimits;
  /** The exchanges of each space; the one that has been inactive for longest comes first. */
  readonly #open: BySpace = new Map();
  /** Oldest first. */
  readonly #waiting: BySpace = new Map();
  readonly #ofSocket = new WeakMap<Socket, Set<Held>>();
  /** Number of bytes that had been written to a connection when its client had read all of them. */
  readonly #read = new WeakMap<Socket, number>();
  /** Exchanges whose answer is in the kernel. */
  readonly #sent = new Set<Held>();
  #isLooking = false;
  #count = 0;

  constructor(limits: Partial<ExchangeLimits> = {}) {
    this.#limits = { ...defaultExchangeLimits, ...limits };
  }

  /** Calls `start` as soon as the limit allows it, usually at once; never if the client disconnects before. */
  begin(space: string, request: IncomingMessage, response: ServerResponse, start: (exchange: Exchange) => void): void {
    const control = new AbortController();
    const moved = (): void => this.#moved(held);
    const held: Held = { space, request, response, start, control, signal: control.signal, moved };
    this.#watch(held);
    add(this.#waiting, held);
    this.#share();
  }

  #start(held: Held): void {
    // Unread bytes of earlier answers on this connection count with the new exchange.
    for (const before of this.#ofSocket.get(held.request.socket) ?? []) if (this.#sent.has(before)) this.#forget(before);
    this.#count += 1;
    add(this.#open, held);
    held.timer = setTimeout(() => this.#look(held), this.#limits.patienceMs).unref();
    held.start(held);
  }

  /**
   * Ends the exchange with its answer or with its connection. A response that waits behind another one on the connection gets no event when the
   * connection closes.
   */
  #watch(held: Held): void {
    const { socket } = held.request;
    held.response.once('close', () => this.#answered(held));
    const known = this.#ofSocket.get(socket);
    if (known !== undefined) {
      known.add(held);
      return;
    }
    const all = new Set([held]);
    this.#ofSocket.set(socket, all);
    socket.once('close', () => all.forEach((one) => this.#end(one)));
    // Registry clients do not close their side before the answer. A normal close in return would leave the unread bytes in the kernel.
    socket.prependOnceListener('end', () => all.forEach((one) => this.#cut(one)));
  }

  /** An answer of some size counts until its client has read it, because the kernel may hold up to 4 MiB of it. */
  #answered(held: Held): void {
    const { request, response } = held;
    const unknown = request.socket.bytesWritten - (this.#read.get(request.socket) ?? 0);
    if (
      !response.writableFinished ||
      request.socket.destroyed ||
      unknown <= mostUncounted ||
      this.#open.get(held.space)?.has(held) !== true
    ) {
      this.#end(held);
      return;
    }
    held.unread = unknown;
    this.#sent.add(held);
    this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#isLooking || this.#sent.size === 0) return;
    this.#isLooking = true;
    const look = async (): Promise<void> => {
      // Answers that are sent in the meantime wait for the next look.
      const all = [...this.#sent].map((held) => ({ held, inode: inodeOf(held.request.socket), written: held.request.socket.bytesWritten }));
      const unread = await readUnread();
      for (const { held, inode = '', written } of all) this.#heard(held, unread.get(inode) ?? 0, written);
      this.#isLooking = false;
      this.#lookSoon();
    };
    setTimeout(() => void look(), lookEveryMs).unref();
  }

  #heard(held: Held, unread: number, written: number): void {
    if (!this.#sent.has(held)) return;
    if (unread === 0) {
      this.#read.set(held.request.socket, written);
      this.#end(held);
    } else if (unread !== held.unread) {
      held.unread = unread;
      this.#moved(held);
    }
  }

  #moved(held: Held): void {
    const set = this.#open.get(held.space);
    if (set?.delete(held) !== true) return;
    set.add(held);
    held.timer?.refresh();
  }

  /** Nothing has moved for a while. Ends the exchange if the client is the cause; otherwise the registry is slow, and the exchange goes on. */
  #look(held: Held): void {
    const { request, response } = held;
    if (response.writableNeedDrain || response.writableEnded || !request.complete) this.#cut(held);
    else held.timer?.refresh();
  }

  #cut(held: Held): void {
    this.#drop(held);
    this.#share();
  }

  #end(held: Held): void {
    this.#forget(held);
    this.#share();
  }

  /** Resets the connection: otherwise the kernel would keep the rest of the answer for as long as the client likes. */
  #drop(held: Held): void {
    held.request.socket.resetAndDestroy();
    this.#forget(held);
  }

  #forget(held: Held): void {
    this.#ofSocket.get(held.request.socket)?.delete(held);
    this.#sent.delete(held);
    if (take(this.#waiting, held) || !take(this.#open, held)) return;
    this.#count -= 1;
    clearTimeout(held.timer);
    if (!held.response.writableFinished) held.control.abort();
  }

  /** Starts the exchanges that the limit allows now. The next turn belongs to the space with the fewest open ones. */
  #share(): void {
    for (;;) {
      let next: Held | undefined;
      let fewest = Infinity;
      for (const [space, [first]] of this.#waiting) {
        const count = this.#open.get(space)?.size ?? 0;
        if (count < fewest) [next, fewest] = [first, count];
      }
      if (next === undefined) return;
      if (this.#count >= this.#limits.open) {
        const most = this.#most();
        const [stalled] = most;
        if (stalled === undefined || most.size <= fewest + 1) return;
        this.#drop(stalled);
      }
      take(this.#waiting, next);
      this.#start(next);
    }
  }

  #most(): Set<Held> {
    let most = new Set<Held>();
    for (const set of this.#open.values()) if (set.size > most.size) most = set;
    return most;
  }
}
