// A registry in memory for contract tests. It is strict where real ones are, and can simulate every failure between the developer's machine and a
// registry.

import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SeenRequest {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  /** Size of the received part of the body. */
  bytes: number;
}

export interface Switches {
  /** Larger bodies get a proxy's 413 page before they are read. */
  maxBodyBytes?: number;
  /** The answer to bodies above `maxBodyBytes`; default 413. */
  refuseStatus?: number;
  /** The connection is cut after this many bytes of a body. */
  cutAfterBytes?: number;
  /** Whether bytes of a cut body stay in the upload. */
  keepCutBytes?: boolean;
  credential?: { scheme: 'basic' | 'bearer'; username: string; password: string };
  /** Number of requests for which one bearer token is valid. */
  tokenUses?: number;
  /** The header that carries the credential; default `authorization`. */
  credentialHeader?: string;
  /** Chunks are acknowledged and dropped. */
  keepsNothing?: boolean;
  location?: 'relative' | 'wrong-scheme' | 'prefixed';
  /** Answers in place of the registry: with a status, or `cut`. Called before everything else. */
  intercept?: (request: SeenRequest, count: number) => number | 'cut' | undefined;
  tagsPerPage?: number;
}

interface Manifest {
  bytes: Buffer;
  mediaType: string;
}

export class ScriptedRegistry {
  readonly requests: SeenRequest[] = [];
  readonly blobs = new Map<string, Buffer>();
  readonly uploads = new Map<string, Buffer[]>();
  readonly switches: Switches;
  readonly #repositories = new Map<string, { blobs: Set<string>; manifests: Map<string, Manifest> }>();
  readonly #tokens = new Map<string, number>();
  readonly #server: Server;
  #port = 0;
  #secret = randomUUID();

