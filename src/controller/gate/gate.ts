// The registry's gate: the only listener of the registry pod. It checks credentials and rights of each request and then streams both ways without
// holding bodies in memory.

import { Agent, createServer, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { Commits } from './commits.ts';
import { Connections, type ConnectionLimits } from './connections.ts';
import { takesMemory, type Exchange, type Exchanges } from './exchanges.ts';
import { parseTarget } from './path.ts';
import type { Lease } from './leases.ts';
import type { RegistryPath } from './path.ts';
import { readiness, type Upstream } from './readiness.ts';
import type { Capacity } from './capacity.ts';
import { authenticate, mayAccess, ownsRepository, scopeUser } from './scopes.ts';
import type { GatePort, Scope } from './scopes.ts';
import { sendUpload } from './upload.ts';
import { defined } from '../../lib/defined.ts';

/** One finished request without secrets: no headers, no query. */
export interface AccessLine {
  time: string;
  port: GatePort;
  method: string;
  path: string;
  status: number;
  milliseconds: number;
  user: string;
}

export interface GateOptions {
  upstream: Upstream;
  /** The HMAC keys that are valid now; empty while they cannot be read (then every request is refused). */
  readKeys: () => readonly Buffer[];
  /** Answers the keeper's requests below `/kf/`, at the push port only. */
  keep: (request: IncomingMessage, response: ServerResponse) => void;
  /** Decides which uploads fit, and when they may be stored. */
  capacity: Capacity;
  commits: Commits;
  /** What pushes ask for is not collected. */
  lease: Lease;
  /** The exchanges of all ports. */
  exchanges: Exchanges;
  log: (line: AccessLine) => void;
  /** Limits for the connections of a port; default if left out. */
  connections?: Partial<ConnectionLimits>;
  /** Unix seconds. */
  now?: () => number;
}

interface Refusal {
  status: number;
  code: string;
  message: string;
}

// Only headers that the registry API needs are forwarded: X-Forwarded-*, Forwarded or a method override could change how the registry reads or
// answers a request.
const requestHeaders = ['accept', 'content-length', 'content-range', 'content-type', 'if-none-match', 'range', 'user-agent'];
const responseHeaders = [
  'accept-ranges',
  'content-length',
  'content-range',
  'content-type',
  'docker-content-digest',
  'docker-distribution-api-version',
  'docker-upload-uuid',
  'etag',
  'link',
  'oci-subject',
  'range',
];
/** The gate reads this much of a refused body, so that the client sees the answer instead of a reset. */
const drainBytes = 4 * 1024 * 1024;
/** Paths below it are answered by the gate itself, and only for a keeper's credential. */
export const keeperPrefix = '/kf/';
const idleTimeoutMs = 300_000;
/** No honest client needs longer to send its headers. */
const headerTimes = { headersTimeout: 10_000, connectionsCheckingInterval: 2_000 };

const unauthorized: Refusal = { status: 401, code: 'UNAUTHORIZED', message: 'authentication required' };
const tooManyConnections: Refusal = {
  status: 429,
  code: 'TOOMANYREQUESTS',
  message: 'the space has as many connections to the registry as it may have',
};
const denied: Refusal = { status: 403, code: 'DENIED', message: 'the credential does not cover this repository or action' };
const refusals: Record<'not-found' | 'not-allowed' | 'bad-query' | 'bad-digest', Refusal> = {
  'not-found': { status: 404, code: 'UNSUPPORTED', message: 'not a path of the registry API that is offered here' },
  'not-allowed': { status: 405, code: 'UNSUPPORTED', message: 'the method is not offered here' },
  'bad-query': { status: 400, code: 'UNSUPPORTED', message: 'a query parameter is given twice' },
  'bad-digest': { status: 400, code: 'DIGEST_INVALID', message: 'a digest is written sha256: and 64 hexadecimal digits' },
};

/** The path and query of a Location header when it stays within the repository, else undefined. */
export function relativeLocation(location: string, repository: string): string | undefined {
  let url: URL;
  try {
    url = new URL(location, 'http://registry.invalid');
  } catch {
    return undefined;
  }
  return url.pathname.startsWith(`/v2/${repository}/`) ? url.pathname + url.search : undefined;
}

function pick(headers: IncomingHttpHeaders, names: string[]): OutgoingHttpHeaders {
  const picked: OutgoingHttpHeaders = {};
  for (const name of names) if (headers[name] !== undefined) picked[name] = headers[name];
  return picked;
}

function upstreamHeaders(request: IncomingMessage, path: RegistryPath): OutgoingHttpHeaders {
  const headers = pick(request.headers, requestHeaders);
  // The registry would read a form body as query parameters, which could hide a mount from a foreign repository.
  if (path.endpoint === 'upload' || path.endpoint === 'upload-start') headers['content-type'] = 'application/octet-stream';
  else if (/form/i.test(request.headers['content-type'] ?? '')) delete headers['content-type'];
  if (request.method === 'GET' || request.method === 'HEAD') {
    delete headers['content-length'];
    delete headers['content-type'];
  }
  return headers;
}

function authorize(
  port: GatePort,
  request: IncomingMessage,
  options: GateOptions,
): { scope: Scope; path?: RegistryPath } | { scope?: Scope; refusal: Refusal } {
  const given = request.headers['x-kf-authorization'] ?? request.headers.authorization;
  const now = (options.now ?? (() => Date.now() / 1000))();
  const scope = Array.isArray(given) ? undefined : authenticate(options.readKeys(), given, now);
  if (scope === undefined) return { refusal: unauthorized };
  if (scope.kind === 'keeper')
    return port === 'push' && (request.url ?? '').startsWith(keeperPrefix) ? { scope } : { scope, refusal: denied };
  const method = request.method ?? '';
  const path = parseTarget(method, request.url ?? '', (repository) => ownsRepository(scope, repository));
  if (typeof path === 'string') return { scope, refusal: refusals[path] };
  const access = { port, method, ...defined({ repository: path.repository }) };
  return mayAccess(scope, access) ? { scope, path } : { scope, refusal: denied };
}

function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
  const body = JSON.stringify({ errors: [{ code: refusal.code, message: refusal.message }] });
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(refusal.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'docker-distribution-api-version': 'registry/2.0',
    ...(refusal.status === 401 ? { 'www-authenticate': 'Basic realm="kf"' } : {}),
    ...(hasBody ? { connection: 'close' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
  if (!hasBody) return;
  let read = 0;
  request.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > drainBytes) request.destroy();
  });
}

