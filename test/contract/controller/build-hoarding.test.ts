// Attacker: a developer whose objects are small one by one, and together would fill the memory that all spaces share.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { buildBuild, buildPackage } from '../../../src/templates/build.ts';
import { app, startScene } from './build-scene.ts';
import type { BuildScene } from './build-scene.ts';

const author = { changedBy: 'mallory', now: new Date() };
const lifecycle = { type: 'docker' as const, data: { stack: '' } };
let scene: BuildScene;
beforeEach(async () => void (scene = await startScene()));
afterEach(() => scene.stop());

/** Builds of one image package with one pull secret of `bytes`. */
async function imageBuilds(count: number, bytes: number): Promise<void> {
  const { cluster } = scene;
  const config = JSON.stringify({ x: 'y'.repeat(bytes - 8) });
  await cluster.create(secretType, {
    metadata: { name: 'pull', namespace: 's-1' },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
  });
  const owner = await cluster.create(kinds.app, { ...app('a-1'), spec: { ...app('a-1').spec, lifecycle } });
  const source = buildPackage({ guid: 'p-1', app: owner, type: 'docker', image: '127.0.0.1:1/x/y:1' }, author);
  const registry = { image: '127.0.0.1:1/x/y:1', imagePullSecrets: [{ name: 'pull' }] };
  await cluster.create(kinds.package, { ...source, spec: { ...source.spec, source: { registry } } });
  for (let n = 0; n < count; n += 1) {
    const input = { guid: `b-${String(n)}`, app: owner, packageGuid: 'p-1', lifecycle, stagingMemoryMB: 0, stagingDiskMB: 0 };
    await cluster.create(kinds.build, buildBuild(input, author));
  }
}

const states = (): (string | undefined)[] => scene.cluster.all(kinds.build).map(({ status }) => status?.state);

test('builds that wait for their turn at a registry have not read their pull secrets', async () => {
  let reads = 0;
  scene.cluster.intercept = (verb, { kind }, name) => {
    if (verb !== 'get' || kind !== 'Secret' || name !== 'pull') return;
    reads += 1;
    return new Promise(() => undefined);
  };
  await imageBuilds(12, 100_000);
  await scene.until(() => expect(states()).toEqual(Array.from({ length: 12 }, () => 'STAGING')));
  expect(reads).toBe(4);
});

test('pull secrets beyond 256 KiB together fail the build, with a sentence', async () => {
  await imageBuilds(1, 257 * 1024);
  await scene.until(() => expect(states()).toEqual(['FAILED']));
  expect(scene.condition(kinds.build, 's-1', 'b-0', 'Succeeded')?.message).toBe(
    'The pull secrets of the package have more than 256 KiB together.',
  );
});
