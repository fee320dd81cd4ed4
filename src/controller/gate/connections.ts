// Limits the connections of the gate. A connection costs memory even before it has a credential: one pod that opens thousands and sends endless
// headers would make the gate unusable for all spaces.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** Connections from one address that have not sent a credential yet. */
  strangersPerAddress: number;
  /** The same from all addresses. Beyond it, the address with the most such connections loses its oldest one. */
  strangers: number;
  /** Connections that have sent credentials of one space. */
  perSpace: number;
  /**
   * Unanswered requests of one connection. Registry clients wait for each answer; without this limit one connection could have thousands of
   * requests open.
   */
  unanswered: number;
}

export const defaultConnectionLimits: ConnectionLimits = { strangersPerAddress: 64, strangers: 512, perSpace: 128, unanswered: 8 };

/** Adds a socket to one of several sets, or removes it; empty sets are deleted. */
function change(sets: Map<string, Set<Socket>>, name: string, socket: Socket, isIn: boolean): Set<Socket> {
  const set = sets.get(name) ?? new Set<Socket>();
  if (isIn) sets.set(name, set.add(socket));
  else if (set.delete(socket) && set.size === 0) sets.delete(name);
  return set;
}

/**
 * The connections of one port. A connection is a stranger until its first request with a valid credential, which honest clients send at once. When
 * there are too many strangers, the address with the most loses its oldest connection.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  /** Oldest first, by address. */
  readonly #strangers = new Map<string, Set<Socket>>();
  readonly #bySpace = new Map<string, Set<Socket>>();
  readonly #spacesOf = new WeakMap<Socket, Set<string>>();
  readonly #unanswered = new WeakMap<Socket, number>();
  #strangerCount = 0;

  constructor(limits: Partial<ConnectionLimits> = {}) {
    this.#limits = { ...defaultConnectionLimits, ...limits };
  }

  /** Adds a new connection; closes it at once if its address has too many. */
  open(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const own = change(this.#strangers, address, socket, true);
    this.#strangerCount += 1;
    socket.once('close', () => this.#close(socket, address));
    if (own.size > this.#limits.strangersPerAddress) socket.destroy();
    else if (this.#strangerCount > this.#limits.strangers) this.#busiest()?.destroy();
  }

  /**
   * Counts a request on the connection.
   * @returns false when too many earlier requests have no answer yet: the connection is closed, and the request must not be handled
   */
  ask(socket: Socket, response: ServerResponse): boolean {
    if (socket.destroyed) return false;
    const count = (this.#unanswered.get(socket) ?? 0) + 1;
    if (count > this.#limits.unanswered) {
      socket.destroy();
      return false;
    }
    this.#unanswered.set(socket, count);
    response.once('close', () => this.#unanswered.set(socket, (this.#unanswered.get(socket) ?? 1) - 1));
    return true;
  }

  /**
   * Notes that a request on the connection had a credential of the space, or of the keeper (undefined).
   * @returns false when the space already has its maximum of connections, without this one
   */
  know(socket: Socket, space: string | undefined): boolean {
    this.#forgetStranger(socket, socket.remoteAddress ?? '');
    if (space === undefined) return true;
    const spaces = this.#spacesOf.get(socket) ?? new Set<string>();
    if (spaces.has(space)) return true;
    if ((this.#bySpace.get(space)?.size ?? 0) >= this.#limits.perSpace) return false;
    this.#spacesOf.set(socket, spaces.add(space));
    change(this.#bySpace, space, socket, true);
    return true;
  }

  #close(socket: Socket, address: string): void {
    this.#forgetStranger(socket, address);
    for (const space of this.#spacesOf.get(socket) ?? []) change(this.#bySpace, space, socket, false);
  }

  #forgetStranger(socket: Socket, address: string): void {
    if (this.#strangers.get(address)?.has(socket) !== true) return;
    change(this.#strangers, address, socket, false);
    this.#strangerCount -= 1;
  }

  /** The oldest stranger of the address with the most strangers. */
  #busiest(): Socket | undefined {
    let most: Set<Socket> | undefined;
    for (const set of this.#strangers.values()) if (set.size > (most?.size ?? 0)) most = set;
    return most?.values().next().value;
  }
}
