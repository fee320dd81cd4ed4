// The registry client's connection to a registry: one function type, and its direct implementation over node:http(s). The other implementation,
// through the service proxy of a Kubernetes API server, is in `lib/ops/registry`.

import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import { limitInterimAnswers } from '../interim-answers.ts';
import { AddressGuard } from './addresses.ts';

type HttpBody = Buffer | Readable | string;

export interface HttpRequest {
  method: string;
  /** Path and query, from `/v2/` on. */
  path: string;
  headers: Record<string, string>;
  /** A function returns the same bytes each time: an implementation that renews its own credentials may send the request twice. */
  body?: HttpBody | (() => HttpBody);
  signal?: AbortSignal;
}

/** Header names in lower case. The body must be read to its end or destroyed. */
export interface HttpResponse {
  status: number;
  headers: Record<string, string>;
  body: Readable;
}

/** Sends one request; no status is an error. Throws only when there is no answer. */
export type HttpSend = (request: HttpRequest) => Promise<HttpResponse>;

/** As {@link HttpSend}, to an absolute URL: token servers, redirect targets. */
export type HttpSendUrl = (url: URL, request: Omit<HttpRequest, 'path'>) => Promise<HttpResponse>;

export interface DirectOptions {
  /** Plain HTTP; default: only for loopback hosts, as in docker and containerd. */
  insecure?: boolean;
  /** PEM certificates that are trusted in addition to the system's. */
  ca?: string[];
  /**
   * For registries that others choose: only public addresses or the registry's own ones, and of error answers only the registry's own text,
   * because other servers' text could be secret.
   */
  guarded?: boolean;
  /** Milliseconds without a byte in either direction until the request counts as lost; default two minutes. */
  idleTimeoutMs?: number;
}

export interface DirectConnection {
  send: HttpSend;
  sendUrl: HttpSendUrl;
  /** `http://host:port` or `https://host:port` */
  base: string;
  close(): void;
}

const MAX_REDIRECTS = 5;
const MAX_ERROR_BYTES = 64 * 1024;
const DEFAULT_IDLE_MS = 120_000;

/** Connects directly to `registry` (`host` or `host:port`). Redirects of reads are followed, without credentials when they lead to another host. */
export function directConnection(registry: string, options: DirectOptions = {}): DirectConnection {
  const insecure = options.insecure ?? isLoopback(new URL(`http://${registry}`).hostname);
  const base = `${insecure ? 'http' : 'https'}://${registry}`;
  const guard = options.guarded === true ? new AddressGuard(new URL(base).hostname) : undefined;
  const common = { keepAlive: true, ...defined({ lookup: guard?.lookup }) };
  const agents = { 'http:': new HttpAgent(common), 'https:': new HttpsAgent({ ...common, ...defined({ ca: options.ca }) }) };
  const sendUrl: HttpSendUrl = async (url, request) => {
    if (url.protocol !== 'https:' && url.protocol !== 'http:')
      throw new KfError('upload', `The registry '${registry}' sends to a URL that is not HTTP: '${url.protocol}'.`);
    guard?.checkUrl(url);
    const start = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = start(url, {
      method: request.method,
      headers: request.headers,
      agent: url.protocol === 'https:' ? agents['https:'] : agents['http:'],
      timeout: options.idleTimeoutMs ?? DEFAULT_IDLE_MS,
      ...defined({ signal: request.signal }),
    });
    const response = await exchange(outgoing, typeof request.body === 'function' ? request.body() : request.body);
    return guard === undefined || response.status < 300 ? response : withoutForeignWords(response, url.origin === new URL(base).origin);
  };
  return {
    base,
    sendUrl,
    send: (request) => followRedirects(new URL(request.path, base), request, sendUrl),
    close: () => {
      agents['http:'].destroy();
      agents['https:'].destroy();
    },
  };
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

async function followRedirects(first: URL, request: HttpRequest, sendUrl: HttpSendUrl): Promise<HttpResponse> {
  let url = first;
  let headers = request.headers;
  for (let hops = 0; ; hops++) {
    const response = await sendUrl(url, { ...request, headers });
    const location = response.headers['location'];
    const isRedirect = response.status >= 301 && response.status <= 308 && response.status !== 304;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRedirect || !isRead || location === undefined || hops === MAX_REDIRECTS) return response;
    // Not read, because it may be endless.
    response.body.destroy();
    const next = new URL(location, url);
    if (next.origin !== url.origin) headers = withoutCredentials(headers);
    url = next;
  }
}

function withoutCredentials(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !/authorization$/i.test(name)));
}

function exchange(outgoing: ClientRequest, body: HttpBody | undefined): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    // An answer may come before the whole body was sent (413, 401). The server then cuts the connection, which is not a failure any more.
    outgoing.on('response', (incoming) => resolve(responseFrom(incoming)));
    outgoing.on('error', reject);
    limitInterimAnswers(outgoing);
    outgoing.on('timeout', () => outgoing.destroy(timeoutError()));
    if (body instanceof Readable) {
      body.on('error', (error) => outgoing.destroy(error));
      outgoing.on('close', () => body.destroy());
      body.pipe(outgoing);
    } else {
      outgoing.end(body);
    }
  });
}

function timeoutError(): Error {
  return Object.assign(new Error('the connection was silent for too long'), { code: 'ETIMEDOUT' });
}

function responseFrom(incoming: IncomingMessage): HttpResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) if (value !== undefined) headers[name] = String(value);
  return { status: incoming.statusCode ?? 0, headers, body: incoming };
}

/** Keeps only error text in the API's format and from the registry itself; a page, or an answer from elsewhere, could be secret. */
async function withoutForeignWords(response: HttpResponse, isRegistry: boolean): Promise<HttpResponse> {
  const text = isRegistry ? (await readUpTo(response.body, MAX_ERROR_BYTES).catch(() => Buffer.alloc(0))).toString() : '';
  response.body.destroy();
  return { ...response, body: Readable.from(isErrorDocument(text) ? [Buffer.from(text)] : [], { objectMode: false }) };
}

function isErrorDocument(text: string): boolean {
  try {
    return Array.isArray((JSON.parse(text) as { errors?: unknown } | null)?.errors);
  } catch {
    return false;
  }
}

/** Reads at most `limit` bytes and drops the rest. */
export async function readUpTo(body: Readable, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= limit) break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

/** Reads an unneeded body, so that its connection can be used again. */
export async function discard(response: HttpResponse): Promise<void> {
  response.body.resume();
  await finished(response.body).catch(() => response.body.destroy());
}
