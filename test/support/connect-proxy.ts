// A CONNECT proxy on loopback, plain or with TLS, that can inspect the traffic with its own authority, cut bodies and break connections.

import { createServer, request as plainRequest } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer, request as tlsRequest } from 'node:https';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { CertificateAuthority } from './certificates.ts';

export interface ProxyOptions {
  /** The proxy itself uses TLS with a certificate of this authority. */
  authority?: CertificateAuthority;
  /** Intercepts the TLS of the tunnels with certificates of this authority. */
  inspectWith?: CertificateAuthority;
  /** While inspecting: bodies above this many bytes are refused with 413 and the connection is closed. */
  maxBodyBytes?: number;
  /** Tunnels are broken after that time, whatever their traffic. */
  maxTunnelMs?: number;
  /** `user:password` that CONNECT must contain. */
  credentials?: string;
  /** While inspecting: called with each request before it is forwarded; the request waits for the returned promise. `bytes`: size of its body. */
  before?: (method: string, path: string, bytes: number) => Promise<void>;
}

export class ConnectProxy {
  /** Targets of all opened tunnels. */
  readonly tunnels: string[] = [];
  readonly refused: string[] = [];
  readonly #options: ProxyOptions;
  readonly #server: Server;
  readonly #inspector: Server | undefined;
  readonly #sockets = new Set<Duplex>();
  /** The target of each inspected connection. */
  readonly #targets = new Map<Duplex, string>();
  port = 0;

  private constructor(options: ProxyOptions) {
    this.#options = options;
    this.#server = options.authority === undefined ? createServer() : createTlsServer(options.authority.server());
    this.#server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => this.#tunnel(request, socket, head));
    this.#server.on('connection', (socket: Socket) => this.#track(socket));
    if (options.inspectWith !== undefined) {
      this.#inspector = createServer((request, response) => this.#forward(request, response));
      this.#inspector.on('clientError', (_error, socket) => socket.destroy());
    }
  }

  static async start(options: ProxyOptions = {}): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(options);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    proxy.port = (proxy.#server.address() as AddressInfo).port;
    return proxy;
  }

  get url(): string {
    return `${this.#options.authority === undefined ? 'http' : 'https'}://127.0.0.1:${String(this.port)}`;
  }

  /** Breaks all connections, whatever their traffic; later ones are accepted. */
  breakTunnels(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #track(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #tunnel(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { credentials, maxTunnelMs } = this.#options;
    const sent = request.headers['proxy-authorization'];
    if (credentials !== undefined && sent !== `Basic ${Buffer.from(credentials).toString('base64')}`) {
      this.refused.push(request.url ?? '');
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="proxy"\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const target = request.url ?? '';
    this.tunnels.push(target);
    this.#track(socket);
    if (maxTunnelMs !== undefined) setTimeout(() => socket.destroy(), maxTunnelMs).unref();
    if (this.#inspector !== undefined) {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.length > 0) socket.unshift(head);
      const secured = new TLSSocket(socket, { isServer: true, ...this.#options.inspectWith?.server() });
      this.#targets.set(secured, target);
      this.#track(secured);
      this.#inspector.emit('connection', secured);
      return;
    }
    const [host = '', port = ''] = target.split(':');
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(socket);
      socket.pipe(upstream);
    });
    this.#track(upstream);
    upstream.once('close', () => socket.destroy());
    socket.once('close', () => upstream.destroy());
  }

  /**
   * While inspecting: forwards a request from the tunnel to its target. Like real proxies of this kind, it does not check the target's
   * certificate.
   */
  #forward(request: IncomingMessage, response: ServerResponse): void {
    const [host = '', port = ''] = (this.#targets.get(request.socket) ?? '').split(':');
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= (this.#options.maxBodyBytes ?? Infinity)) {
        chunks.push(chunk);
        return;
      }
      if (response.headersSent) return;
      response.writeHead(413, { 'Content-Type': 'text/html', Connection: 'close' });
      response.end('<h1>Request entity too large</h1>', () => request.socket.destroy());
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      if (response.headersSent) return;
      const held = this.#options.before?.(request.method ?? '', request.url ?? '', size) ?? Promise.resolve();
      void held.then(() => pass());
    });
    const pass = (): void => {
      const options = {
        host,
        port: Number(port),
        method: request.method,
        path: request.url,
        headers: request.headers,
        agent: false as const,
      };
      const upstream = (this.#options.inspectWith === undefined ? plainRequest : tlsRequest)(
        { ...options, rejectUnauthorized: false },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.on('error', () => response.destroy());
          answer.pipe(response);
        },
      );
      upstream.on('error', () => response.destroy());
      response.on('close', () => upstream.destroy());
      upstream.end(Buffer.concat(chunks));
    };
  }
}
