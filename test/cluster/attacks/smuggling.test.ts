// Attacker: a client that hides a request in another one, or names two hosts; and an app whose answers are not answers. The gateway serves every space.

import { connect as connectSecurely, type ClientHttp2Session } from 'node:http2';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get, securePort } from '../../support/http.ts';
import { Kf, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const port = Number(process.env['KF_CLUSTER_HTTP_PORT'] ?? '80');
const [bank, evil] = ['bank.apps.localhost', 'evil.apps.localhost'];
const world = new TestWorld();
let kf: Kf;
let attacker: Member;

/** Answers with what it got. `/seen`: the paths of all requests. */
const echo = `const seen = []; const s = require("http").createServer((q, r) => { seen.push(q.url); let body = "";
  q.on("data", (d) => body += d).on("end", () => r.end(JSON.stringify({ app: "bank", url: q.url, headers: q.headers, body, ...(q.url === "/seen" ? { seen } : {}) })));
}); s.keepAliveTimeout = 600000; s.listen(process.env.PORT)`;

/** Answers with the bytes that the path has (base64url), \`/close/…\` also with the end of the connection. Else it answers with its name. */
const raw = String.raw`require("net").createServer((c) => { let all = "";
  c.on("error", () => {}).on("data", (d) => { all += d.toString("latin1");
    for (let end; (end = all.indexOf("\r\n\r\n")) >= 0; all = all.slice(end + 4)) {
      const given = /^\w+ \/(raw|close)\/([-\w]*)/.exec(all);
      c.write(given ? Buffer.from(given[2], "base64url") : "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"app\":\"evil\"}");
      if (given && given[1] === "close") c.end();
    } }); }).listen(process.env.PORT)`;

beforeAll(async () => {
  kf = await Kf.create();
  const place = await world.space();
  attacker = await world.member('spaceDeveloper', place);
  await Promise.all([
    kf.ok('push', 'bank', '-o', sample, '-m', '128M', '-c', `exec node -e '${echo}'`),
    attacker.kf.ok('push', 'evil', '-o', sample, '-m', '128M', '-c', `exec node -e '${raw}'`),
  ]);
});
afterAll(async () => {
  await kf.run(['delete', 'bank', '-r', '-f']);
  await Promise.all([kf.remove(), world.remove()]);
});

interface Echo {
  app: string;
  url?: string;
  headers?: Record<string, string>;
  seen?: string[];
}

/** Sends bytes on a connection of its own; returns all that comes until the gateway ends it. */
async function send(bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined).write(Buffer.from(bytes, 'latin1'));
  let all = '';
  socket.on('data', (data: Buffer) => (all += data.toString('latin1')));
  await once(socket, 'close');
  return all;
}

const statusesOf = (answers: string): number[] => [...answers.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, status]) => Number(status));

/** What a server that ends the first request too early takes as the next one. */
const hidden = `GET /hidden HTTP/1.1\r\nHost: ${bank}\r\nContent-Length: 5\r\n\r\n`;
const head = (...lines: string[]): string => [`POST /cover HTTP/1.1`, `Host: ${bank}`, 'Connection: close', ...lines, '', ''].join('\r\n');

const encodings = [
  'chunked',
  '\tchunked',
  'CHUNKED',
  'xchunked',
  '\u000bchunked',
  '\rchunked',
  '\r\n chunked',
  'identity, chunked',
  'chunked, identity',
  'gzip, chunked',
  '"chunked"',
  'chunked;q=1',
  'chunked\0',
  'chunked\r\nTransfer-Encoding: x',
];
const lengths = ['+0', '-1', '0x0', `0, ${hidden.length}`, `0\r\nContent-Length: ${hidden.length}`, '0 0', '', '18446744073709551616'];
const chunks = [
  '1;a\nb=c\r\nA\r\n0\r\n\r\n',
  '1\nA\r\n0\r\n\r\n',
  '1\r\nAXX\r\n0\r\n\r\n',
  '0x1\r\nA\r\n0\r\n\r\n',
  '10000000000000001\r\nA\r\n0\r\n\r\n',
  '-1\r\n\r\n',
  `1\r\nA\r\n0\r\nHost: ${evil}\r\nContent-Length: 3\r\n\r\n`,
];

