// Attacker: a build step that opens as many connections to the registry as it can and ends no request, or sends thousands without reading an
// answer. The registry serves every space.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../../support/http.ts';
import { Kf, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const apps = path.resolve('test/fixtures/apps');
const world = new TestWorld();
let kf: Kf;
let attacker: Member;
let space: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  kf = await Kf.create();
  const place = await world.space();
  ({ space } = place);
  attacker = await world.member('spaceDeveloper', place);
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await kf.run(['delete', 'flood-victim', '-r', '-f']);
  await Promise.all([kf.remove(), world.remove()]);
});

interface Pods {
  items: { metadata: { uid: string }; status: { containerStatuses: { name: string; restartCount: number }[] } }[];
}

async function restartsOfRegistry(): Promise<unknown> {
  const { items } = await kubectlJson<Pods>('get', 'pods', '-n', 'kf-system', '-l', 'app=kf-registry');
  return items.map(({ metadata, status }) => [
    metadata.uid,
    ...status.containerStatuses.map(({ name, restartCount }) => [name, restartCount]),
  ]);
}

test('the registry keeps running, and another space can push', async () => {
  const before = await restartsOfRegistry();
  const pushing = attacker.kf.start(['push', 'flood', '-p', path.join(apps, 'registry-flood'), '-m', '128M']);
  const ended = new Promise<number | null>((resolve) => pushing.once('exit', resolve));
  let output = '';
  await new Promise<void>((resolve, reject) => {
    pushing.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes('FLOOD BEGINS')) resolve();
    });
    void ended.then(() => reject(new Error(output)));
  });
  await kf.ok('push', 'flood-victim', '-p', path.join(apps, 'node-hello'), '-m', '128M');
  expect((await get('flood-victim.apps.localhost')).status).toBe(200);
  expect(await ended, output).toBe(0);
  const { begun } = JSON.parse(/FLOOD ENDS (\{.*\})/.exec(output)?.[1] ?? '{}') as { begun?: number };
  expect(begun).toBeGreaterThan(1_000);
  expect(await restartsOfRegistry()).toEqual(before);
});

interface Builds {
  items: { status: { droplet: { registry: { image: string } } } }[];
}

/** The pull credential of the attacker's space as a header, and the repository of its newest droplet. */
async function droplet(): Promise<{ host: string; port: number; authorization: string; repository: string; digest: string }> {
  const secret = await attacker.kubectl([
    'get',
    'secret',
    'image-registry-credentials',
    '-n',
    space,
    '-o',
    'jsonpath={.data.\\.dockerconfigjson}',
  ]);
  const config = JSON.parse(Buffer.from(secret.stdout, 'base64').toString()) as {
    auths: Record<string, { username: string; password: string }>;
  };
  const { username, password } = Object.values(config.auths)[0] ?? { username: '', password: '' };
  const builds = JSON.parse((await attacker.kubectl(['get', 'cfbuilds', '-n', space, '-o', 'json'])).stdout) as Builds;
  const [, port = '', repository = '', digest = ''] =
    /^localhost:(\d+)\/(.*)@(.*)$/.exec(builds.items[0]?.status.droplet.registry.image ?? '') ?? [];
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  return { host: ringEnv('KF_CLUSTER_ADDRESS'), port: Number(port), authorization, repository, digest };
}

test('the registry keeps running while clients do not read its answers', async () => {
  await attacker.kf.ok('push', 'unread', '-p', path.join(apps, 'node-hello'), '-m', '128M');
  const { host, port, authorization, repository, digest } = await droplet();
  const accept = 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json';
  const url = `http://${host}:${port}/v2/${repository}`;
  const answer = await fetch(`${url}/manifests/${digest}`, { headers: { authorization, accept } });
  const { layers } = (await answer.json()) as { layers: { size: number; digest: string }[] };
  const largest = layers.toSorted((a, b) => b.size - a.size)[0];
  expect(largest?.size).toBeGreaterThan(10_000_000);
  const before = await restartsOfRegistry();
  const request = (target: string) => `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`;
  const unread = request(`/v2/${repository}/blobs/${largest?.digest ?? ''}`).repeat(4);
  // Fewer than the limit of the space, because the connection for the manifest still exists. They are opened
  // one after the other, because each has no credential until its request arrives.
  for (let count = 0; count < 120; count += 1) {
    const socket = connect(port, host, () => void socket.write(request('/v2/')));
    socket.on('error', () => undefined);
    sockets.push(socket);
    const [told] = (await once(socket, 'data')) as [Buffer];
    expect(told.toString()).toMatch(/^HTTP\/1.1 200 /);
    socket.pause();
    socket.write(unread);
  }
  await kf.ok('push', 'flood-victim', '-p', path.join(apps, 'node-hello'), '-m', '128M');
  expect(await restartsOfRegistry()).toEqual(before);
});