function answer(upstream: IncomingMessage, response: ServerResponse, path: RegistryPath, exchange?: Exchange): void {
  const headers = pick(upstream.headers, responseHeaders);
  const location = upstream.headers.location;
  if (location !== undefined && path.repository !== undefined) {
    const relative = relativeLocation(location, path.repository);
    if (relative !== undefined) headers.location = relative;
  }
  response.writeHead(upstream.statusCode ?? 502, headers);
  // The next chunk comes only after the client has read enough, so each chunk shows that the client reads.
  if (exchange !== undefined) upstream.on('data', () => exchange.moved());
  pipeline(upstream, response, (error) => {
    // An incomplete body must reach the client as a cut connection, never as a complete answer.
    if (error instanceof Error) response.destroy();
  });
}

/** Forwards the registry's answer to the client. */
function bringBack(
  request: IncomingMessage,
  response: ServerResponse,
  forward: ClientRequest,
  path: RegistryPath,
  exchange?: Exchange,
): ClientRequest {
  let answered = false;
  forward.on('response', (upstream) => {
    answered = true;
    // The registry sent its whole answer before the end of the body: the rest is not sent.
    upstream.once('close', () => void (request.complete || forward.destroy()));
    if (response.headersSent) upstream.destroy();
    else answer(upstream, response, path, exchange);
  });
  forward.on('error', () => {
    // The gate has refused the request, which also ends the request to the registry with an error.
    if (response.headersSent && !answered) return;
    if (answered) response.destroy();
    else refuse(request, response, { status: 502, code: 'UNAVAILABLE', message: 'the registry behind the gate does not answer' });
  });
  // An exchange ends by its own signal instead.
  if (exchange === undefined) response.on('close', () => void (response.writableFinished || forward.destroy()));
  // The client disconnected before, so no `close` event follows.
  if (response.destroyed) forward.destroy();
  return forward;
}

