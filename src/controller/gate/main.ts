// Program: the registry's gate with both doors. Settings come from the environment (src/templates/setup/registry.ts).

import process from 'node:process';
import { createGate } from './gate.ts';
import type { AccessLine } from './gate.ts';
import { createKeeper } from './keeper.ts';
import { keyReader } from './key-file.ts';

function port(name: string, fallback: number): number {
  const value = Number(process.env[name] ?? fallback);
  if (!Number.isInteger(value) || value < 1 || value > 65535) throw new Error(`${name} has to be a port number.`);
  return value;
}

function main(): void {
  const keys = process.env.KF_GATE_KEYS ?? '/etc/kf-registry-key';
  const folder = process.env.KF_GATE_DATA ?? '/var/lib/registry';
  const upstream = new URL(process.env.KF_GATE_UPSTREAM ?? 'http://127.0.0.1:5002');
  const readKeys = keyReader(keys);
  if (readKeys().length === 0) throw new Error(`The folder ${keys} holds no key of at least 32 bytes.`);
  const log = (line: AccessLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const options = {
    upstream: { host: upstream.hostname, port: Number(upstream.port) || 80 },
    readKeys,
    keep: createKeeper({ readKeys, folder }),
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
