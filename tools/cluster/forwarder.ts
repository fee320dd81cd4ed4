// Forwards HTTP and HTTPS from the host to the cluster: a separate process that listens on loopback.
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { hostLink } from './addresses.ts';
import { endProcess, isRunning, markOf, startDetached } from './process.ts';
import type { ProcessMark } from './process.ts';
import { clusterPaths } from './state.ts';
import type { ClusterState } from './state.ts';

const nodePorts = { http: 80, https: 443 } as const;
const program = join(import.meta.dirname, 'forward.ts');
const graceMs = 1_000;
/** Another process may take a port after it was found free. */
const attempts = 3;

/** Starts the forwarder if it does not run. Sets its process and ports in `state`: 80 and 443 if they are free, else the previous ports, else any. */
export async function ensureForwarder(state: ClusterState): Promise<void> {
  // The forwarder of an earlier version knows no https.
  if (isRunning(state.forwarder) && state.httpsPort !== undefined) return;
  await endProcess(state.forwarder, graceMs);
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const isFirst = attempt === 0;
    const http = await firstFree(isFirst ? [nodePorts.http, state.httpPort] : []);
    const https = await firstFree(isFirst ? [nodePorts.https, state.httpsPort] : []);
    const mark = await startForwarder(state, [`${http}=${nodePorts.http}`, `${https}=${nodePorts.https}`]);
    if (mark === undefined) continue;
    state.forwarder = mark;
    state.httpPort = http;
    state.httpsPort = https;
    return;
  }
  throw new Error('No ports on 127.0.0.1 are free for the HTTP of the cluster.');
}

/** Starts the forwarder; undefined if it ended because another process took a port in between. */
async function startForwarder(state: ClusterState, pairs: string[]): Promise<ProcessMark | undefined> {
  const { clusterAddress } = hostLink(state.number);
  const log = join(clusterPaths(state.name).log, 'forwarder.log');
  rmSync(log, { force: true });
  const pid = startDetached(process.execPath, [program, state.name, clusterAddress, ...pairs], log);
  for (let mark = markOf(pid); mark !== undefined; mark = markOf(pid)) {
    if (readFileSync(log, 'utf8').includes('listening\n')) return mark;
    await sleep(20);
  }
  return undefined;
}

/** The first of these ports that is free on 127.0.0.1, else any free one. */
async function firstFree(wanted: (number | undefined)[]): Promise<number> {
  for (const port of wanted) if (port !== undefined && (await freePort(port)) !== undefined) return port;
  const any = await freePort(0);
  if (any === undefined) throw new Error('No port on 127.0.0.1 is free for the HTTP of the cluster.');
  return any;
}

/** The port if it is free on 127.0.0.1 (0: some free port), else undefined. */
function freePort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on('error', () => {
      resolve(undefined);
    });
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      const bound = typeof address === 'object' && address ? address.port : undefined;
      server.close(() => {
        resolve(bound);
      });
    });
  });
}
