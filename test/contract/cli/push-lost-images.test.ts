// Pushes while the registry has lost images, or has no room for another one.

import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { configMapType } from '../../../src/lib/api/core.ts';
import { bundleForTests } from '../../support/cli.ts';
import { builtWeb, PushScene } from '../../support/push-scene.ts';
import { serveRegistry } from '../../support/registry-proxy.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app'];
const droplet = `sha256:${'d'.repeat(64)}`;
const count = () => [scene.packages().length, scene.builds().length];

/** Pushes an app whose source and droplet are both in the registry. */
async function pushed(): Promise<void> {
  scene.droplet = { ...builtWeb, registry: { image: `localhost:32500/space-guid/shop-droplets@${droplet}` } };
  scene.images.add(droplet);
  await scene.ok(...push);
}

it('a push of the same source uploads and builds nothing while the registry has both', async () => {
  await pushed();
  expect((await scene.ok(...push)).stdout).toContain('is unchanged');
  expect(count()).toEqual([1, 1]);
});

it('a push of the same source uploads and builds it again when the registry has lost everything', async () => {
  await pushed();
  scene.images.clear();
  const { stdout } = await scene.ok(...push);
  expect(stdout).toMatch(/Uploading files\.\.\.\n[^]*Staging app/);
  expect(count()).toEqual([2, 2]);
});

it('a push of the same source only builds it again when the registry has lost the droplet', async () => {
  await pushed();
  scene.images.delete(droplet);
  const { stdout } = await scene.ok(...push);
  expect(stdout).not.toContain('Uploading');
  expect(count()).toEqual([1, 2]);
});

it('a push of the same source uploads and builds nothing while the registry does not answer', async () => {
  await pushed();
  scene.cluster.server.on('HEAD .*/proxy/v2/.*', (call) => call.text('no endpoints available', 503));
  expect((await scene.ok(...push)).stdout).toContain('is unchanged');
  expect(count()).toEqual([1, 1]);
});

it('a build of a source whose layer the registry has lost uploads it again, and an unchanged push asks only for the manifests', async () => {
  const registry = await ScriptedRegistry.start();
  try {
    serveRegistry(scene.cluster.server, registry);
    const manifest = registry.putManifest('space-guid/shop-droplets', 'one', 'application/vnd.oci.image.manifest.v1+json', {});
    scene.droplet = { ...builtWeb, registry: { image: `localhost:32500/space-guid/shop-droplets@${manifest}` } };
    await scene.ok(...push);
    registry.blobs.clear();
    registry.requests.length = 0;
    expect((await scene.ok(...push)).stdout).toContain('is unchanged');
    expect(registry.requests.map(({ method, path }) => `${method} ${path.split('/').at(-2) ?? ''}`)).toEqual(
      Array(2).fill('HEAD manifests'),
    );
    expect((await scene.ok(...push, '--force')).stdout).toMatch(/Uploading files\.\.\.\n[^]*Staging app/);
    expect([count(), registry.blobs.size]).toEqual([[2, 2], 2]);
    expect((await scene.ok(...push, '--force')).stdout).not.toContain('Uploading');
    expect(count()).toEqual([2, 3]);
  } finally {
    await registry.stop();
  }
});

/** Gives the space a share of the registry, and the app a source that cannot be compressed. */
async function share(spaceQuotaBytes: number, sourceBytes: number): Promise<void> {
  const { memory } = scene.cluster;
  const info = JSON.parse(memory.peek(configMapType, 'cf', 'kf-info')?.data?.['info.json'] ?? '') as { registry: object };
  const text = JSON.stringify({ ...info, registry: { ...info.registry, spaceQuotaBytes } });
  await memory.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': text } });
  scene.source(randomBytes(sourceBytes / 2).toString('hex'));
}

it("a source that is larger than the space's share of the registry is refused before it is uploaded", async () => {
  await share(100_000, 400_000);
  const { code, stderr } = await scene.cli.run(push);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /The packed source has [\d.]+K, and all images of the space may take 97\.7K in the registry\.[^]*registrySpaceQuotaMB in setup\.yaml/,
    ),
  ]);
  expect([scene.images.size, scene.packages()]).toEqual([0, []]);
});

it("a source that leaves no room for its droplet in the space's share is uploaded with a warning", async () => {
  await share(300_000, 400_000);
  const { code, stderr } = await scene.cli.run(push);
  expect([code, stderr]).toEqual([0, expect.stringContaining('The registry refuses the droplet if the build keeps all of the source.')]);
  expect(stderr).toContain('registrySpaceQuotaMB in setup.yaml');
});