/** Writes the access line of a request when its answer has ended. */
function logEnd(response: ServerResponse, log: GateOptions['log'], about: Pick<AccessLine, 'port' | 'method' | 'path' | 'user'>): void {
  const started = Date.now();
  response.on('close', () => {
    const time = new Date(started).toISOString();
    const status = response.writableFinished || response.headersSent ? response.statusCode : 499;
    log({ time, status, milliseconds: Date.now() - started, ...about });
  });
}

/** Sends an allowed request to the registry. */
function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  {
    upstream,
    agent,
    port,
    path,
    space,
    capacity,
    commits,
    lease,
    exchange,
  }: GateOptions & { agent: Agent; port: GatePort; path: RegistryPath; space: string; exchange?: Exchange },
): void {
  const headers = upstreamHeaders(request, path);
  const method = request.method ?? 'GET';
  const ended = defined({ signal: exchange?.signal });
  const open = (): ClientRequest => {
    const forward = httpRequest({ ...upstream, ...ended, agent, method, path: path.target, headers });
    return bringBack(request, response, forward, path, exchange);
  };
  if (method === 'GET' || method === 'HEAD') {
    if (port === 'push' && path.repository !== undefined) void sendRead(lease, path, open);
    else open().end();
    return;
  }
  const rules = { capacity, commits, lease, path, space, onPiece: () => exchange?.moved() };
  const sent = sendUpload(request, rules, { open, refuse: (refusal) => void (response.headersSent || refuse(request, response, refusal)) });
  sent.catch(() => response.destroy());
}

/** Sends a read of a push. */
async function sendRead(lease: Lease, path: RegistryPath, open: () => ClientRequest): Promise<void> {
  const leave = await lease(path);
  const left = (): void => leave(true);
  open().once('response', left).once('close', left).end();
}

/** Creates the server of one port of the gate; the caller calls `listen` and `close`. */
export function createGate(port: GatePort, options: GateOptions): Server {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 16 });
  const connections = new Connections(options.connections);
  const sayReady = readiness(options);
  const handle = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    if (!connections.ask(request.socket, response)) return;
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    if (path === '/healthz') {
      response.writeHead(200, { 'content-type': 'text/plain' }).end('ok');
      return;
    }
    if (path === '/readyz') {
      sayReady(response);
      return;
    }
    const decision = authorize(port, request, options);
    const { scope: known } = decision;
    logEnd(response, options.log, { port, method: request.method ?? '', path, user: known === undefined ? '-' : scopeUser(known) });
    if (known !== undefined && !connections.know(request.socket, known.kind === 'keeper' ? undefined : known.space)) {
      response.setHeader('connection', 'close');
      refuse(request, response, tooManyConnections);
      return;
    }
    if ('refusal' in decision) {
      refuse(request, response, decision.refusal);
      return;
    }
    if (decision.path === undefined || decision.scope.kind === 'keeper') {
      if (expectsContinue) response.writeContinue();
      options.keep(request, response);
      return;
    }
    const { path: target } = decision;
    const { space } = decision.scope;
    const begin = (exchange?: Exchange): void => {
      if (expectsContinue) response.writeContinue();
      passOn(request, response, { ...options, agent, port, path: target, space, ...defined({ exchange }) });
    };
    if (takesMemory(request.method ?? '', target)) options.exchanges.begin(space, request, response, begin);
    else begin();
  };
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 75_000, ...headerTimes }, (request, response) =>
    handle(request, response, false),
  );
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => handle(request, response, true));
  server.on('connection', (socket) => connections.open(socket));
  server.setTimeout(idleTimeoutMs);
  server.on('close', () => agent.destroy());
  return server;
}
