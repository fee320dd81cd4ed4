// Forwards HTTP from the host to the cluster: a separate process that listens on loopback.
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { hostLink } from './addresses.ts';
import { isRunning, markOf, startDetached } from './process.ts';
import type { ProcessMark } from './process.ts';
import { clusterPaths } from './state.ts';
import type { ClusterState } from './state.ts';

const nodeHttpPort = 80;
const program = join(import.meta.dirname, 'forward.ts');

/** Starts the forwarder if it does not run. Sets its process and port in `state`: port 80 if it is free, else the previous port, else any. */
export async function ensureForwarder(state: ClusterState): Promise<void> {
  if (isRunning(state.forwarder)) return;
  for (const wanted of [80, ...(state.httpPort === undefined ? [] : [state.httpPort]), 0]) {
    const port = await freePort(wanted);
    const mark = port === undefined ? undefined : await startForwarder(state, port);
    if (port === undefined || mark === undefined) continue;
    state.forwarder = mark;
    state.httpPort = port;
    return;
  }
  throw new Error('No port on 127.0.0.1 is free for the HTTP of the cluster.');
}

/** Starts the forwarder on a port; undefined if it ended because another process took the port in between. */
async function startForwarder(state: ClusterState, port: number): Promise<ProcessMark | undefined> {
  const { clusterAddress } = hostLink(state.number);
  const log = join(clusterPaths(state.name).log, 'forwarder.log');
  rmSync(log, { force: true });
  const pid = startDetached(process.execPath, [program, state.name, String(port), clusterAddress, String(nodeHttpPort)], log);
  for (let mark = markOf(pid); mark !== undefined; mark = markOf(pid)) {
    if (readFileSync(log, 'utf8').includes('listening\n')) return mark;
    await sleep(20);
  }
  return undefined;
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
