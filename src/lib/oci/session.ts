// A session with one registry: credentials, challenges, retries.

import type { Readable } from 'node:stream';
import { anonymous, type Authenticator, type Scope } from './auth.ts';
import { isTemporary, RegistryError, registryError, withoutAnswer } from './errors.ts';
import { sleep } from '../wait.ts';
import { discard, type HttpRequest, type HttpResponse, type HttpSend } from './http.ts';

export interface SessionOptions {
  send: HttpSend;
  authenticator?: Authenticator;
  /** Pauses before the second, third … try of one request; default 1 s, 3 s. */
  retryDelaysMs?: number[];
  userAgent?: string;
}

export interface RegistryRequest {
  method: string;
  path: string;
  scope: Scope;
  /** Accepted statuses. Any other is thrown as RegistryError. */
  expect: number[];
  /** Gerund and object for messages. */
  doing: string;
  headers?: Record<string, string>;
  /** Called once per try, because a stream can be read only once. */
  body?: () => Buffer | Readable | string;
  signal?: AbortSignal | undefined;
  /** False for requests that may take effect in part (PATCH): the caller first asks how much the server has. */
  retry?: boolean;
}

const DEFAULT_RETRY_DELAYS_MS = [1000, 3000];
const MAX_RETRY_AFTER_MS = 30_000;

export class RegistrySession {
  readonly #send: HttpSend;
  readonly #authenticator: Authenticator;
  readonly #delays: number[];
  readonly #userAgent: string;

  constructor(options: SessionOptions) {
    this.#send = options.send;
    this.#authenticator = options.authenticator ?? anonymous;
    this.#delays = options.retryDelaysMs ?? DEFAULT_RETRY_DELAYS_MS;
    this.#userAgent = options.userAgent ?? 'kf';
  }

  /** Throws RegistryError, or KfError `upload` when no answer came. */
  async request(request: RegistryRequest): Promise<HttpResponse> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(request);
      } catch (error) {
        const delay = request.retry === false ? undefined : this.#delays[attempt];
        if (delay === undefined || !isTemporary(error)) throw withoutAnswer(error, request.doing);
        await sleep(delayFor(error, delay), request.signal);
      }
    }
  }

  async #once(request: RegistryRequest): Promise<HttpResponse> {
    const first = await this.#exchange(request);
    if (first.status !== 401 || request.expect.includes(401)) return this.#accepted(first, request);
    // A token may have expired in the middle of an upload, so every request answers a challenge, but only one.
    const again = await this.#authenticator.answer(first.headers['www-authenticate'], request.scope, request.signal);
    if (!again) return this.#accepted(first, request);
    await discard(first);
    return this.#accepted(await this.#exchange(request), request);
  }

  async #accepted(response: HttpResponse, { expect, doing, method }: RegistryRequest): Promise<HttpResponse> {
    if (expect.includes(response.status)) return response;
    throw await registryError(response, doing, { isHead: method === 'HEAD', credential: this.#authenticator.use() });
  }

  #exchange(request: RegistryRequest): Promise<HttpResponse> {
    const outgoing: HttpRequest = {
      method: request.method,
      path: request.path,
      headers: { 'User-Agent': this.#userAgent, ...request.headers, ...this.#authenticator.headers(request.scope) },
    };
    if (request.body !== undefined) outgoing.body = request.body;
    if (request.signal) outgoing.signal = request.signal;
    return this.#send(outgoing);
  }
}

/** Ten percent of jitter, so that many clients that failed together do not return together. */
function delayFor(error: unknown, delayMs: number): number {
  const asked = error instanceof RegistryError ? (error.answer.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.min(Math.max(asked, delayMs), Math.max(MAX_RETRY_AFTER_MS, delayMs)) * (1 + Math.random() / 10);
}
