// The single transport for all requests to an API server: connections, credentials, proxies, time limits, retries.

import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream';
import type { Readable } from 'node:stream';
import { createSecureContext } from 'node:tls';
import { abortError, backoffMs, sleep, throwIfAborted } from '../wait.ts';
import type { Credential } from './credential.ts';
import type { Endpoint } from './endpoint.ts';
import { connectionCode, unreachableError } from './errors.ts';
import { codeError, keepAliveProbeMs, limitConnecting, limitOpening } from './connecting.ts';
import { tunnelAgent, withoutPassword } from './proxy.ts';
import type { WebSocket } from 'ws';
import { defined } from '../defined.ts';

type Body = string | Buffer | Readable;

export interface TransportRequest {
  method: string;
  /** Path and query below the server's URL. */
  path: string;
  headers?: OutgoingHttpHeaders;
  /** A function returns the same bytes each time; a plain stream can be sent only once. */
  body?: Body | (() => Body);
  signal?: AbortSignal | undefined;
  /** Milliseconds without a byte in either direction; 0 = no limit; default 70,000 (the server's own limit is 60 s). */
  idleTimeoutMs?: number;
  /**
   * `any`: sending twice does no harm, so a cut connection is tried again. `cut`: after a cut connection too, and `onRepeat` is called before, since
   * the server may have acted on the first request. `unprocessed`: a request is repeated only when the server certainly did not act on it.
   */
  repeat: 'any' | 'cut' | 'unprocessed';
  onRepeat?: () => void;
  /** False: busy answers (429, 503) are returned to the caller. */
  waitWhenBusy: boolean;
}

/** A request that asks the server to continue with WebSocket messages. */
export interface UpgradeRequest {
  /** Path and query below the server's URL. */
  path: string;
  headers?: OutgoingHttpHeaders;
  /** Accepted subprotocols, the preferred one first. */
  protocols: readonly string[];
  signal?: AbortSignal | undefined;
}

export interface TransportTuning {
  /** How long a server that answered before may be away (a restart) until a request fails. */
  patienceMs?: number;
  connectTimeoutMs?: number;
  /** First pause between two tries; it doubles. */
  backoffBaseMs?: number;
  /** Called with the `Date` header of every answer. */
  onDate?: (date: string | undefined) => void;
}

interface State {
  tries: number;
  renewed: boolean;
  deadline: number;
  /** When a refusal first seemed to come from a server that is starting. */
  startingSince?: number;
  lastTry?: boolean;
}

const idleSocketMs = 30_000; // less than the 60 s after which common load balancers drop a connection
const maxCutTries = 4;
const maxBusyTries = 10;
/** A server reads its roles within seconds. */
const startPatienceMs = 10_000;
/** A server that was ready a moment ago is not asked again whether it is: a controller may be refused a thousand times in a row. */
const readyTrustMs = 2_000;
const maxBusyPauseMs = 30_000;
/** The API server waits up to 30 s for a node. */
const upgradeMs = 40_000;

/** Codes of connections that never carried the request. */
const notSent = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EPROXY']);
const cut = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ECONNABORTED']);

function isPlain(body: TransportRequest['body']): body is string | Buffer | undefined {
  return body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
}

function isReplayable(body: TransportRequest['body']): boolean {
  return isPlain(body) || typeof body === 'function';
}

/** Reads a body up to a limit; bytes after `limit` are dropped. */
export async function readBody(stream: Readable, limit = Infinity): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (size < limit) chunks.push(chunk);
    size += chunk.length;
  }
  return Buffer.concat(chunks).subarray(0, limit === Infinity ? size : limit);
}

/** One API server and one user, for the duration of one command. */
export class Transport {
  readonly #endpoint: Endpoint;
  readonly #tuning: Required<TransportTuning>;
  readonly #agents = new Set<HttpAgent>();
  #agent: HttpAgent | undefined;
  #agentCredential: Credential = {};
  #answeredOnce = false;
  #awayAt = -Infinity;
  /** When the server last said that it is ready. */
  #readyAt = -Infinity;

  constructor(endpoint: Endpoint, tuning: TransportTuning = {}) {
    this.#endpoint = endpoint;
    this.#tuning = { patienceMs: 20_000, connectTimeoutMs: 10_000, backoffBaseMs: 150, onDate: () => undefined, ...tuning };
  }

  /** When the server was last found to be away, in milliseconds of `performance.now()`. */
  get awayAt(): number {
    return this.#awayAt;
  }

  /** The response as soon as its headers have arrived, whatever its status. Throws KubeError `unreachable`, or the signal's reason. */
  send(request: TransportRequest): Promise<IncomingMessage> {
    return this.#send(request, (credential) => this.#once(request, credential));
  }

