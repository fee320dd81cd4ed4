// Uploads one blob in chunks. The upload survives cut connections, proxies with body limits and a restart of the registry.
//
// POST opens a session, PATCH appends, PUT closes it under a digest
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks). After every failure the server is asked for
// its offset (GET on the session), because it may or may not have kept the bytes of a cut PATCH.

import { Readable } from 'node:stream';
import { KfError, messageOf } from '../errors.ts';
import { sleep } from '../wait.ts';
import type { Digest } from './descriptor.ts';
import { isConnectionFailure, isTemporary, RegistryError } from './errors.ts';
import { discard, type HttpResponse } from './http.ts';
import type { RegistryRequest, RegistrySession } from './session.ts';

/** Bytes that can be read from any position, repeatedly. */
export interface BlobSource {
  digest: Digest;
  size: number;
  /** Bytes `start` to `end` (exclusive). */
  open(start: number, end: number): Buffer | Readable;
}

/** Where the caller stores an upload session between two runs of kf. */
export interface UploadMemory {
  load(): string | undefined;
  /** Undefined: the session has ended. */
  save(session: string | undefined): void;
}

export interface UploadOptions {
  repository: string;
  source: BlobSource;
  /** Name of the blob for messages: `the layer`. */
  what: string;
  /** A repository that may have the blob already (same registry, readable with the same credential). */
  mountFrom?: string;
  chunkBytes?: number;
  minChunkBytes?: number;
  memory?: UploadMemory;
  progress?: (bytesSent: number, total: number) => void;
  signal?: AbortSignal;
  /** Pauses between tries without progress; any progress starts the list again. */
  stallDelaysMs?: number[];
}

export interface UploadResult {
  /** Bytes of accepted chunks; 0 when the blob existed or was mounted. */
  bytesSent: number;
  /** The chunk size that worked, to begin with next time. */
  chunkBytes: number;
}

export const DEFAULT_CHUNK_BYTES = 32 * 1024 * 1024;
export const MIN_CHUNK_BYTES = 512 * 1024;
/** Together about 50 s: a registry pod that is rescheduled is back within that time. */
const STALL_DELAYS_MS = [200, 1000, 3000, 5000, 8000, 13_000, 20_000];
const MAX_RESTARTS = 5;
/** Statuses that do not depend on the size of a body, also when a proxy sends them. */
const NOT_ABOUT_SIZE = new Set([401, 404, 405, 407, 416, 429]);

/** Uploads the blob; check with HEAD before. Throws RegistryError or KfError `upload`. */
export async function uploadBlob(session: RegistrySession, options: UploadOptions): Promise<UploadResult> {
  return new BlobUpload(session, options).run();
}

class BlobUpload {
  readonly #session: RegistrySession;
  readonly #options: UploadOptions;
  readonly #uploads: string;
  readonly #delays: number[];
  readonly #minChunk: number;
  #chunk: number;
  /** Path and query of the upload session. */
  #location: string | undefined;
  #offset = 0;
  #furthest = 0;
  #bytesSent = 0;
  #stalls = 0;
  #restarts = 0;
  /** The server must be asked for its offset before anything else is sent. */
  #unsure = false;
  /** The registry could not read the session's state and was asked for a new one; this is done only once until a chunk succeeds. */
  #renewed = false;
  /** The last failure was a cut and not an answer. If the server then answers at once, the size of the body may be the cause. */
  #cut = false;
  /** The current request has a body. */
  #sending = false;

