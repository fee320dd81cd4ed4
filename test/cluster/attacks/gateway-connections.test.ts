// Attacker: a pod that opens connections to the gateway by HTTP/2 and makes the gateway keep as much for them as it can. The gateway serves every space.

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { podOfSpace, startsOfGateway } from '../../support/gateway.ts';
import { plainPort } from '../../support/http.ts';
import { Kf, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const world = new TestWorld();
let kf: Kf;
let attacker: Member;
let space: string;
let pod: string;

/** Reads nothing of what clients send. */
const mute = `const all = []; require("net").createServer({ pauseOnConnect: true }, (c) => { c.on("error", () => {}); all.push(c); }).listen(process.env.PORT)`;

/** Answers when it has the whole request. */
const patient = `require("http").createServer((q, s) => q.resume().on("end", () => s.end("all of it"))).listen(process.env.PORT)`;

/**
 * In the attacker's pod: opens connections to the gateway, each with what the mode says, and prints how many were opened, and how many were open at the
 * end: 5 s after the last one was opened, or when the gateway has ended all of them. Written by hand, since clients keep the rules.
 */
const program = String.raw`const [, mode, host, count, scheme] = process.argv;
const net = require("node:net");
const tls = require("node:tls");
const frame = (type, flags, id, data, length = data.length) => { const head = Buffer.alloc(9);
  head.writeUIntBE(length, 0, 3); head[3] = type; head[4] = flags; head.writeUInt32BE(id, 5); return Buffer.concat([head, data]); };
const field = (name, value) => Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
const fields = (method) => Buffer.concat([field(":method", method), field(":scheme", scheme), field(":path", "/"), field(":authority", host)]);
const none = Buffer.alloc(0);
const begin = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, none)]);
const data = frame(0, 0, 1, Buffer.alloc(16000));
const cancel = Buffer.from([0, 0, 0, 8]);
const large = Buffer.concat([begin, frame(0, 0, 1, Buffer.alloc(1000000), 1048576)]);
const modes = {
  // Begins a frame of 1 MB, and sends all of it but a little.
  frames: (s) => s.write(large),
  // Sends 1 MB to an app that does not read it.
  uploads: (s) => { s.write(Buffer.concat([begin, frame(1, 4, 1, fields("POST"))]));
    const more = (left) => { if (left > 0 && !s.destroyed) s.write(data, () => more(left - 1)); }; more(62); },
  // Begins a request whose headers do not end.
  headers: (s) => s.write(Buffer.concat([begin, frame(1, 0, 1, field("x-a", "a".repeat(100)))])),
  // Begins requests and cancels them at once.
  cancels: (s) => { s.write(begin); let id = 1;
    const more = () => { if (s.destroyed) return; const all = [];
      for (let i = 0; i < 50; i++, id += 2) all.push(frame(1, 5, id, fields("GET")), frame(3, 0, id, cancel));
      s.write(Buffer.concat(all), () => setImmediate(more)); }; more(); },
  // Sends a byte of an upload every 2 s.
  slow: (s) => { s.write("POST / HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 1000000\r\n\r\n");
    const timer = setInterval(() => s.write("a"), 2000); s.on("close", () => clearInterval(timer)); },
};
let [opened, open] = [0, 0];
require("node:dns").lookup("kf-gateway.kf-node.svc", async (error, address) => {
  const connect = () => new Promise((resolve) => {
    const start = () => { opened++; open++; modes[mode](s); resolve(); s.setTimeout(0).on("close", () => open--); };
    const options = { host: address, timeout: 5000, servername: host, ALPNProtocols: ["h2"], rejectUnauthorized: false };
    const s = scheme === "https" ? tls.connect({ ...options, port: 443 }, start) : net.connect({ host: address, port: 80, timeout: 5000 }, start);
    s.on("error", resolve).on("timeout", resolve).on("close", resolve).resume();
  });
  for (let i = 0; i < Number(count); i += 4) await Promise.all(Array.from({ length: 4 }, connect));
  const end = () => { console.log(JSON.stringify({ opened, open })); process.exit(0); };
  if (["uploads", "headers", "slow"].includes(mode)) return setTimeout(end, 5000);
  setInterval(() => { if (open === 0) end(); }, 100);
});`;

beforeAll(async () => {
  kf = await Kf.create();
  const place = await world.space();
  ({ space } = place);
  attacker = await world.member('spaceDeveloper', place);
  await kf.ok('push', 'other', '-o', sample, '-m', '64M');
  await kf.ok('push', 'patient', '-o', sample, '-m', '128M', '-c', `exec node -e '${patient}'`);
  await attacker.kf.ok('push', 'mute', '-o', sample, '-m', '512M', '-u', 'process', '-c', `exec node -e '${mute}'`, '--no-route');
  await attacker.kf.ok('map-route', 'mute', 'apps.localhost', '-n', 'mute');
  pod = await podOfSpace(space);
});
afterAll(async () => {
  for (const app of ['other', 'patient']) await kf.run(['delete', app, '-r', '-f']);
  await Promise.all([kf.remove(), world.remove()]);
});

interface Connections {
  opened: number;
  open: number;
}

interface Answered {
  /** The status, or why there is no answer. */
  said: unknown;
  /** By the connection of an earlier request. */
  reused: boolean;
}

/** Asks an app by http. While the gateway is attacked, an answer may take long. */
function ask(app: string, agent?: Agent): Promise<Answered> {
  return new Promise((resolve) => {
    const options = {
      host: '127.0.0.1',
      port: plainPort(),
      agent: agent ?? false,
      headers: { host: `${app}.apps.localhost` },
      timeout: 60_000,
    };
    const outgoing = request(options, (answer) => {
      answer.resume().on('close', () => resolve({ said: answer.statusCode, reused: outgoing.reusedSocket }));
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer from ${app}`)));
    outgoing.on('error', (error) => resolve({ said: String(error), reused: outgoing.reusedSocket })).end();
  });
}

/** Runs the attack, and asks another app all the time: every answer is good, and the gateway is not restarted. */
async function attack(mode: string, count: number, { host = 'mute', other = 'other', scheme = 'http' } = {}): Promise<Connections> {
  const before = await startsOfGateway();
  const attacking = attacker.kubectl([
    'exec',
    '-n',
    space,
    pod,
    '--',
    'node',
    '-e',
    program,
    mode,
    `${host}.apps.localhost`,
    String(count),
    scheme,
  ]);
  let isOver = false;
  void attacking.finally(() => (isOver = true));
  const answers = new Map<unknown, number>();
  while (!isOver) {
    const { said: answer } = await ask(other);
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
    await sleep(50);
  }
  const said = await attacking;
  console.log(`measured: ${mode} ${said.stdout.trim()}; another app ${JSON.stringify([...answers])}`);
  expect(await startsOfGateway()).toEqual(before);
  expect(said.code, said.stderr).toBe(0);
  expect([...answers.keys()]).toEqual([200]);
  return JSON.parse(said.stdout) as Connections;
}

test('the gateway keeps running and serves other apps while clients announce frames of 1 MB', async () => {
  expect(await attack('frames', 1_500)).toMatchObject({ open: 0 });
});

test('the gateway keeps running and serves other apps while clients upload to an app that does not read', async () => {
  expect((await attack('uploads', 1_000)).opened).toBe(1_000);
});

test('the gateway gives one address a part of its connections only, and others can connect', async () => {
  const { opened, open } = await attack('headers', 6_000);
  expect(opened).toBeGreaterThan(5_000);
  expect(open).toBeLessThanOrEqual(4_096);
});

test('the gateway ends connections that only begin and cancel requests, and serves other apps', async () => {
  expect(await attack('cancels', 4)).toMatchObject({ open: 0 });
});

interface Visitor {
  agent: Agent;
  answers: Answered[];
}

test.each(['http', 'https'])(
  'the gateway survives 600 connections of one address that cancel requests by %s, and keeps those of other clients after it',
  async (scheme) => {
    await attack('cancels', 600, { scheme });
    // Each has a connection of its own, which stays open.
    const visitors: Visitor[] = Array.from({ length: 600 }, () => ({ agent: new Agent({ keepAlive: true, maxSockets: 1 }), answers: [] }));
    const visit = async ({ agent, answers }: Visitor): Promise<unknown> => answers.push(await ask('other', agent));
    await Promise.all(visitors.map(visit));
    // In this time the guard would take them for the cause of short memory.
    await sleep(3_000);
    await Promise.all(visitors.map(visit));
    for (const { agent } of visitors) agent.destroy();
    expect(new Set(visitors.flatMap(({ answers }) => answers.map(({ said }) => said)))).toEqual(new Set([200]));
    expect(new Set(visitors.map(({ answers }) => String(answers.map(({ reused }) => reused))))).toEqual(new Set(['false,true']));
  },
);

test('slow uploads to an app with one instance, more than it may have, take no place from another client', async () => {
  // It may have 1,024 requests.
  expect((await attack('slow', 1_500, { host: 'patient', other: 'patient' })).opened).toBe(1_500);
});
