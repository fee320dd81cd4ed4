// Time limits for opening a connection, and keep-alive.

import type { ClientRequest } from 'node:http';
import { abortError } from '../wait.ts';

export const keepAliveProbeMs = 30_000;

export function codeError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Aborts a request whose connection does not open in time. Returns a function that stops the timer. */
export function limitConnecting(req: ClientRequest, connectTimeoutMs: number): () => void {
  const connecting = setTimeout(
    () => req.destroy(codeError('ETIMEDOUT', `no connection within ${String(connectTimeoutMs)} ms`)),
    connectTimeoutMs,
  );
  const connected = (): void => clearTimeout(connecting);
  req.on('socket', (socket) => {
    // A kept-alive socket serves many requests, and each would leave a listener behind that never fires.
    if (socket.connecting) socket.once('connect', connected);
    else connected();
    socket.setKeepAlive(true, keepAliveProbeMs);
  });
  return connected;
}

/** The limits of a request for an upgrade; the resulting connection has its own. */
export function limitOpening(req: ClientRequest, connectTimeoutMs: number, signal: AbortSignal | undefined): void {
  const connected = limitConnecting(req, connectTimeoutMs);
  const onAbort = (): void => void (signal !== undefined && req.destroy(abortError(signal)));
  signal?.addEventListener('abort', onAbort, { once: true });
  const ended = (): void => {
    connected();
    signal?.removeEventListener('abort', onAbort);
  };
  req.once('upgrade', ended);
  req.once('close', ended);
}
