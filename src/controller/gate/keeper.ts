// What the gate tells those who run the installation, at `/kf/status`.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GateStatus } from '../../lib/api/gate-status.ts';
import { registryKeyId } from '../../lib/api/registry-credentials.ts';
import { roomOf } from './room.ts';

export interface KeeperOptions {
  readKeys: () => readonly Buffer[];
  /** The folder in which the registry keeps its images. */
  folder: string;
}

async function statusOf({ readKeys, folder }: KeeperOptions): Promise<GateStatus> {
  return { now: Math.floor(Date.now() / 1000), keys: readKeys().map(registryKeyId), room: await roomOf(folder) };
}

function say(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Answers requests whose credential is known to be a keeper's. */
export function createKeeper(options: KeeperOptions): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    request.resume();
    const isStatus = request.method === 'GET' && request.url === '/kf/status';
    if (!isStatus) {
      say(response, 404, { errors: [{ code: 'UNSUPPORTED', message: 'not a question that the gate answers' }] });
      return;
    }
    statusOf(options).then(
      (status) => say(response, 200, status),
      (error: unknown) => say(response, 500, { errors: [{ code: 'UNKNOWN', message: String(error) }] }),
    );
  };
}
