// Program: the registry's gate with both ports. Settings come from the environment (src/templates/setup/registry.ts).

import process from 'node:process';
import { Exchanges } from './exchanges.ts';
import { createGate } from './gate.ts';
import type { AccessLine } from './gate.ts';
import { createKeeper } from './keeper.ts';
import { Commits } from './commits.ts';
import { Housekeeping } from './housekeeping.ts';
import { keyReader } from './key-file.ts';
import { leases } from './leases.ts';
import { RepositoryUse } from './repository-use.ts';
import type { Upstream } from './readiness.ts';
import { Capacity } from './capacity.ts';
import { ImageStore } from './store.ts';

function port(name: string, fallback: number): number {
  const value = Number(process.env[name] ?? fallback);
  if (!Number.isInteger(value) || value < 1 || value > 65535) throw new Error(`${name} has to be a port number.`);
  return value;
}

/** A setting in bytes; left out if the variable is not set. */
function bytesFrom<K extends string>(name: string, key: K): Partial<Record<K, number>> {
  const text = process.env[name] ?? '';
  if (text === '') return {};
  if (!/^\d{1,16}$/.test(text)) throw new Error(`${name} has to be a number of bytes.`);
  return { [key]: Number(text) } as Partial<Record<K, number>>;
}

/** `unix:PATH`, or a URL. */
function upstreamFrom(text: string): Upstream {
  if (text.startsWith('unix:')) return { socketPath: text.slice('unix:'.length) };
  const { hostname, port: number } = new URL(text);
  return { host: hostname, port: Number(number) || 80 };
}

function main(): void {
  const keys = process.env.KF_GATE_KEYS ?? '/etc/kf-registry-key';
  const folder = process.env.KF_GATE_DATA ?? '/var/lib/registry';
  const upstream = upstreamFrom(process.env.KF_GATE_UPSTREAM ?? 'http://127.0.0.1:5002');
  const readKeys = keyReader(keys);
  if (readKeys().length === 0) throw new Error(`The folder ${keys} holds no key of at least 32 bytes.`);
  const log = (line: AccessLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const store = new ImageStore(folder);
  const commits = new Commits();
  const capacity = new Capacity({
    store,
    folder,
    ...bytesFrom('KF_GATE_SPACE_QUOTA', 'spaceQuota'),
    ...bytesFrom('KF_GATE_RESERVE', 'reserve'),
  });
  const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const housekeeping = new Housekeeping({ store, commits, capacity, log: print });
  const use = new RepositoryUse();
  const keep = createKeeper({ readKeys, store, capacity, use, housekeeping });
  housekeeping.start();
  const options = {
    upstream,
    readKeys,
    keep,
    capacity,
    commits,
    lease: leases({ store, use }),
    exchanges: new Exchanges(),
    log,
  };
  const servers = [
    createGate('push', options).listen(port('KF_GATE_PUSH_PORT', 5000)),
    createGate('pull', options).listen(port('KF_GATE_PULL_PORT', 5001)),
  ];
  const stop = (): void => {
    for (const server of servers) {
      server.close();
      server.closeIdleConnections();
    }
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

main();
