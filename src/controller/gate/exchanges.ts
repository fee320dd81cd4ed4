// How many exchanges with a body are under way at the registry, over all spaces and both ports: each takes memory there for as long as its client lets it
// last, and whoever does not read, or does not send on, would take the registry from all spaces.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RegistryPath } from './path.ts';
import { inodeOf, readUnread } from './unread.ts';

export interface ExchangeLimits {
  /** Exchanges under way, of all spaces together. */
  open: number;
  /** How long a client may neither read nor send. */
  patienceMs: number;
}

/**
 * Distribution 3.1 holds for an answer with a blob 4 MiB to read ahead, and up to 208 KiB in its socket; for a manifest of 512 KiB (`mostManifestBytes`) up
 * to 5 MB once parsed. 128 of them, measured with nobody reading, take 570 MiB of blobs or 680 MiB of manifests, with the program's own 45 MiB: the
 * registry's 1 GiB carries them (src/templates/setup/registry.ts).
 * The gate keeps 128 KiB of each, and the kernel up to 4 MiB for its connection when a client reads fast and then stops: 512 MiB for 128 of them.
 *
 * 60 s: the kernel takes more for a client when a third of these 4 MiB is read, so one that reads 25 kB/s never stalls.
 */
export const defaultExchangeLimits: ExchangeLimits = { open: 128, patienceMs: 60_000 };

/** So much of its answers a connection may leave unread without being counted. */
const mostUncounted = 64 * 1024;
/** How often the kernel is asked while answers are on their way. */
const lookEveryMs = 100;

/** True when the registry holds memory for it that its client decides on; the rest has no body, or one that goes straight to disk. */
export function takesMemory(method: string, { endpoint }: RegistryPath): boolean {
  return endpoint === 'manifest' || endpoint === 'tags' || (endpoint === 'blob' && method === 'GET');
}

/** One request and its answer. */
export interface Exchange {
  /** The client has read or sent something. */
  moved(): void;
  /** Ends what is done for it at the registry. */
  readonly signal: AbortSignal;
}

interface Held extends Exchange {
  space: string;
  request: IncomingMessage;
  response: ServerResponse;
  start: (exchange: Exchange) => void;
  control: AbortController;
  timer?: NodeJS.Timeout;
  /** Once all of the answer is with the kernel: what the client has not read of it. */
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
 * When there are too many, the space with most of them gives one up for a space that has at least two fewer: the one whose client has gone longest without
 * reading. So a space keeps its share, however many others ask and however slowly they read. Who has as many as any other space waits for a turn.
 */
export class Exchanges {
  readonly #limits: ExchangeLimits;
  /** Of each space the one that has gone longest without a movement comes first. */
  readonly #open: BySpace = new Map();
  /** Oldest first. */
  readonly #waiting: BySpace = new Map();
  readonly #ofSocket = new WeakMap<Socket, Set<Held>>();
  /** How many bytes had been written to a connection when all was read. */
  readonly #read = new WeakMap<Socket, number>();
  /** Those whose answer is with the kernel. */
  readonly #sent = new Set<Held>();
  #isLooking = false;
  #count = 0;

  constructor(limits: Partial<ExchangeLimits> = {}) {
    this.#limits = { ...defaultExchangeLimits, ...limits };
  }

  /** Calls `start` as soon as there is room, which is at once in general, and never when the client goes away before. */
  begin(space: string, request: IncomingMessage, response: ServerResponse, start: (exchange: Exchange) => void): void {
    const control = new AbortController();
    const moved = (): void => this.#moved(held);
    const held: Held = { space, request, response, start, control, signal: control.signal, moved };
    this.#watch(held);
    add(this.#waiting, held);
    this.#share();
  }

  #start(held: Held): void {
    // What its connection has not read counts with the new one.
    for (const before of this.#ofSocket.get(held.request.socket) ?? []) if (this.#sent.has(before)) this.#forget(before);
    this.#count += 1;
    add(this.#open, held);
    held.timer = setTimeout(() => this.#look(held), this.#limits.patienceMs).unref();
    held.start(held);
  }

  /** Ends with its answer, or with its connection: an answer that waits behind another one hears nothing of that. */
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
    // Clients of registries do not end their side before the answer; closing in turn would leave the kernel with what is not read.
    socket.prependOnceListener('end', () => all.forEach((one) => this.#cut(one)));
  }

  /** An answer of some size counts until its client has read it: the kernel may have up to 4 MiB of it. */
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
      // What is sent meanwhile is for the next look.
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

  /** Nothing has moved for a while, which is the client's doing or the registry's. */
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

  /** A reset, because the kernel would keep what it has of an answer for as long as the client likes. */
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

  /** Begins what can begin now. The turn is with the space that has fewest under way. */
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