  /**
   * The open socket, or the response of a server that refuses the upgrade. It uses the same connections, credentials, proxies and retries as other
   * requests. Throws KubeError `unreachable`, or the signal's reason.
   */
  async upgrade({ path, headers, protocols, signal }: UpgradeRequest): Promise<{ socket?: WebSocket; response: IncomingMessage }> {
    const { openWebSocket } = await import('./websocket.ts');
    // A command in a pod may have started, so only a request that the server has not processed is repeated.
    const request: TransportRequest = { method: 'GET', path, signal, repeat: 'unprocessed', waitWhenBusy: true };
    let socket: WebSocket | undefined;
    const response = await this.#send(request, async (credential) => {
      const opening = openWebSocket({
        url: this.#webSocketUrl(path),
        protocols,
        headers: { ...this.#headersWith(credential), ...headers },
        agent: this.#agentFor(credential),
        handshakeMs: upgradeMs,
        prepare: (req) => limitOpening(req, this.#tuning.connectTimeoutMs, signal),
      });
      const opened = await opening;
      this.#tuning.onDate(opened.response.headers.date);
      if ('socket' in opened) socket = opened.socket;
      else opened.response.on('error', () => undefined);
      return opened.response;
    });
    return socket === undefined ? { response } : { socket, response };
  }

