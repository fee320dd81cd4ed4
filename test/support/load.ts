// Users who send requests to an app through the gateway at a steady pace, whether answers come or not. None of them tries anything again.

import { Agent, request, type RequestOptions } from 'node:http';
import { connect, type ClientHttp2Session } from 'node:http2';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { plainPort, securePort } from './http.ts';

/** Each kind of request, and how many of 50 in a second are of it. POSTs last 2 s. */
const perSecond = { 'new connection': 20, 'keep-alive': 20, 'POST of 2 s': 5, 'HTTP/2': 5 } as const;
type Kind = keyof typeof perSecond | 'WebSocket';

export interface Loaded {
  /** Requests of each kind; of a WebSocket its messages. */
  asked: Record<Kind, number>;
  /** `1203 ms: POST of 2 s: 502 Bad Gateway (after 12 ms)`: when since the begin of all, and of the request. */
  failures: string[];
  /** The versions that answered, in the order in which they were seen first. */
  versions: string[];
}

/** All requests and messages. */
export const totalOf = ({ asked }: Pick<Loaded, 'asked'>): number => Object.values(asked).reduce((sum, some) => sum + some, 0);

const body = 'x'.repeat(1_000);
const patienceMs = 20_000;
/** A message on the WebSocket every so often. */
const messageMs = 100;
/** The app says that it is going away (RFC 6455, 7.4.1). */
const goingAway = 1001;

/** Of the gateway, on this machine. */
export interface GatewayPorts {
  plain: number;
  secure: number;
}