  constructor(switches: Switches = {}) {
    this.switches = switches;
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async start(switches: Switches = {}): Promise<ScriptedRegistry> {
    const registry = new ScriptedRegistry(switches);
    await registry.listen();
    return registry;
  }

  get host(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Starts again on the same port. */
  listen(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#port = (this.#server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  /** Stops and closes all its connections. */
  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** Simulates a restart without a configured secret: earlier session URLs cannot be written to, only read. */
  changeSecret(): void {
    this.#secret = randomUUID();
  }

  methods(): string[] {
    return this.requests.map(({ method }) => method);
  }

  manifest(repository: string, reference: string): Manifest | undefined {
    return this.#repositories.get(repository)?.manifests.get(reference);
  }

  putManifest(repository: string, reference: string, mediaType: string, document: unknown): string {
    const bytes = Buffer.from(JSON.stringify(document));
    const digest = digestOf(bytes);
    for (const name of [reference, digest]) this.#repository(repository).manifests.set(name, { bytes, mediaType });
    return digest;
  }

  putBlob(repository: string, bytes: Buffer): string {
    const digest = digestOf(bytes);
    this.blobs.set(digest, bytes);
    this.#repository(repository).blobs.add(digest);
    return digest;
  }

  #repository(name: string): { blobs: Set<string>; manifests: Map<string, Manifest> } {
    const found = this.#repositories.get(name) ?? { blobs: new Set<string>(), manifests: new Map<string, Manifest>() };
    this.#repositories.set(name, found);
    return found;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen: SeenRequest = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, bytes: 0 };
    this.requests.push(seen);
    const instead = this.switches.intercept?.(seen, this.requests.length);
    if (instead === 'cut') return void request.socket.destroy();
    if (instead !== undefined) return page(response, instead);
    const url = new URL(seen.path, 'http://registry');
    if (url.pathname === '/token') return this.#token(request, response);
    if (!this.#isKnown(request, response)) return;
    if (Number(request.headers['content-length'] ?? 0) > (this.switches.maxBodyBytes ?? Infinity)) {
      return page(response, this.switches.refuseStatus ?? 413);
    }
    await this.#route(seen, url, request, response);
  }

  async #route(seen: SeenRequest, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const match = /^\/v2\/(.+)\/(blobs\/uploads|blobs|manifests|tags)\/([^/]*)$/.exec(url.pathname);
    if (!match) return refuse(response, 404, 'NAME_UNKNOWN');
    const [, repository = '', kind, name = ''] = match;
    if (kind === 'blobs/uploads') return this.#upload(seen, url, { repository, id: name }, request, response);
    if (kind === 'tags') return this.#tags(repository, url, response);
    if (kind === 'blobs') return this.#blob(seen.method, repository, name, response);
    if (seen.method === 'PUT') return this.#acceptManifest(repository, name, seen, request, response);
    const manifest = this.manifest(repository, name);
    if (!manifest) return refuse(response, 404, 'MANIFEST_UNKNOWN');
    response.writeHead(200, {
      'Content-Type': manifest.mediaType,
      'Content-Length': manifest.bytes.length,
      'Docker-Content-Digest': digestOf(manifest.bytes),
    });
    response.end(seen.method === 'HEAD' ? undefined : manifest.bytes);
  }

  #isKnown(request: IncomingMessage, response: ServerResponse): boolean {
    const { credential, credentialHeader = 'authorization' } = this.switches;
    if (!credential) return true;
    const given = String(request.headers[credentialHeader] ?? '');
    if (credential.scheme === 'basic' && given === basic(credential)) return true;
    const uses = credential.scheme === 'bearer' ? (this.#tokens.get(given.replace(/^Bearer /, '')) ?? 0) : 0;
    this.#tokens.set(given.replace(/^Bearer /, ''), uses - 1);
    if (uses > 0) return true;
    const scheme = credential.scheme === 'basic' ? 'Basic realm="registry"' : `Bearer realm="http://${this.host}/token",service="scripted"`;
    response.setHeader('WWW-Authenticate', scheme);
    refuse(response, 401, 'UNAUTHORIZED');
    return false;
  }

  #token(request: IncomingMessage, response: ServerResponse): void {
    const { credential, tokenUses = Infinity } = this.switches;
    if (!credential || request.headers.authorization !== basic(credential)) return refuse(response, 401, 'UNAUTHORIZED');
    const token = randomUUID();
    this.#tokens.set(token, tokenUses);
    response.end(JSON.stringify({ token }));
  }

