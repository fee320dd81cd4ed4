// The part of `ws` that kf uses (https://github.com/websockets/ws/blob/master/doc/ws.md). The package has no types of its own.

declare module 'ws' {
  import type { EventEmitter } from 'node:events';
  import type { Agent, ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
  import type { Duplex } from 'node:stream';

  interface ClientOptions {
    agent: Agent;
    headers: OutgoingHttpHeaders;
    handshakeTimeout: number;
    perMessageDeflate: boolean;
    finishRequest: (request: ClientRequest) => void;
  }

  interface Events {
    open: [];
    message: [data: Buffer, isBinary: boolean];
    pong: [];
    upgrade: [response: IncomingMessage];
    'unexpected-response': [request: ClientRequest, response: IncomingMessage];
    error: [error: Error];
    close: [code: number, reason: Buffer];
  }

  export class WebSocket extends EventEmitter<Events> {
    constructor(url: string | URL, protocols: string[], options: ClientOptions);
    readonly protocol: string;
    readonly readyState: number;
    readonly bufferedAmount: number;
    static readonly OPEN: number;
    send(data: Buffer, done: (error?: Error) => void): void;
    ping(): void;
    pause(): void;
    resume(): void;
    close(code?: number): void;
    terminate(): void;
  }

  interface ServerEvents {
    connection: [socket: WebSocket, request: IncomingMessage];
  }

  export class WebSocketServer extends EventEmitter<ServerEvents> {
    constructor(options: { noServer: true; handleProtocols?: (protocols: Set<string>) => string | false; autoPong?: boolean });
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      done: (socket: WebSocket, request: IncomingMessage) => void,
    ): void;
  }
}
