// Attacker: an app that answers with headers without an end, with trailers that nobody reads, or not at all, at the gateway that serves every space.

import { once } from 'node:events';
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { get } from '../../support/http.ts';
import { until } from '../../support/until.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member, type Said } from '../../support/members.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const port = Number(process.env['KF_CLUSTER_HTTP_PORT'] ?? '80');
const world = new TestWorld();
let kf: Kf;
let attacker: Member;
let space: string;
let pod: string;

/** Paths: /silent, /endless, /after-hints (endless headers after 103), anything else: ok. */
const attack = `require("http").createServer((q, r) => {
  if (q.url === "/silent") return;
  if (q.url === "/ok") return r.end("ok");
  const s = q.socket;
  s.on("error", () => {});
  if (q.url === "/after-hints") s.write("HTTP/1.1 103 Early Hints\\r\\nLink: </a>\\r\\n\\r\\n");
  const more = () => { while (!s.destroyed && s.write("X-More: " + "a".repeat(4000) + "\\r\\n")); };
  s.on("drain", more).write("HTTP/1.1 200 OK\\r\\n");
  more();
}).listen(process.env.PORT)`;

/** By HTTP/2: answers everything with 4 MB and 9 MB of trailers. Written by hand, so that it sends one block again and again from one buffer. */
const trailers = `const frame = (type, flags, id, data) => { const head = Buffer.alloc(9);
  head.writeUIntBE(data.length, 0, 3); head[3] = type; head[4] = flags; head.writeUInt32BE(id, 5); return [head, data]; };
const none = Buffer.alloc(0), body = Buffer.alloc(16000);
const field = Buffer.concat([Buffer.from([0x10, 4]), Buffer.from("x-no"), Buffer.from([0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, "a")]);
const block = Buffer.concat(Array(2300).fill(field));
const answer = (c, id) => {
  const all = [frame(1, 4, id, Buffer.from([0x88]))];
  for (let i = 0; i < 250; i++) all.push(frame(0, 0, id, body));
  for (let i = 0; i < block.length; i += 16000)
    all.push(frame(i === 0 ? 1 : 9, (i === 0 ? 1 : 0) | (i + 16000 >= block.length ? 4 : 0), id, block.subarray(i, i + 16000)));
  for (const one of all.flat()) c.write(one);
};
require("net").createServer((c) => {
  let seen = Buffer.alloc(0), first = true;
  c.on("error", () => {});
  for (const one of frame(4, 0, 0, none)) c.write(one);
  c.on("data", (more) => {
    seen = Buffer.concat([seen, more]);
    if (first && seen.length >= 24) { first = false; seen = seen.subarray(24); }
    while (!first && seen.length >= 9 && seen.length >= 9 + seen.readUIntBE(0, 3)) {
      const size = seen.readUIntBE(0, 3), type = seen[3], flags = seen[4], id = seen.readUInt32BE(5);
      const data = Buffer.from(seen.subarray(9, 9 + size));
      seen = seen.subarray(9 + size);
      if ((type === 4 || type === 6) && (flags & 1) === 0) for (const one of frame(type, 1, 0, type === 6 ? data : none)) c.write(one);
      if (type === 1) answer(c, id);
    }
  });
}).listen(process.env.PORT)`;

const shapes = `const s = require("http").createServer((q, r) => {
  const p = q.url;
  if (p === "/events") { r.writeHead(200, { "content-type": "text/event-stream" }); r.flushHeaders(); let n = 0;
    const t = setInterval(() => { r.write("data: " + n++ + "\\n\\n"); if (n === 3) { clearInterval(t); r.end(); } }, 700); return; }
  if (p === "/hints") { r.writeEarlyHints({ link: "</a.css>; rel=preload" }); return setTimeout(() => r.end("ok"), 300); }
  if (p === "/204") return r.writeHead(204).end();
  if (p === "/304") return r.writeHead(304, { etag: "x" }).end();
  if (p === "/trailers") { r.writeHead(200, { trailer: "x-sum" }); r.write("body"); r.addTrailers({ "x-sum": "7" }); return r.end(); }
  if (p === "/large") { for (let i = 0; i < 16; i++) r.setHeader("x-" + i, "a".repeat(4096)); return r.end("ok"); }
  if (p === "/size") { let n = 0; q.on("data", (d) => n += d.length); return q.on("end", () => r.end(String(n))); }
  if (p === "/echo") { r.flushHeaders(); return q.pipe(r); }
  if (p === "/wait") return setTimeout(() => r.end("ok"), 1000);
  if (p === "/bytes") return r.end(Buffer.alloc(50_000_000));
  if (p === "/late") { r.writeHead(200, { "content-length": 2 }); r.flushHeaders(); return setTimeout(() => r.end("ok"), 2000); }
  r.end("ok");
}).listen(process.env.PORT);
const ws = (k) => require("crypto").createHash("sha1").update(k + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
s.on("upgrade", (q, c) => { c.on("error", () => {}); c.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: "
  + ws(q.headers["sec-websocket-key"]) + "\\r\\n\\r\\n"); c.write(Buffer.from([0x81, 2, 104, 105])); });`;

