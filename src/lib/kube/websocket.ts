// The only module that uses `ws`, which implements WebSocket framing. Loaded only by commands that need it:
// docs/decisions/0047-websockets-with-ws.md

import type { Agent, ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { WebSocket } from 'ws';

export interface OpenOptions {
  url: URL;
  /** Accepted subprotocols, the preferred one first. */
  protocols: readonly string[];
  headers: OutgoingHttpHeaders;
  agent: Agent;
  /** How long the server may take to answer. */
  handshakeMs: number;
  /** Called with the request before it is sent. */
  prepare: (request: ClientRequest) => void;
}

/** The server accepts the upgrade, or answers with something else. */
export type Opened = { socket: WebSocket; response: IncomingMessage } | { response: IncomingMessage };

/** Requests the upgrade. @throws the error of the connection */
export function openWebSocket({ url, protocols, headers, agent, handshakeMs, prepare }: OpenOptions): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, [...protocols], {
      agent,
      headers,
      handshakeTimeout: handshakeMs,
      // Kubernetes does not support it, and logs and shells are small.
      perMessageDeflate: false,
      finishRequest: (request) => {
        prepare(request);
        request.end();
      },
    });
    let response: IncomingMessage;
    socket.on('upgrade', (answer) => (response = answer));
    socket.on('unexpected-response', (_, answer) => resolve({ response: answer }));
    socket.on('open', () => {
      // Bytes may have arrived already, and there is no listener before the promise resolves.
      socket.pause();
      resolve({ socket, response });
    });
    socket.on('error', reject);
  });
}