  #blob(method: string, repository: string, digest: string, response: ServerResponse): void {
    const bytes = this.#repository(repository).blobs.has(digest) ? this.blobs.get(digest) : undefined;
    if (!bytes) return refuse(response, 404, 'BLOB_UNKNOWN');
    response.writeHead(200, { 'Content-Length': bytes.length, 'Content-Type': 'application/octet-stream' });
    response.end(method === 'HEAD' ? undefined : bytes);
  }

  async #upload(
    seen: SeenRequest,
    url: URL,
    at: { repository: string; id: string },
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (seen.method === 'POST') return this.#openUpload(url, at.repository, response);
    const chunks = this.uploads.get(at.id);
    if (!chunks) return refuse(response, 404, 'BLOB_UPLOAD_UNKNOWN');
    if (seen.method === 'GET') return this.#uploadState(204, at, response);
    if (url.searchParams.get('_state') !== this.#secret) return refuse(response, 400, 'BLOB_UPLOAD_INVALID');
    const range = /^(\d+)-\d+$/.exec(request.headers['content-range'] ?? '');
    if (range && Number(range[1]) !== sizeOf(chunks)) return refuse(response, 416, 'RANGE_INVALID');
    const before = chunks.length;
    if (!(await this.#readBody(seen, chunks, request))) {
      if (this.switches.keepCutBytes !== true) chunks.length = before;
      return;
    }
    if (this.switches.keepsNothing === true) chunks.length = 0;
    if (seen.method === 'PATCH') return this.#uploadState(202, at, response);
    const bytes = Buffer.concat(chunks);
    this.uploads.delete(at.id);
    if (url.searchParams.get('digest') !== digestOf(bytes)) return refuse(response, 400, 'DIGEST_INVALID');
    this.putBlob(at.repository, bytes);
    response.writeHead(201, { Location: `/v2/${at.repository}/blobs/${digestOf(bytes)}` }).end();
  }

  #openUpload(url: URL, repository: string, response: ServerResponse): void {
    const mount = url.searchParams.get('mount');
    const from = url.searchParams.get('from');
    if (mount !== null && from !== null && this.#repository(from).blobs.has(mount)) {
      this.#repository(repository).blobs.add(mount);
      return void response.writeHead(201, { Location: `/v2/${repository}/blobs/${mount}` }).end();
    }
    const id = randomUUID();
    this.uploads.set(id, []);
    this.#uploadState(202, { repository, id }, response);
  }

  #uploadState(status: number, at: { repository: string; id: string }, response: ServerResponse): void {
    const path = `/v2/${at.repository}/blobs/uploads/${at.id}?_state=${this.#secret}`;
    const prefixes = {
      relative: '',
      'wrong-scheme': 'https://registry.internal:5000',
      prefixed: `http://${this.host}/api/v1/namespaces/x/services/y/proxy`,
    };
    const size = sizeOf(this.uploads.get(at.id) ?? []);
    response.writeHead(status, {
      Location: prefixes[this.switches.location ?? 'relative'] + path,
      Range: `0-${Math.max(0, size - 1)}`,
      'Content-Length': 0,
    });
    response.end();
  }

  /** False when the connection was cut. */
  async #readBody(seen: SeenRequest, into: Buffer[], request: IncomingMessage): Promise<boolean> {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      const room = (this.switches.cutAfterBytes ?? Infinity) - seen.bytes;
      into.push(chunk.subarray(0, room));
      seen.bytes += Math.min(chunk.length, room);
      if (chunk.length < room) continue;
      request.socket.destroy();
      return false;
    }
    return true;
  }

  async #acceptManifest(
    repository: string,
    reference: string,
    seen: SeenRequest,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const chunks: Buffer[] = [];
    await this.#readBody(seen, chunks, request);
    const bytes = Buffer.concat(chunks);
    const document = JSON.parse(bytes.toString()) as { config: { digest: string }; layers: { digest: string }[] };
    const missing = [document.config, ...document.layers].find(({ digest }) => !this.#repository(repository).blobs.has(digest));
    if (missing) return refuse(response, 404, 'MANIFEST_BLOB_UNKNOWN');
    for (const name of [reference, digestOf(bytes)]) {
      this.#repository(repository).manifests.set(name, { bytes, mediaType: request.headers['content-type'] ?? '' });
    }
    response.writeHead(201, { 'Docker-Content-Digest': digestOf(bytes) }).end();
  }

  #tags(repository: string, url: URL, response: ServerResponse): void {
    const all = [...this.#repository(repository).manifests.keys()].filter((name) => !name.startsWith('sha256:')).sort();
    if (all.length === 0) return refuse(response, 404, 'NAME_UNKNOWN');
    const rest = all.filter((tag) => tag > (url.searchParams.get('last') ?? ''));
    const page = rest.slice(0, this.switches.tagsPerPage ?? rest.length);
    if (page.length < rest.length)
      response.setHeader('Link', `</v2/${repository}/tags/list?last=${page.at(-1)}&n=${page.length}>; rel="next"`);
    response.end(JSON.stringify({ name: repository, tags: page }));
  }
}

export function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

function sizeOf(chunks: Buffer[]): number {
  return chunks.reduce((sum, chunk) => sum + chunk.length, 0);
}

function basic(credential: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString('base64')}`;
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const body = JSON.stringify({ errors: [{ code, message: code.toLowerCase().replaceAll('_', ' ') }] });
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body);
}

/** A proxy's answer: not a registry's error document, and the connection is not reused. */
function page(response: ServerResponse, status: number): void {
  response
    .writeHead(status, { 'Content-Type': 'text/html', Connection: 'close' })
    .end(`<html><h1>${status}</h1><p>proxy says no</p></html>`);
}