test('a request that is hidden in another one reaches no app, however its length is written', async () => {
  const covers = [
    ...encodings.map((value) => head('Content-Length: 4', `Transfer-Encoding: ${value}`) + `0\r\n\r\n${hidden}`),
    ...[
      'Transfer-Encoding : chunked',
      ' Transfer-Encoding: chunked',
      'Transfer-Encoding\r\n: chunked',
      'X: y\nTransfer-Encoding: chunked',
    ].map((line) => head('Content-Length: 4', line) + `0\r\n\r\n${hidden}`),
    head('Content-Length: 5', 'Transfer_Encoding: chunked') + `0\r\n\r\n${hidden}`,
    ...lengths.map((value) => head(`Content-Length: ${value}`) + hidden),
    head('Content_Length: 0') + hidden,
    ...chunks.map((body) => head('Transfer-Encoding: chunked') + body + hidden),
    head('Connection: Content-Length, Host', `Content-Length: ${hidden.length}`) + hidden,
    head('Expect: 100-continue', 'Content-Length: 5') + hidden,
    head('Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 777') + hidden,
    head('Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__') + hidden,
    `POST /cover HTTP/1.0\r\nHost: ${bank}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `GET /cover HTTP/1.1\r\nHost: ${bank}\r\nConnection: close\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    `CONNECT ${bank}:80 HTTP/1.1\r\nHost: ${bank}\r\nConnection: close\r\n\r\n${hidden}`,
  ];
  const answers = await Promise.all(covers.map(send));
  // At most one answer each, apart from 100.
  expect(answers.map((answer) => statusesOf(answer).filter((status) => status >= 200).length).filter((count) => count > 1)).toEqual([]);
  const { seen } = JSON.parse((await get(bank, '/seen')).body) as Echo;
  expect(seen).toContain('/cover');
  expect(new Set(seen?.filter((path) => path !== '/cover'))).toEqual(new Set(['/seen', '/']));
});

test.each([
  ['two hosts', `GET / HTTP/1.1\r\nHost: ${bank}\r\nHost: ${evil}\r\n`, 400],
  ['no host', 'GET / HTTP/1.1\r\n', 400],
  ['a folded host', `GET / HTTP/1.1\r\nX: y\r\n Host: ${evil}\r\nHost: ${bank}\r\n`, 'bank'],
  ['a host in the target', `GET http://${bank}/ HTTP/1.1\r\nHost: ${evil}\r\n`, 'bank'],
  ['another host in the target', `GET http://${bank}@${evil}/ HTTP/1.1\r\nHost: ${bank}\r\n`, 'evil'],
  ['a target that looks like a host', `GET //${evil}/ HTTP/1.1\r\nHost: ${bank}\r\n`, 'bank'],
  ['a list of hosts', `GET / HTTP/1.1\r\nHost: ${evil},${bank}\r\n`, 404],
  ['a host with another one before it', `GET / HTTP/1.1\r\nHost: ${evil}@${bank}\r\n`, 400],
  ['a host with a path', `GET / HTTP/1.1\r\nHost: ${evil}/${bank}\r\n`, 400],
  ['a host with a port', `GET / HTTP/1.1\r\nHost: ${bank}:99\r\n`, 'bank'],
  ['a host with a dot at its end', `GET / HTTP/1.1\r\nHost: ${bank}.\r\n`, 'bank'],
  ['a host in capitals', `GET / HTTP/1.1\r\nHost: ${bank.toUpperCase()}\r\n`, 'bank'],
  ['HTTP/1.0', `GET / HTTP/1.0\r\nHost: ${bank}\r\n`, 'bank'],
])('a request with %s has one meaning', async (_, lines, expected) => {
  const answer = await send(`${lines}X-Forwarded-Host: ${evil}\r\nConnection: close\r\n\r\n`);
  const [, app] = /"app":"(\w+)"/.exec(answer) ?? [];
  expect([statusesOf(answer), app]).toEqual(typeof expected === 'number' ? [[expected], undefined] : [[200], expected]);
});

test('the host of the request counts, not the name of the TLS connection', async () => {
  const session = connectSecurely(`https://127.0.0.1:${securePort()}`, { rejectUnauthorized: false, servername: evil });
  const answer = await text(session.request({ ':authority': bank, ':path': '/' }));
  session.destroy();
  expect(JSON.parse(answer)).toMatchObject({ app: 'bank' });
});

test('headers that tell where a request comes from cannot be forged, whatever character they are written with', async () => {
  const names = [
    'X-Forwarded-For',
    'X_Forwarded_For',
    'X-Forwarded_Proto',
    'X_Forwarded_Host',
    'X_Real_Ip',
    'X_Vcap_Request_Id',
    'X-Vcap-Request-Id',
  ];
  const all = [...names, 'Forwarded', 'X-Forwarded-Client-Cert', 'X_FORWARDED_CLIENT_CERT', 'X-Forwarded-Tls-Client-Cert'];
  const dropping = 'Connection: close, X-Forwarded-For, x-forwarded-proto, X-Real-Ip, X-Vcap-Request-Id, X-Request-Id';
  const lines = all.map((name) => `${name}: forged\r\n`).join('');
  const answer = await send(`GET /headers HTTP/1.1\r\nHost: ${bank}\r\nMy_Own: kept\r\n${lines}${dropping}\r\n\r\n`);
  const { headers } = JSON.parse(/\{.*\}/.exec(answer)?.[0] ?? '{}') as Echo;
  expect(JSON.stringify(headers)).not.toContain('forged');
  expect(headers).toMatchObject({ my_own: 'kept', 'x-forwarded-proto': 'http', 'x-forwarded-host': bank });
  expect(headers).toHaveProperty('x-forwarded-for');
  expect(headers).toHaveProperty('x-vcap-request-id');
});

