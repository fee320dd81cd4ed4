// Attacker: an app that opens as many connections to the gateway as it can, and sends headers without an end. The gateway serves every space.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../../support/http.ts';
import { Kf, kubectlJson } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';
import type { Place } from '../../support/developer.ts';

const sample = `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`;
const world = new TestWorld();
let kf: Kf;
let place: Place;
let attacker: Member;

beforeAll(async () => {
  [kf, place] = [await Kf.create(), await world.space()];
  attacker = await world.member('spaceDeveloper', place);
  await kf.ok('push', 'flood-bank', '-o', sample, '-m', '64M');
  await attacker.kf.ok('push', 'flood', '-o', sample, '-m', '256M', '--no-route');
});
afterAll(async () => {
  await kf.run(['delete', 'flood-bank', '-r', '-f']);
  await Promise.all([kf.remove(), world.remove()]);
});

interface Pods {
  items: { metadata: { name: string; uid: string }; status: { containerStatuses: { restartCount: number }[] } }[];
}

const podsOf = async (...where: string[]): Promise<Pods['items']> => (await kubectlJson<Pods>('get', 'pods', ...where)).items;

async function restartsOfGateway(): Promise<unknown> {
  const pods = await podsOf('-n', 'kf-node', '-l', 'app=kf-gateway');
  return pods.map(({ metadata, status }) => [metadata.uid, ...status.containerStatuses.map(({ restartCount }) => restartCount)]);
}

/** Opens connections in the app's pod; each sends up to 900 kB of headers, which its gateway may refuse. */
const program = `
const net = require('node:net');
const line = 'X-More: ' + 'a'.repeat(4000) + '\\r\\n';
let [begun, sent] = [0, 0];
const connect = () => new Promise((resolve) => {
  const socket = net.connect({ host: 'kf-gateway.kf-node.svc', port: 80, timeout: 5000 }, () => {
    begun += 1;
    socket.write('GET / HTTP/1.1\\r\\nHost: flood\\r\\n');
    const more = (left) => {
      if (left === 0 || socket.destroyed) return resolve();
      socket.write(line, () => more(left - 1));
      sent += line.length;
    };
    more(225);
  });
  for (const end of ['error', 'close', 'timeout']) socket.on(end, resolve);
});
(async () => {
  for (let round = 0; round < 60; round += 1) await Promise.all(Array.from({ length: 20 }, connect));
  console.log(JSON.stringify({ begun, sent }));
  process.exit(0);
})();
`;

test('the gateway keeps running and serves the apps of other spaces', async () => {
  const before = await restartsOfGateway();
  const [pod] = await podsOf('-n', place.space, '-l', 'kf.cloudfoundry.org/generation');
  const flooding = attacker.kubectl(['exec', '-n', place.space, pod?.metadata.name ?? '', '--', 'node', '-e', program]);
  let isOver = false;
  void flooding.finally(() => (isOver = true));
  const statuses = new Set<number>();
  while (!isOver) {
    statuses.add((await get('flood-bank.apps.localhost')).status);
    await sleep(50);
  }
  const said = await flooding;
  expect(said.code, said.stderr).toBe(0);
  expect((JSON.parse(said.stdout) as { begun: number }).begun).toBeGreaterThan(1_000);
  expect([...statuses]).toEqual([200]);
  expect(await restartsOfGateway()).toEqual(before);
});