  async #send(request: TransportRequest, once: (credential: Credential) => Promise<IncomingMessage>): Promise<IncomingMessage> {
    const state: State = { tries: 0, renewed: false, deadline: performance.now() + this.#tuning.patienceMs };
    for (;;) {
      throwIfAborted(request.signal);
      const credential = await this.#endpoint.credentials.get();
      // A credential plugin may have taken some time, and a signal that has already aborted emits no further event.
      throwIfAborted(request.signal);
      const outcome = await once(credential).catch((error: unknown) => this.#afterFailure(error, request, state));
      if (outcome === undefined) continue;
      this.#answeredOnce = true;
      if (!(await this.#isRepeated(outcome, request, credential, state))) return outcome;
    }
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy();
    this.#agents.clear();
    this.#agent = undefined;
  }

  /** Waits and returns when the request should be repeated; throws otherwise. */
  async #afterFailure(error: unknown, request: TransportRequest, state: State): Promise<undefined> {
    throwIfAborted(request.signal);
    const code = connectionCode(error);
    const proxy = this.#endpoint.proxy === undefined ? undefined : withoutPassword(this.#endpoint.proxy);
    this.#awayAt = performance.now();
    const inTime = performance.now() < state.deadline;
    const unsent = notSent.has(code) && this.#answeredOnce && inTime;
    const harmless = cut.has(code) && request.repeat !== 'unprocessed' && inTime && (this.#answeredOnce || state.tries < maxCutTries);
    if (!isReplayable(request.body) || !(unsent || harmless)) throw unreachableError(error, this.#endpoint.identity, proxy);
    if (harmless) request.onRepeat?.();
    await sleep(backoffMs(state.tries++, { baseMs: this.#tuning.backoffBaseMs, maxMs: 2_000 }), request.signal);
    return undefined;
  }

  /** Renews the credential after a 401, and waits when the server is busy; true when the request should be repeated. */
  async #isRepeated(response: IncomingMessage, request: TransportRequest, credential: Credential, state: State): Promise<boolean> {
    if (response.statusCode === 401 && !state.renewed && isOwnAnswer(response)) {
      state.renewed = true;
      const renewed = await this.#endpoint.credentials.renew(credential);
      if (!renewed || !isReplayable(request.body)) return false;
      // The rest of a large body is not sent to a server that has refused it.
      if (isPlain(request.body)) response.resume();
      else response.destroy();
      return true;
    }
    if (
      response.statusCode === 403 &&
      isOwnAnswer(response) &&
      isReplayable(request.body) &&
      (await this.#isStarting(request, credential, state))
    ) {
      response.resume();
      return true;
    }
    if (!request.waitWhenBusy || !isReplayable(request.body) || state.tries >= maxBusyTries) return false;
    const pause = busyPauseMs(response, request.repeat === 'any' && performance.now() < state.deadline);
    if (pause === undefined) return false;
    response.resume();
    await sleep(Math.max(pause, backoffMs(state.tries, { baseMs: this.#tuning.backoffBaseMs, maxMs: 2_000 })), request.signal);
    state.tries++;
    return true;
  }

  /**
   * An API server that has just started refuses everything until it has read its roles. Everybody may ask whether it is ready: if that is refused
   * too, or answered with no, the first refusal does not count yet. Returns after a pause when another try makes sense.
   */
  async #isStarting(request: TransportRequest, credential: Credential, state: State): Promise<boolean> {
    state.startingSince ??= performance.now();
    if (performance.now() - state.startingSince > startPatienceMs) return false;
    const wasReadyLately = performance.now() - this.#readyAt < readyTrustMs && this.#readyAt > this.#awayAt + startPatienceMs;
    if (wasReadyLately) return false;
    const question: TransportRequest = { method: 'GET', path: '/readyz', repeat: 'any', waitWhenBusy: false, signal: request.signal };
    const answer = await this.#once(question, credential).catch(() => undefined);
    answer?.resume();
    const status = answer?.statusCode ?? 500;
    if (status !== 403 && status < 500) {
      this.#readyAt = performance.now();
      // The server may have become ready between the two answers. If it was away shortly before, the request is tried once more.
      const again = state.lastTry !== true && performance.now() - this.#awayAt < startPatienceMs;
      state.lastTry = true;
      return again;
    }
    this.#awayAt = performance.now();
    await sleep(backoffMs(state.tries++, { baseMs: this.#tuning.backoffBaseMs, maxMs: 1_000 }), request.signal);
    return true;
  }

  #agentFor(credential: Credential): HttpAgent {
    if (this.#agent !== undefined && credential.cert === this.#agentCredential.cert && credential.key === this.#agentCredential.key)
      return this.#agent;
    const { url, ca, insecure, serverName, proxy } = this.#endpoint;
    const secure = url.protocol === 'https:';
    const material = {
      ...defined({ ca, cert: credential.cert, key: credential.key }),
    };
    const options = {
      keepAlive: true,
      keepAliveMsecs: keepAliveProbeMs,
      timeout: idleSocketMs,
      scheduling: 'lifo' as const,
      ...material,
      ...defined({ servername: serverName }),
      rejectUnauthorized: !insecure,
    };
    const agent =
      proxy !== undefined
        ? tunnelAgent(proxy, secure, this.#tuning.connectTimeoutMs, options)
        : secure
          ? // Created once: otherwise each connection would parse authorities and keys again.
            new HttpsAgent({ ...options, secureContext: createSecureContext(material) })
          : new HttpAgent(options);
    this.#agents.add(agent);
    this.#agent = agent;
    this.#agentCredential = credential;
    return agent;
  }

  #headersWith(credential: Credential): OutgoingHttpHeaders {
    const auth = defined({ Authorization: credential.authorization });
    return { ...auth, ...this.#endpoint.headers };
  }

  #pathOf(path: string): string {
    return this.#endpoint.url.pathname.replace(/\/$/, '') + path;
  }

  #webSocketUrl(path: string): URL {
    const { url } = this.#endpoint;
    return new URL(this.#pathOf(path), `${url.protocol === 'https:' ? 'wss' : 'ws'}://${url.host}`);
  }

  #open(request: TransportRequest, credential: Credential): ClientRequest {
    const { url } = this.#endpoint;
    const secure = url.protocol === 'https:';
    const length =
      typeof request.body === 'string' || Buffer.isBuffer(request.body) ? { 'Content-Length': Buffer.byteLength(request.body) } : {};
    return (secure ? httpsRequest : httpRequest)({
      method: request.method,
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
      path: this.#pathOf(request.path),
      headers: { ...length, ...this.#headersWith(credential), ...request.headers },
      agent: this.#agentFor(credential),
    });
  }

  #once(request: TransportRequest, credential: Credential): Promise<IncomingMessage> {
    const { connectTimeoutMs, onDate } = this.#tuning;
    return new Promise((resolve, reject) => {
      const req = this.#open(request, credential);
      const { signal } = request;
      let response: IncomingMessage | undefined;
      const connected = limitConnecting(req, connectTimeoutMs);
      const onAbort = (): void => {
        if (signal === undefined) return;
        const error = abortError(signal);
        response?.destroy(error);
        req.destroy(error);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const idleMs = request.idleTimeoutMs ?? 70_000;
      req.setTimeout(idleMs, () => {
        if (idleMs === 0) return;
        const error = codeError('ETIMEDOUT', `no byte within ${String(idleMs)} ms`);
        response?.destroy(error);
        req.destroy(error);
      });
      req.on('response', (message) => {
        response = message;
        onDate(message.headers.date);
        // Without a listener, an answer that breaks off before it is read would end the process.
        message.on('error', () => undefined);
        resolve(message);
      });
      // For later errors (an upload that continues while the refusal is read) the promise is already settled.
      req.on('error', reject);
      req.on('close', () => {
        connected();
        if (response === undefined || response.closed) signal?.removeEventListener('abort', onAbort);
        else response.once('close', () => signal?.removeEventListener('abort', onAbort));
      });
      const body = typeof request.body === 'function' ? request.body() : request.body;
      if (isPlain(body)) req.end(body);
      else pipeline(body, req, (error) => (error === undefined || error === null ? undefined : reject(error)));
    });
  }
}

/** How long a busy server asks to wait; undefined when its answer is final. A starting server sends 503 without a time. */
function busyPauseMs(response: IncomingMessage, mayBeStarting: boolean): number | undefined {
  const status = response.statusCode ?? 0;
  const seconds = Number(response.headers['retry-after'] ?? NaN);
  if ((status === 429 || status >= 500) && Number.isFinite(seconds)) return Math.min(maxBusyPauseMs, Math.max(seconds * 1000, 50));
  return status === 503 && mayBeStarting ? 0 : undefined;
}

/** The API server's own 401 has a Status object; a 401 through the service proxy comes from the service. */
function isOwnAnswer(response: IncomingMessage): boolean {
  return (response.headers['content-type'] ?? '').startsWith('application/json') && response.headers['www-authenticate'] === undefined;
}
