// The sample app: answers on $PORT with its environment, prints each request, ends in order on SIGTERM.
const { createHash } = require('node:crypto');
const { readdirSync, readFileSync, statSync } = require('node:fs');
const http = require('node:http');
const { hostname } = require('node:os');
const { join } = require('node:path');

const version = process.env.SAMPLE_VERSION ?? '0';
const instance = process.env.CF_INSTANCE_INDEX ?? '0';
const port = Number(process.env.PORT ?? 8080);

function bindings() {
  const root = process.env.SERVICE_BINDING_ROOT;
  const found = {};
  for (const name of root ? readdirSync(root) : []) {
    found[name] = {};
    for (const key of readdirSync(join(root, name))) {
      const file = join(root, name, key);
      if (!key.startsWith('..') && statSync(file).isFile()) found[name][key] = readFileSync(file, 'utf8');
    }
  }
  return found;
}

const answers = {
  '/': () => `kf sample ${version}, instance ${instance}\n`,
  '/env': () => process.env,
  '/instance': () => ({ index: Number(instance), version, host: hostname(), pid: process.pid, uid: process.getuid() }),
  '/bindings': bindings,
  '/headers': (request) => request.headers,
  '/health': () => 'ok\n',
};

/** What tests ask for: an end with a code, a late answer, a line in the log, an answer that says "error". */
const actions = {
  '/exit': (query) => {
    console.error(`asked to end with ${query.get('code') ?? 1}`);
    setTimeout(() => process.exit(Number(query.get('code') ?? 1)), 50);
    return 'ending\n';
  },
  '/slow': async (query) => {
    await new Promise((resolve) => setTimeout(resolve, Number(query.get('ms') ?? 1000)));
    return 'late\n';
  },
  '/log': (query) => {
    const stream = query.get('stream') === 'stderr' ? process.stderr : process.stdout;
    stream.write(`${query.get('line') ?? 'a line'}\n`);
    return 'logged\n';
  },
};

const server = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://app');
  const action = actions[pathname];
  const answer = action ? await action(searchParams) : answers[pathname]?.(request);
  const status = answer === undefined ? 404 : Number(searchParams.get('status') ?? 200);
  const body = answer === undefined ? 'not found\n' : typeof answer === 'string' ? answer : `${JSON.stringify(answer, undefined, 2)}\n`;
  response.writeHead(status, {
    'content-type': typeof answer === 'object' ? 'application/json' : 'text/plain; charset=utf-8',
    'x-sample-version': version,
    'x-instance': instance,
  });
  response.end(body);
  console.log(`${request.method} ${request.url} ${status}`);
});

/** The shortest WebSocket server (RFC 6455): it says how the request came, and returns each short text. */
server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const say = (bytes) => socket.write(Buffer.concat([Buffer.from([0x81, bytes.length]), bytes]));
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  say(Buffer.from(`by ${request.headers['x-forwarded-proto']}`));
  socket.on('error', () => socket.destroy());
  socket.on('data', (frame) => {
    if ((frame[0] & 0x0f) !== 1) return socket.end(Buffer.from([0x88, 0]));
    const mask = frame.subarray(2, 6);
    say(frame.subarray(6, 6 + (frame[1] & 0x7f)).map((byte, at) => byte ^ mask[at % 4]));
  });
});

server.listen(port, () => console.log(`sample ${version}, instance ${instance}, listening on port ${port}`));
process.on('SIGTERM', () => {
  console.log('SIGTERM: no new requests');
  server.close(() => process.exit(0));
});