export class Load {
  readonly #host: string;
  readonly #ca: string;
  readonly #ports: GatewayPorts;
  readonly #agents = { gets: new Agent({ keepAlive: true, maxSockets: 4 }), posts: new Agent({ keepAlive: true }) };
  readonly #stop = new AbortController();
  readonly #open = new Set<Promise<void>>();
  readonly #began = performance.now();
  readonly #seen: Loaded = {
    asked: { 'new connection': 0, 'keep-alive': 0, 'POST of 2 s': 0, 'HTTP/2': 0, WebSocket: 0 },
    failures: [],
    versions: [],
  };
  /** Of each request that is no WebSocket, in the order in which they ended: the version that answered well, or undefined. */
  readonly outcomes: (string | undefined)[] = [];
  /** Failures of WebSockets, each of which stays with one instance. */
  socketFailures = 0;
  readonly #running: Promise<unknown>;
  #session: ClientHttp2Session | undefined;

  /**
   * @param ca `kf ca-certificate`, for HTTP/2
   * @param ports those of the ring's cluster by default
   */
  constructor(host: string, ca: string, ports: GatewayPorts = { plain: plainPort(), secure: securePort() }) {
    this.#host = host;
    this.#ca = ca;
    this.#ports = ports;
    const kinds = Object.entries(perSecond) as [Exclude<Kind, 'WebSocket'>, number][];
    this.#running = Promise.all([...kinds.map(([kind, rate]) => this.#pace(kind, 1000 / rate)), this.#keepSocket()]);
  }

  get versions(): readonly string[] {
    return this.#seen.versions;
  }

  get total(): number {
    return totalOf(this.#seen);
  }

  /** Sends nothing more, and waits for the answers that are missing. */
  async end(): Promise<Loaded> {
    this.#stop.abort();
    await this.#running;
    await Promise.all(this.#open);
    this.#session?.close();
    for (const agent of Object.values(this.#agents)) agent.destroy();
    return this.#seen;
  }

  async #pace(kind: Exclude<Kind, 'WebSocket'>, everyMs: number): Promise<void> {
    for (let next = performance.now(); !this.#stop.signal.aborted; next += everyMs) {
      await sleep(Math.max(0, next - performance.now()));
      const asked = this.#ask(kind);
      this.#open.add(asked);
      void asked.finally(() => this.#open.delete(asked));
    }
  }

  async #ask(kind: Exclude<Kind, 'WebSocket'>): Promise<void> {
    this.#seen.asked[kind] += 1;
    const began = performance.now();
    const failed = (what: string): void => this.#failed(kind, `${what.trim()} (after ${(performance.now() - began).toFixed(0)} ms)`);
    try {
      const { status, answer } = await this.#send(kind);
      const [version = '', size] = answer.split(' ');
      const isGood = status === 200 && size === (kind === 'POST of 2 s' ? String(body.length) : '0');
      if (isGood) this.#answered(version);
      else failed(`${String(status)} ${answer.slice(0, 80)}`);
    } catch (error) {
      failed(error instanceof Error ? error.message : String(error));
    }
  }

  #answered(version: string): void {
    if (!this.#seen.versions.includes(version)) this.#seen.versions.push(version);
    this.outcomes.push(version);
  }

  #failed(kind: Kind, what: string): void {
    if (kind === 'WebSocket') this.socketFailures += 1;
    else this.outcomes.push(undefined);
    this.#seen.failures.push(`${String(Math.round(performance.now() - this.#began))} ms: ${kind}: ${what}`);
  }

  #send(kind: Exclude<Kind, 'WebSocket'>): Promise<{ status: number; answer: string }> {
    if (kind === 'HTTP/2') return this.#stream();
    if (kind === 'new connection') return this.#request({ agent: false });
    if (kind === 'keep-alive') return this.#request({ agent: this.#agents.gets });
    return this.#request({ agent: this.#agents.posts, method: 'POST', path: '/slow' }, body);
  }

  #request(options: RequestOptions, content?: string): Promise<{ status: number; answer: string }> {
    return new Promise((resolve, reject) => {
      const headers = { host: this.#host };
      const outgoing = request(
        { host: '127.0.0.1', port: this.#ports.plain, timeout: patienceMs, headers, ...options },
        (incoming) => void text(incoming).then((answer) => resolve({ status: incoming.statusCode ?? 0, answer }), reject),
      );
      outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
      outgoing.on('error', reject);
      outgoing.end(content);
    });
  }

  async #stream(): Promise<{ status: number; answer: string }> {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = connect(`https://127.0.0.1:${String(this.#ports.secure)}`, { ca: this.#ca, servername: this.#host });
      // Each request on it fails too, and is counted.
      this.#session.on('error', () => undefined);
    }
    const stream = this.#session.request({ ':path': '/', ':authority': this.#host });
    stream.setTimeout(patienceMs, () => stream.destroy(new Error('no answer')));
    let status = 0;
    stream.on('response', (headers) => (status = headers[':status'] ?? 0));
    const answer = await text(stream);
    return { status, answer };
  }

  /** One WebSocket after the other, each until the app says that it is going away: with its instance. */
  async #keepSocket(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const ended = await this.#useSocket();
      if (ended !== undefined) this.#failed('WebSocket', ended);
    }
  }

  /** @returns how it failed */
  async #useSocket(): Promise<string | undefined> {
    const socket = new WebSocket(`ws://127.0.0.1:${String(this.#ports.plain)}/`, {
      headers: { host: this.#host },
      handshakeTimeout: patienceMs,
    });
    const closed = new Promise<string | undefined>((resolve) => {
      socket.on('error', (error) => resolve(error.message));
      socket.on('close', (code) => resolve(this.#stop.signal.aborted || code === goingAway ? undefined : `closed with ${String(code)}`));
    });
    let [sent, answered] = [0, 0];
    socket.on('message', (data: Buffer) => {
      if (String(data) !== String(++answered)) this.#failed('WebSocket', `answer ${String(data)} instead of ${String(answered)}`);
    });
    const timer = setInterval(() => {
      if (socket.readyState !== WebSocket.OPEN) return;
      if (this.#stop.signal.aborted) return socket.close();
      if (sent - answered > patienceMs / messageMs) return socket.terminate();
      this.#seen.asked.WebSocket += 1;
      socket.send(String(++sent));
    }, messageMs);
    // What was on its way when the app closed has no answer.
    return closed.finally(() => clearInterval(timer));
  }
}