beforeAll(async () => {
  kf = await Kf.create();
  const place = await world.space();
  ({ space } = place);
  attacker = await world.member('spaceDeveloper', place);
  await kf.ok('push', 'shapes', '-o', sample, '-m', '128M', '-c', `exec node --max-http-header-size=200000 -e '${shapes}'`);
  await attacker.kf.ok('push', 'answers', '-o', sample, '-m', '512M', '-c', `exec node -e '${attack}'`);
  const { items } = await kubectlJson<Pods>('get', 'pods', '-n', space, '-l', 'kf.cloudfoundry.org/generation');
  pod = items[0]?.metadata.name ?? '';
});
afterAll(async () => {
  await kf.run(['delete', 'shapes', '-r', '-f']);
  await Promise.all([kf.remove(), world.remove()]);
});

interface Pods {
  items: { metadata: { name: string; uid: string }; status: { containerStatuses: { restartCount: number }[] } }[];
}

async function restartsOfGateway(): Promise<unknown> {
  const { items } = await kubectlJson<Pods>('get', 'pods', '-n', 'kf-node', '-l', 'app=kf-gateway');
  return items.map(({ metadata, status }) => [metadata.uid, ...status.containerStatuses.map(({ restartCount }) => restartCount)]);
}

/** MiB that the gateway's container uses, as the kernel counts them for its limit; at most 10 s old. */
async function memoryOfGateway(): Promise<number> {
  const words = await kubectl('get', '--raw', '/api/v1/nodes/kf-node-0/proxy/metrics/resource');
  const line = words.split('\n').find((one) => one.startsWith('container_memory_working_set_bytes{container="traefik"'));
  return Math.round(Number(line?.split(' ')[1]) / 1024 ** 2);
}

/** In the app's own pod: keeps so many requests to the app open for 20 s, through the gateway, and prints the statuses of the answers. */
const flooder = `const [, path, count] = process.argv;
const http = require("node:http");
const agent = new http.Agent({ keepAlive: true });
const statuses = {};
const ask = (host) => new Promise((resolve) => {
  const q = http.request({ host, path, agent, headers: { host: "answers.apps.localhost" } }, (a) => {
    statuses[a.statusCode] = (statuses[a.statusCode] ?? 0) + 1;
    a.resume().on("close", resolve);
  });
  q.on("error", resolve).end();
});
require("node:dns").lookup("kf-gateway.kf-node.svc", async (error, host) => {
  const client = async () => { for (;;) { await ask(host); await new Promise((next) => setTimeout(next, 2000)); } };
  for (let i = 0; i < Number(count); i++) client();
});
setTimeout(() => { console.log(JSON.stringify(statuses)); process.exit(0); }, 20000);`;

/** Asks another app all the time while the attack goes on; all its answers are good. Returns what the attack printed. */
async function during(flooding: Promise<Said>, what: string): Promise<string> {
  let isOver = false;
  void flooding.finally(() => (isOver = true));
  const statuses = new Set<number>();
  const times: number[] = [];
  while (!isOver) {
    const begun = performance.now();
    statuses.add((await get('shapes.apps.localhost')).status);
    times.push(Math.round(performance.now() - begun));
    await sleep(50);
  }
  const [said, memory] = [await flooding, await memoryOfGateway()];
  times.sort((a, b) => a - b);
  const figures = `${memory} MiB; another app's median ${times[times.length >> 1]} ms, most ${times.at(-1)} ms`;
  console.log(`measured: ${what}, answered ${said.stdout.trim()}: ${figures}`);
  expect(said.code, said.stderr).toBe(0);
  expect([...statuses]).toEqual([200]);
  return said.stdout;
}

test.each([
  ['headers without an end', '/endless', 200],
  ['headers without an end after an informational answer', '/after-hints', 200],
  ['no answer', '/silent', 4_000],
])('the gateway keeps running and serves other apps while an app sends %s', async (_, path, count) => {
  const before = await restartsOfGateway();
  const flooding = attacker.kubectl(['exec', '-n', space, pod, '--', 'node', '-e', flooder, path, String(count)]);
  const said = await during(flooding, `${count} times ${path}`);
  expect(await restartsOfGateway()).toEqual(before);
  if (path === '/silent') expect((JSON.parse(said) as Record<string, number>)['503']).toBeGreaterThan(0);
  await until('the app to go on', async () => (await get('answers.apps.localhost', '/ok')).body === 'ok');
});