  constructor(session: RegistrySession, options: UploadOptions) {
    this.#session = session;
    this.#options = options;
    this.#uploads = `/v2/${options.repository}/blobs/uploads/`;
    this.#delays = options.stallDelaysMs ?? STALL_DELAYS_MS;
    this.#chunk = options.chunkBytes ?? DEFAULT_CHUNK_BYTES;
    this.#minChunk = options.minChunkBytes ?? MIN_CHUNK_BYTES;
    const remembered = options.memory?.load();
    // The session comes from a file, so it is checked: only a session of this repository may be continued.
    if (remembered?.startsWith(this.#uploads)) {
      this.#location = remembered;
      this.#unsure = true;
    }
  }

  async run(): Promise<UploadResult> {
    for (;;) {
      try {
        if (await this.#step()) break;
      } catch (error) {
        await this.#recover(error);
      }
    }
    this.#options.memory?.save(undefined);
    this.#options.progress?.(this.#options.source.size, this.#options.source.size);
    return { bytesSent: this.#bytesSent, chunkBytes: this.#chunk };
  }

  /** One request; true when the blob is complete. */
  async #step(): Promise<boolean> {
    const { size } = this.#options.source;
    if (this.#location === undefined) return (this.#restarts > 0 && (await this.#isThere())) || this.#start();
    if (this.#unsure) await this.#ask();
    else if (this.#offset === 0 && size <= this.#minChunk) return this.#finish(0);
    else if (this.#offset < size) await this.#patch();
    else return this.#finish(size);
    return false;
  }

  /** After a lost session: the lost answer may have been the final success. */
  async #isThere(): Promise<boolean> {
    const { repository, source } = this.#options;
    const path = `/v2/${repository}/blobs/${source.digest}`;
    const response = await this.#request({ method: 'HEAD', path, expect: [200, 404], retry: true });
    await discard(response);
    return response.status === 200;
  }

  async #start(): Promise<boolean> {
    const { mountFrom, source, repository } = this.#options;
    const query = mountFrom === undefined ? '' : `?mount=${encodeURIComponent(source.digest)}&from=${encodeURIComponent(mountFrom)}`;
    const response = await this.#request({
      method: 'POST',
      path: this.#uploads + query,
      headers: { 'Content-Length': '0' },
      expect: [201, 202],
      retry: true,
    });
    await discard(response);
    if (response.status === 201) return true;
    this.#offset = 0;
    this.#take(response);
    if (this.#location === undefined)
      throw new KfError('upload', `The registry opened no upload in '${repository}': its answer has no Location.`);
    return false;
  }

  async #patch(): Promise<void> {
    const { source } = this.#options;
    const start = this.#offset;
    const end = Math.min(start + this.#chunk, source.size);
    this.#sending = true;
    const response = await this.#request({
      method: 'PATCH',
      headers: {
        'Content-Type': 'application/octet-stream',
        'Content-Length': String(end - start),
        'Content-Range': `${start}-${end - 1}`,
      },
      body: () => this.#counted(source.open(start, end), start),
      expect: [202],
    });
    this.#sending = false;
    await discard(response);
    this.#renewed = false;
    this.#bytesSent += end - start;
    const reached = endOfRange(response) ?? end;
    this.#moveTo(reached);
    this.#take(response);
    if (reached <= start) await this.#wait(keptNothing(this.#options));
  }

  /** Closes the session with everything from `start` on as its body. */
  async #finish(start: number): Promise<boolean> {
    const { source } = this.#options;
    const body = start < source.size ? { body: () => this.#counted(source.open(start, source.size), start) } : {};
    this.#sending = start < source.size;
    const response = await this.#request({
      method: 'PUT',
      path: withQuery(this.#location ?? '', `digest=${encodeURIComponent(source.digest)}`),
      headers: { 'Content-Type': 'application/octet-stream', 'Content-Length': String(source.size - start) },
      ...body,
      expect: [201, 204],
    });
    await discard(response);
    this.#bytesSent += source.size - start;
    return true;
  }

  async #ask(): Promise<void> {
    const response = await this.#request({ method: 'GET', expect: [204], what: 'asking for the state of the upload' });
    await discard(response);
    this.#unsure = false;
    if (this.#cut) this.#halve();
    this.#cut = false;
    this.#moveTo(endOfRange(response) ?? 0);
    this.#take(response);
  }

  /** Decides how the upload continues after a failure; returns when it can continue. */
  async #recover(error: unknown): Promise<void> {
    if (isAbort(error, this.#options.signal)) throw error;
    const hadBody = this.#sending;
    const wasAsking = this.#unsure;
    this.#sending = false;
    this.#unsure = this.#location !== undefined;
    if (hadBody && error instanceof RegistryError && isAboutSize(error)) return this.#refused(error);
    // A Distribution that restarted without a configured secret cannot read its earlier states, but still has the bytes: it gives a new state on
    // request.
    if (this.#unsure && !wasAsking && !this.#renewed && error instanceof RegistryError && error.has('BLOB_UPLOAD_INVALID')) {
      this.#renewed = true;
      return;
    }
    if (this.#unsure && error instanceof RegistryError && isSessionLost(error)) return this.#restart(error);
    const outOfStep = error instanceof RegistryError && error.answer.status === 416;
    if (!outOfStep && !isTemporary(error)) throw error;
    // After a cut body the server is asked at once. The upload waits only if the server cannot be reached either, or if the chunk cannot be
    // halved.
    this.#cut = hadBody && isCut(error);
    if (!this.#cut || this.#chunk <= this.#minChunk) await this.#wait(error);
  }

  #refused(error: RegistryError): void {
    if (this.#chunk <= this.#minChunk) throw error.answer.status === 413 ? tooLarge(error, this.#minChunk) : error;
    this.#halve();
  }

  async #wait(error: unknown): Promise<void> {
    const delay = this.#delays[this.#stalls++];
    if (delay === undefined) throw error;
    await sleep(delay, this.#options.signal);
  }

  /** The registry lost the session (restarted without its volume, cleaned up): the upload starts again, a limited number of times. */
  #restart(error: unknown): void {
    if (this.#restarts++ >= MAX_RESTARTS) throw error;
    this.#location = undefined;
    this.#unsure = false;
    this.#offset = 0;
    this.#options.memory?.save(undefined);
  }

  #halve(): void {
    this.#chunk = Math.max(this.#minChunk, Math.floor(this.#chunk / 2));
  }

  #moveTo(offset: number): void {
    if (offset > this.#options.source.size) {
      throw new KfError(
        'upload',
        `The registry says that it has ${offset} bytes of ${this.#options.what}, which has only ${this.#options.source.size}.`,
      );
    }
    this.#offset = offset;
    if (offset > this.#furthest) this.#stalls = 0;
    this.#furthest = Math.max(this.#furthest, offset);
    this.#options.progress?.(offset, this.#options.source.size);
  }

  #take(response: HttpResponse): void {
    const location = response.headers['location'];
    if (location === undefined) return;
    this.#location = pathOfLocation(location, this.#location ?? this.#uploads);
    this.#options.memory?.save(this.#location);
  }

  #counted(body: Buffer | Readable, start: number): Buffer | Readable {
    const { progress, source } = this.#options;
    if (!progress || Buffer.isBuffer(body)) return body;
    return Readable.from(
      counting(body, (bytes) => progress(start + bytes, source.size)),
      { objectMode: false },
    );
  }

