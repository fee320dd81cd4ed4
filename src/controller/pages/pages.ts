// The page for requests that no route of an app takes; the gateway sends them here.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

/** The header and value of cf; clients check for them. */
const headers = {
  'X-Cf-Routererror': 'unknown_route',
  'Content-Type': 'text/plain; charset=utf-8',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
};

/** Longer names are not valid hosts. */
const longestHost = 300;

/** cf's sentence and its meaning. Plain text, so a host name from the request is never read as HTML. */
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
  // An unread body must not keep the connection open.
  request.resume();
  const body = pageFor(request.headers.host ?? '');
  response.writeHead(404, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Answers every request in the same way and closes connections soon. */
export function createPages(): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 5_000, keepAliveTimeout: 60_000 }, answer);
}