/** In the pod of the attacker: sends so many requests for 20 s, and reads no answer. */
const reader = `const [, host, count] = process.argv;
require("node:dns").lookup("kf-gateway.kf-node.svc", async (error, address) => {
  for (let i = 0; i < Number(count); i++) {
    const s = require("node:net").connect(80, address);
    s.on("error", () => {}).write("GET / HTTP/1.1\\r\\nHost: " + host + "\\r\\n\\r\\n");
  }
});
setTimeout(() => process.exit(0), 20000);`;

test('the gateway keeps running and serves other apps while nobody reads the trailers that an app sends by HTTP/2', async () => {
  const app = 'trailers';
  await attacker.kf.ok('push', app, '-o', sample, '-m', '512M', '-c', `exec node -e '${trailers}'`, '--no-route', '-u', 'port');
  await attacker.kf.ok('map-route', app, 'apps.localhost', '-n', app, '--app-protocol', 'http2');
  const before = await restartsOfGateway();
  await during(
    attacker.kubectl(['exec', '-n', space, pod, '--', 'node', '-e', reader, `${app}.apps.localhost`, '300']),
    '300 answers without a reader',
  );
  expect(await restartsOfGateway()).toEqual(before);
});

interface Sent extends RequestOptions {
  body?: Buffer;
}

async function ask(path: string, { body, ...options }: Sent = {}): Promise<IncomingMessage> {
  const all = { host: '127.0.0.1', port, path, agent: false, maxHeaderSize: 200_000, ...options };
  const outgoing = request({ ...all, headers: { host: 'shapes.apps.localhost', ...options.headers } });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return answer;
}

describe('an honest app', () => {
  test.each([
    ['204', {}],
    ['304', {}],
    ['200', { method: 'HEAD' }],
  ])('answers %s without a body', async (status, options) => {
    const answer = await ask(status === '200' ? '/' : `/${status}`, options);
    expect([answer.statusCode, await text(answer)]).toEqual([Number(status), '']);
  });

  test('sends each event at once', async () => {
    const answer = await ask('/events');
    const begun = performance.now();
    const times: number[] = [];
    for await (const _ of answer) times.push(performance.now() - begun);
    expect(times.length).toBe(3);
    expect((times[2] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(700);
  });

  test('sends its headers before a body of known length', async () => {
    const answer = await ask('/late');
    const begun = performance.now();
    expect(await text(answer)).toBe('ok');
    expect(performance.now() - begun).toBeGreaterThan(1_000);
  });

  test('sends informational answers, large headers and trailers', async () => {
    const outgoing = request({ host: '127.0.0.1', port, path: '/hints', agent: false, headers: { host: 'shapes.apps.localhost' } });
    const hints = once(outgoing, 'information');
    outgoing.end();
    expect((await hints)[0]).toMatchObject({ statusCode: 103 });
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(await text(answer)).toBe('ok');
    const large = await ask('/large');
    expect([large.statusCode, large.headers['x-15']?.length, await text(large)]).toEqual([200, 4096, 'ok']);
    const trailed = await ask('/trailers');
    expect([await text(trailed), trailed.trailers['x-sum']]).toEqual(['body', '7']);
  });

  test('gets a large upload, also from a client that asks whether to continue', async () => {
    const body = Buffer.alloc(20_000_000);
    expect(await text(await ask('/size', { method: 'POST', body }))).toBe(String(body.length));
    const headers = { expect: '100-continue', 'content-length': String(body.length) };
    expect(await text(await ask('/size', { method: 'POST', headers, body }))).toBe(String(body.length));
  });

  test('sends a large download', async () => {
    let length = 0;
    for await (const chunk of await ask('/bytes')) length += (chunk as Buffer).length;
    expect(length).toBe(50_000_000);
  });

  test('with one instance answers 500 slow requests at a time', async () => {
    const statuses = await Promise.all(Array.from({ length: 500 }, async () => (await ask('/wait')).resume().statusCode));
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test('streams in both directions', async () => {
    const options = { host: '127.0.0.1', port, path: '/echo', method: 'POST', agent: false, headers: { host: 'shapes.apps.localhost' } };
    const outgoing = request(options);
    outgoing.write('one');
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(String((await once(answer, 'data'))[0])).toBe('one');
    outgoing.end('two');
    expect(await text(answer)).toBe('two');
  });

  test('opens a WebSocket', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host: 'shapes.apps.localhost' } });
    expect(String((await once(socket, 'message'))[0])).toBe('hi');
    socket.terminate();
  });
});
