// The page of a URL that leads nowhere: what the gateway shows where no route of an app takes a request.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

/** cf's header and value, which its clients look for. */
const headers = {
  'X-Cf-Routererror': 'unknown_route',
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
};

/** Longer names are no hosts. */
const longestHost = 300;

/** cf's sentence, and what it means. Plain text: what a stranger sends as a host name stays text. */
function pageFor(host: string): string {
  const shown = host.slice(0, longestHost).replaceAll(/[^\w.:[\]*-]/g, '?');
  return [
    `404 Not Found: Requested route ('${shown}') does not exist.`,
    '',
    'No app answers at this URL: there is no such route, it leads to no app, or its app is stopped.',
    'This is the answer of kf, not of an app. `kf routes` shows the routes of a space, `kf apps` what runs there.',
    '',
  ].join('\n');
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  // A body that nobody reads must not keep the connection.
  request.resume();
  const body = pageFor(request.headers.host ?? '');
  response.writeHead(404, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Answers everything alike, and holds no connection for long. */
export function createPages(): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 5_000, keepAliveTimeout: 60_000 }, answer);
}
