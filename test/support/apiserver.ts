// A scripted API server on loopback: the test sets the answers, and the server records the requests. It supports TLS, broken connections and
// restarts.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import type { CertificateAuthority } from './certificates.ts';

/** One request, and methods to answer it. */
export class Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
  /** Subject of the client certificate. */
  readonly clientName: string | undefined;
  readonly #request: IncomingMessage;
  readonly response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse, bytes: Buffer) {
    const url = new URL(request.url ?? '/', 'http://server');
    this.method = request.method ?? '';
    this.path = url.pathname;
    this.query = url.searchParams;
    this.headers = request.headers;
    this.bytes = bytes;
    this.body = bytes.toString('utf8');
    this.#request = request;
    this.response = response;
    const peer = (request.socket as Partial<TLSSocket>).getPeerCertificate?.();
    this.clientName = peer?.subject?.CN as string | undefined;
  }

  json(body: unknown, status = 200, headers: Record<string, string> = {}): void {
    this.response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    this.response.end(JSON.stringify(body));
  }

  /** A Status object. */
  fail(code: number, reason: string, message: string, details: object = {}, headers: Record<string, string> = {}): void {
    this.json({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code }, code, headers);
  }

  text(body: string, status = 200): void {
    this.response.writeHead(status, { 'Content-Type': 'text/plain' });
    this.response.end(body);
  }

  /** A part of an unfinished answer; resolves when it was sent. */
  write(chunk: string | Buffer): Promise<void> {
    if (!this.response.headersSent) {
      this.response.writeHead(200, { 'Content-Type': 'application/json' });
      this.response.flushHeaders();
    }
    return new Promise((resolve) => this.response.write(chunk, () => resolve()));
  }

  end(): void {
    if (!this.response.headersSent) this.response.writeHead(200);
    this.response.end();
  }

  /** Events of a watch, one per line. */
  async events(...events: object[]): Promise<void> {
    for (const event of events) await this.write(`${JSON.stringify(event)}\n`);
  }

  /** Breaks the connection, as a failing server or a proxy does. */
  drop(): void {
    this.#request.socket.destroy();
  }

  /** Resolves when the client has disconnected or the answer has ended. */
  get closed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.response.closed) resolve();
      else this.response.once('close', () => resolve());
    });
  }
}

export type Handler = (call: Call) => void | Promise<void>;

export interface ServerOptions {
  /** Uses TLS with a certificate of this authority, which may also sign client certificates. */
  authority?: CertificateAuthority;
  /** Names and addresses in its certificate. */
  names?: string[];
  port?: number;
}

interface Route {
  pattern: RegExp;
  handlers: Handler[];
  used: number;
}

/** The fields about cluster and user that a test sets in the kubeconfig. */
export interface KubeconfigParts {
  cluster?: object;
  user?: object;
  namespace?: string;
}

export class ScriptedApiServer {
  readonly calls: Call[] = [];
  /** Errors of handlers, for assertions; a handler that throws answers 500. */
  readonly failures: unknown[] = [];
  /** Called for each request; one that it does not let be answered gets no answer. */
  around: (call: Call, answer: () => Promise<void>) => Promise<void> = (_call, answer) => answer();
  /** How far its clock is ahead of the client's. */
  aheadMs = 0;
  readonly #routes: Route[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #options: ServerOptions;
  readonly #folders: string[] = [];
  #server: Server | undefined;
  #takeUpgrade: ((request: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
  port = 0;

  private constructor(options: ServerOptions) {
    this.#options = options;
  }

  static async start(options: ServerOptions = {}): Promise<ScriptedApiServer> {
    const server = new ScriptedApiServer(options);
    server.port = options.port ?? 0;
    await server.listen();
    return server;
  }

  get url(): string {
    return `${this.#options.authority === undefined ? 'http' : 'https'}://127.0.0.1:${String(this.port)}`;
  }

  /** Handles requests for an upgrade; without a handler their connections are broken. */
  onUpgrade(take: (request: IncomingMessage, socket: Duplex, head: Buffer) => void): this {
    this.#takeUpgrade = take;
    return this;
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => undefined);
    if (this.#takeUpgrade === undefined) socket.destroy();
    else this.#takeUpgrade(request, socket, head);
  }

  /** Starts (again, after {@link halt}) on the same port. */
  async listen(): Promise<void> {
    const { authority, names } = this.#options;
    const listener = (request: IncomingMessage, response: ServerResponse): void => void this.#answer(request, response);
    const server =
      authority === undefined
        ? createPlainServer(listener)
        : createTlsServer({ ...authority.server(names), ca: authority.cert, requestCert: true, rejectUnauthorized: false }, listener);
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => this.#upgrade(request, socket, head));
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, '127.0.0.1', resolve);
    });
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Stops listening and breaks every connection, as in a restart. */
  async halt(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.dropConnections();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async stop(): Promise<void> {
    await this.halt();
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
  }

  /**
   * Sets the answer to `METHOD path` (a regular expression for the whole text, without the query). Several handlers are used one after the other,
   * the last one for all later requests. Later rules override earlier ones.
   */
  on(pattern: string, ...handlers: Handler[]): this {
    this.#routes.unshift({ pattern: new RegExp(`^${pattern}$`), handlers, used: 0 });
    return this;
  }

  /** The recorded calls whose `METHOD path` matches. */
  callsOf(pattern: string): Call[] {
    const matcher = new RegExp(`^${pattern}$`);
    return this.calls.filter(({ method, path }) => matcher.test(`${method} ${path}`));
  }

  /** A kubeconfig file with one context "test" in a folder of its own; removed by {@link stop}. */
  kubeconfig({ cluster = {}, user = {}, namespace }: KubeconfigParts = {}): string {
    const folder = mkdtempSync(join(tmpdir(), 'kf-apiserver-'));
    this.#folders.push(folder);
    const ca = this.#options.authority?.cert;
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'tester', ...(namespace === undefined ? {} : { namespace }) } }],
      clusters: [
        {
          name: 'test',
          cluster: {
            server: this.url,
            ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
            ...cluster,
          },
        },
      ],
      users: [{ name: 'tester', user }],
    };
    const path = join(folder, 'config');
    writeFileSync(path, JSON.stringify(config));
    return path;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    } catch {
      return; // the client disconnected while it sent
    }
    const call = new Call(request, response, Buffer.concat(chunks));
    this.calls.push(call);
    await this.around(call, () => this.#handle(call, response));
  }

  async #handle(call: Call, response: ServerResponse): Promise<void> {
    response.setHeader('Date', new Date(Date.now() + this.aheadMs).toUTCString());
    const route = this.#routes.find(({ pattern }) => pattern.test(`${call.method} ${call.path}`));
    const handler = route?.handlers[Math.min(route.used++, route.handlers.length - 1)];
    try {
      if (handler === undefined) call.fail(404, 'NotFound', 'the server could not find the requested resource');
      else await handler(call);
    } catch (error) {
      this.failures.push(error);
      if (!response.headersSent) call.fail(500, 'InternalError', String(error));
    }
  }
}
