// Attacker: a pod that opens connections to the gateway by HTTP/2 and makes the gateway keep as much for them as it can. The gateway serves every space.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectionAttack } from '../../support/connection-attack.ts';
import { podOfSpace, startsOfGateway } from '../../support/gateway.ts';
import { get } from '../../support/http.ts';
import { Kf, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member, type Said } from '../../support/members.ts';

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
 * In the attacker's pod: many clients that keep the rules, each with a connection by HTTP/2. Each sends ten requests at once and cancels two, and again.
 * Prints the statuses of the others, how many connections were ended, and how many requests at a time the first and the last one may have.
 */
const ordinary = `const [, host, count, scheme] = process.argv;
const http2 = require("node:http2");
const statuses = {}, streams = []; let ended = 0;
require("node:dns").lookup("kf-gateway.kf-node.svc", async (error, address) => {
  const client = () => new Promise((resolve) => {
    const session = http2.connect(scheme + "://" + address, { rejectUnauthorized: false, servername: host });
    session.on("close", () => ended++).on("error", () => {});
    const ask = (isCancelled) => new Promise((done) => {
      const q = session.request({ ":path": "/", ":authority": host });
      q.on("response", (head) => { if (!isCancelled) statuses[head[":status"]] = (statuses[head[":status"]] ?? 0) + 1; });
      q.on("error", (e) => { if (!isCancelled) statuses[e.code] = (statuses[e.code] ?? 0) + 1; }).on("close", done).resume();
      if (isCancelled) q.close(http2.constants.NGHTTP2_CANCEL);
    });
    session.once("remoteSettings", async ({ maxConcurrentStreams }) => {
      streams.push(maxConcurrentStreams);
      for (let round = 0; round < 2; round++) await Promise.all(Array.from({ length: 10 }, (_, i) => ask(i % 5 === 2)));
      resolve();
    });
  });
  const clients = [];
  for (let i = 0; i < Number(count); i += 4) { const four = Array.from({ length: 4 }, client); clients.push(...four); await Promise.all(four); }
  await Promise.all(clients);
  console.log(JSON.stringify({ statuses, ended, first: streams[0], last: streams.at(-1) }));
  process.exit(0);
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

const inPod = (program: string, ...args: string[]): Promise<Said> =>
  attacker.kubectl(['exec', '-n', space, pod, '--', 'node', '-e', program, ...args]);

/**
 * Runs the attack, and asks another app all the time: every answer is good, and the gateway is not restarted. With `isSlow` an answer may take longer than
 * a client waits, as the attack takes the CPU time of the node.
 */
async function attack(mode: string, count: number, { host = 'mute', other = 'other', isSlow = false } = {}): Promise<Connections> {
  const before = await startsOfGateway();
  const attacking = inPod(connectionAttack, mode, `${host}.apps.localhost`, String(count), 'kf-gateway.kf-node.svc');
  let isOver = false;
  void attacking.finally(() => (isOver = true));
  const answers = new Map<unknown, number>();
  while (!isOver) {
    const answer = await get(`${other}.apps.localhost`).then(
      ({ status }) => status,
      (error: unknown) => String(error),
    );
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
    await sleep(50);
  }
  const said = await attacking;
  console.log(`measured: ${mode} ${said.stdout.trim()}; another app ${JSON.stringify([...answers])}`);
  expect(await startsOfGateway()).toEqual(before);
  expect(said.code, said.stderr).toBe(0);
  expect(answers.get(200)).toBeGreaterThan(0);
  expect([...answers.keys()].filter((answer) => answer !== 200 && !(isSlow && String(answer).includes('no answer')))).toEqual([]);
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

test('the gateway keeps running while 600 connections begin and cancel requests as fast as they can, and serves other apps', async () => {
  const { opened, open } = await attack('cancels', 600, { isSlow: true });
  expect(opened).toBeGreaterThan(500);
  expect(open).toBe(0);
});

test.each(['http', 'https'])(
  'ordinary clients of one address keep their connections by %s, although they cancel requests',
  async (scheme) => {
    const said = await inPod(ordinary, 'other.apps.localhost', '600', scheme);
    expect(said.code, said.stderr).toBe(0);
    expect(JSON.parse(said.stdout)).toEqual({ statuses: { 200: 600 * 16 }, ended: 0, first: 100, last: 8 });
  },
);

test('slow uploads to an app with one instance, more than it may have, take no place from another client', async () => {
  // It may have 1,024 requests.
  expect((await attack('slow', 1_500, { host: 'patient', other: 'patient' })).opened).toBe(1_500);
});