  #request(request: Partial<RegistryRequest> & { method: string; expect: number[]; what?: string }): Promise<HttpResponse> {
    const { repository, what, signal } = this.#options;
    const doing = `${request.what ?? `uploading ${what}`} to '${repository}'`;
    return this.#session.request({
      path: this.#location ?? '',
      retry: false,
      scope: { repository, actions: 'pull,push' },
      signal,
      ...request,
      doing,
    });
  }
}

async function* counting(body: Readable, count: (bytes: number) => void): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    yield chunk;
    count((bytes += chunk.length));
  }
}

function isAbort(error: unknown, signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true || (error instanceof Error && error.name === 'AbortError');
}

/** Always for 413; for another 4xx only when it comes from a proxy and not from the registry (firewalls answer 400 or 403 to a body they reject). */
function isAboutSize(error: RegistryError): boolean {
  const { status, fromRegistry } = error.answer;
  if (status === 413) return true;
  return !fromRegistry && status >= 400 && status < 500 && !NOT_ABOUT_SIZE.has(status);
}

/** BLOB_UPLOAD_INVALID counts only when asking for the state has not helped. */
function isSessionLost(error: RegistryError): boolean {
  return error.answer.status === 404 || error.has('BLOB_UPLOAD_UNKNOWN') || error.has('BLOB_UPLOAD_INVALID') || error.has('DIGEST_INVALID');
}

/** Proxies that run into a time or memory limit in the middle of a body answer 502 or 504, or nothing. */
function isCut(error: unknown): boolean {
  if (error instanceof RegistryError) return !error.answer.fromRegistry && [408, 502, 504].includes(error.answer.status);
  return isConnectionFailure(error);
}

function keptNothing({ what, repository }: UploadOptions): KfError {
  return new KfError('upload', `The registry accepts the bytes of ${what} for '${repository}', but does not store them.`);
}

function tooLarge(cause: RegistryError, bytes: number): KfError {
  return new KfError('upload', `The way to the registry refuses request bodies of ${bytes / 1024} KiB.`, {
    hints: [
      'A proxy between this machine and the registry limits the size of requests; its limit must be 1 MiB at least.',
      messageOf(cause),
    ],
    details: { status: cause.answer.status },
    cause,
  });
}

/** `Range: 0-N` means N + 1 bytes; distribution sends `0-0` for no bytes. */
function endOfRange(response: HttpResponse): number | undefined {
  const range = /^(?:bytes=)?0-(\d+)$/.exec(response.headers['range'] ?? '');
  if (!range) return undefined;
  const last = Number(range[1]);
  return last === 0 ? 0 : last + 1;
}

/**
 * The path and query of a Location below the registry's base. Registries behind a proxy answer with a scheme, host or prefix that is right only on
 * the other side, so only the part of an absolute Location from `/v2/` on counts. That also keeps the credential on its host.
 */
export function pathOfLocation(location: string, current: string): string {
  const base = new URL(current, 'http://registry.invalid');
  const url = new URL(location, base);
  const path = url.pathname + url.search;
  const api = url.pathname.indexOf('/v2/');
  return api > 0 ? path.slice(api) : path;
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}