const ok = (body: string, ...lines: string[]): string =>
  ['HTTP/1.1 200 OK', ...lines, `Content-Length: ${body.length}`, '', body].join('\r\n');
const poison = ok('poison');

/** What the attacker's app answers with. */
const answers: Record<string, string> = {
  'two answers': ok('one') + poison,
  'fifty answers': ok('one') + poison.repeat(50),
  'a length that is too short': `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none${poison}`,
  'a length and chunks': `HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${poison}`,
  'two lengths': `HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 90\r\n\r\none${poison}`,
  'an unknown encoding': `HTTP/1.1 200 OK\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n${poison}`,
  'a chunk of a negative size': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${poison}`,
  'trailers that are headers': `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n0\r\nContent-Length: 90\r\nX-A: b\r\n\r\n${poison}`,
  'a carriage return in a header': `HTTP/1.1 200 OK\r\nX-A: a\rContent-Length: 0\r\nContent-Length: 3\r\n\r\none${poison}`,
  'a folded header': `HTTP/1.1 200 OK\r\nX-A: a\r\n HTTP/1.1 200 OK\r\n\tContent-Length: 0\r\nContent-Length: 3\r\n\r\none${poison}`,
  'a NUL in a header': `HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 3\r\n\r\none${poison}`,
  'a pseudo header': ok('one', ':status: 500') + poison,
  '204 with a body': `HTTP/1.1 204 No\r\nContent-Length: 60\r\n\r\n${poison}`,
  '304 with a body': `HTTP/1.1 304 No\r\nContent-Length: 60\r\n\r\n${poison}`,
  'informational answers': 'HTTP/1.1 103 Hints\r\nContent-Length: 5\r\n\r\n'.repeat(10) + poison,
  'a switch of protocols that nobody asked for': `HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${poison}`,
  'the status 000': `HTTP/1.1 000 x\r\nContent-Length: 3\r\n\r\none${poison}`,
  'the status 1000': `HTTP/1.1 1000 x\r\nContent-Length: 3\r\n\r\none${poison}`,
  'no HTTP': 'poison\r\n\r\n',
  'HTTP/2 without a request for it': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'the end of all connections': ok('one', 'Connection: close, Keep-Alive', 'Proxy-Connection: close', 'Keep-Alive: timeout=0') + poison,
};

describe('an app that answers with', () => {
  // One connection each for all requests, as a client has it that uses both apps.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let session: ClientHttp2Session;
  beforeAll(() => {
    session = connectSecurely(`https://127.0.0.1:${securePort()}`, { rejectUnauthorized: false });
    session.on('error', () => undefined);
  });
  afterAll(() => {
    agent.destroy();
    session.destroy();
  });

  async function plain(host: string, path: string): Promise<string> {
    const outgoing = request({ host: '127.0.0.1', port, path, agent, headers: { host } });
    // Also after the answer has begun: its trailers may not be valid.
    outgoing.on('error', () => undefined).end();
    const [answer] = (await once(outgoing, 'response')) as [NodeJS.ReadableStream];
    return text(answer);
  }

  async function secure(host: string, path: string): Promise<string> {
    return text(session.request({ ':authority': host, ':path': path }));
  }

  test('a status that is none gets 502 from the gateway', async () => {
    const path = `/raw/${Buffer.from(answers['the status 000'] ?? '').toString('base64url')}`;
    expect((await get(evil, path)).status).toBe(502);
  });

  test.each(Object.entries(answers))('%s reaches no other client and no other request', async (_, bytes) => {
    for (const end of ['raw', 'close'])
      for (const [index, ask] of [plain, secure].entries()) {
        const path = `/${end}/${Buffer.from(bytes, 'latin1').toString('base64url')}`;
        await ask(evil, path).catch(() => '');
        expect(JSON.parse(await ask(bank, `/after-${index}`))).toMatchObject({ app: 'bank', url: `/after-${index}` });
        expect(JSON.parse(await ask(evil, '/'))).toEqual({ app: 'evil' });
      }
    expect(session.closed).toBe(false);
  });
});
