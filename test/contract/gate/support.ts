// A gate before a registry that records the requests that reach it.

import { createServer, request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import type { ConnectionLimits } from '../../../src/controller/gate/connections.ts';
import { Exchanges, type ExchangeLimits } from '../../../src/controller/gate/exchanges.ts';
import { Commits } from '../../../src/controller/gate/commits.ts';
import { Capacity, type CapacityOptions } from '../../../src/controller/gate/capacity.ts';
import { ImageStore } from '../../../src/controller/gate/store.ts';
import { Housekeeping } from '../../../src/controller/gate/housekeeping.ts';
import { leases } from '../../../src/controller/gate/leases.ts';
import { RepositoryUse } from '../../../src/controller/gate/repository-use.ts';
import { createKeeper } from '../../../src/controller/gate/keeper.ts';
import { createGate } from '../../../src/controller/gate/gate.ts';
import type { AccessLine } from '../../../src/controller/gate/gate.ts';
import type { GatePort } from '../../../src/controller/gate/scopes.ts';
import { registryPassword } from '../../../src/lib/api/registry-credentials.ts';

export const key = Buffer.from('0123456789abcdef0123456789abcdef');
export const now = 1_800_000_000;

export interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export type Upstream = (request: IncomingMessage, response: ServerResponse) => void;

export const basic = (user: string, password = registryPassword(key, user)): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

export interface Scene {
  port(port: GatePort): number;
  seen: Seen[];
  lines: AccessLine[];
  close(): Promise<void>;
}

const recorded =
  (seen: Seen[]): Upstream =>
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  };

/** Both ports in front of one upstream; `readKeys` and `upstream` can be replaced. */
export async function openGate(
  options: {
    upstream?: Upstream;
    readKeys?: () => readonly Buffer[];
    folder?: string;
    commits?: Commits;
    use?: RepositoryUse;
    capacity?: Partial<CapacityOptions>;
    connections?: Partial<ConnectionLimits>;
    exchanges?: Partial<ExchangeLimits>;
  } = {},
): Promise<Scene> {
  const seen: Seen[] = [];
  const lines: AccessLine[] = [];
  const registry = createServer(options.upstream ?? recorded(seen));
  const upstream = { host: '127.0.0.1', port: await listen(registry) };
  const readKeys = options.readKeys ?? (() => [key]);
  const folder = options.folder ?? tmpdir();
  const store = new ImageStore(folder);
  const commits = options.commits ?? new Commits();
  const capacity = new Capacity({ store, folder, reserve: 0, ...options.capacity });
  const use = options.use ?? new RepositoryUse({ settle: 0 });
  const housekeeping = new Housekeeping({ store, commits, capacity, log: () => undefined });
  const keep = createKeeper({ readKeys, store, capacity, use, housekeeping });
  const lease = leases({ store, use });
  const log = (line: AccessLine) => void lines.push(line);
  const { connections = {} } = options;
  const exchanges = new Exchanges(options.exchanges);
  const settings = { upstream, readKeys, keep, capacity, commits, lease, connections, exchanges, log, now: () => now };
  const servers = { push: createGate('push', settings), pull: createGate('pull', settings) };
  const ports = { push: await listen(servers.push), pull: await listen(servers.pull) };
  const all = [servers.push, servers.pull, registry];
  return {
    port: (port) => ports[port],
    seen,
    lines,
    close: async () => {
      for (const server of all) server.closeAllConnections();
      await Promise.all(all.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

export interface Ask {
  method?: string;
  path: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
}

/** One request whose path is sent exactly as written. */
export function ask(port: number, { method = 'GET', path, headers = {}, body }: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
