// A TCP line to the API server that can be cut as a network is cut: what was sent waits on the way, and arrives when the line is whole again.

import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

interface Pair {
  client: Socket;
  server: Socket;
  waiting: Buffer[];
}

/** Passes bytes on to one address, or holds those of the client. */
export class HeldLine {
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isHeld = false;
  #port = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** A line to `url`'s host and port; TLS passes through it. */
  static async to(url: string): Promise<HeldLine> {
    const { hostname, port } = new URL(url);
    const line = new HeldLine(createServer());
    line.#server.on('connection', (client) => line.#open(client, connect(Number(port), hostname)));
    await new Promise<void>((resolve) => line.#server.listen(0, '127.0.0.1', resolve));
    return line;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on nothing that the client sends arrives. What it is sent still arrives, so that it goes on working. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Everything that waits arrives, also what a connection sent before it was given up. */
  release(): void {
    this.#isHeld = false;
    for (const { server, waiting } of this.#pairs) for (const bytes of waiting.splice(0)) server.write(bytes);
  }

  /** As if the server had gone: connections break, and nothing listens. */
  cut(): Promise<void> {
    this.#port = (this.#server.address() as AddressInfo).port;
    return this.close();
  }

  /** The server listens again, at the same address. */
  restore(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
  }

  close(): Promise<void> {
    for (const { client, server } of this.#pairs) for (const socket of [client, server]) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #open(client: Socket, server: Socket): void {
    const pair: Pair = { client, server, waiting: [] };
    this.#pairs.add(pair);
    client.on('data', (bytes: Buffer) => {
      if (this.#isHeld) pair.waiting.push(bytes);
      else server.write(bytes);
    });
    server.on('data', (bytes: Buffer) => client.writable && client.write(bytes));
    // The network does not forget what a program sent before it closed its connection, so only the far end closes the pair.
    client.on('error', () => undefined);
    client.on('end', () => this.#isHeld || server.end());
    server.on('error', () => undefined);
    server.on('close', () => {
      this.#pairs.delete(pair);
      client.destroy();
    });
  }
}
