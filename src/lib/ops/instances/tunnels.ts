// Local ports whose connections go to addresses that an instance reaches.

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { KfError, messageOf } from '../../errors.ts';
import { KubeError } from '../../kube/errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { connectFrom, type Address, type RunningInstance } from './exec.ts';

export interface TunnelSpec {
  /** Address and port to listen on. */
  local: Address;
  remote: Address;
}

export interface TunnelOptions {
  signal: AbortSignal;
  /** A connection that failed. */
  onProblem: (message: string) => void;
}

/** Kubernetes cannot be told that only our direction has ended: a connection without an answer is closed after this time. */
const halfClosedMs = 60_000;

async function listen({ host, port }: Address, server: Server): Promise<Address> {
  try {
    await once(server.listen(port, host), 'listening');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'another program uses it' : code === 'EACCES' ? 'that is not allowed' : messageOf(cause);
    throw new KfError('conflict', `kf cannot listen on port ${port} of ${host}: ${why}.`, {
      hints: ['Choose another local port: -L PORT:HOST:PORT'],
      cause,
    });
  }
  return { host, port: (server.address() as AddressInfo).port };
}

/** The node's text names sandboxes and network namespaces. */
function problemOf(error: KfError, { host, port }: Address): string {
  const isRefused = error instanceof KubeError && error.reason === 'PortForward' && /connection refused/i.test(error.message);
  return isRefused ? `The instance cannot connect to ${host}:${port}: nothing listens there (connection refused).` : error.message;
}

async function carry(
  socket: Socket,
  session: SpaceSession,
  instance: RunningInstance,
  remote: Address,
  options: TunnelOptions,
): Promise<void> {
  socket.once('end', () => socket.setTimeout(halfClosedMs, () => socket.destroy()));
  try {
    const stream = await connectFrom(session, instance, remote, options.signal);
    await pipeline(socket, stream, socket);
  } catch (error) {
    socket.destroy();
    // A client that goes away is no problem of the tunnel.
    if (error instanceof KfError && !options.signal.aborted) options.onProblem(problemOf(error, remote));
  }
}

/** Listens for each spec until the signal aborts. Returns them with the ports that they have. @throws KfError `conflict` for a port that is taken */
export async function openTunnels(
  session: SpaceSession,
  instance: RunningInstance,
  specs: readonly TunnelSpec[],
  options: TunnelOptions,
): Promise<TunnelSpec[]> {
  const open: TunnelSpec[] = [];
  for (const { local, remote } of specs) {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
      void carry(socket, session, instance, remote, options);
    });
    open.push({ local: await listen(local, server), remote });
    const end = (): void => {
      server.close();
      for (const socket of sockets) socket.destroy();
    };
    if (options.signal.aborted) end();
    else options.signal.addEventListener('abort', end, { once: true });
  }
  return open;
}
