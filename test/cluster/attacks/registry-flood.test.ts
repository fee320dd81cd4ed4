// Attacker: a build step that opens as many connections to the registry as it can, and ends no request, or sends thousands and waits for no answer. The
// registry serves every space.

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../../support/http.ts';
import { Kf, kubectlJson } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const apps = path.resolve('test/fixtures/apps');
const world = new TestWorld();
let kf: Kf;
let attacker: Member;

beforeAll(async () => {
  kf = await Kf.create();
  attacker = await world.member('spaceDeveloper', await world.space());
});
afterAll(async () => {
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

test('the registry runs on, and another space pushes meanwhile', async () => {
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
