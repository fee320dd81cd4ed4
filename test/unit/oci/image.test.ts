import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { extract } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { digestOf } from '../../../src/lib/oci/descriptor.ts';
import { imageFromLayers } from '../../../src/lib/oci/image.ts';
import { layerFromEntries } from '../../../src/lib/oci/layer.ts';
import { writeLayout } from '../../../src/lib/oci/layout.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-image-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function oneLayerImage(annotations?: Record<string, string>) {
  const layer = await layerFromEntries([{ type: 'file', name: 'a', source: Buffer.from('a') }], {
    output: join(dir, 'layer'),
    compression: 'gzip',
  });
  const config = {
    architecture: 'amd64',
    os: 'linux',
    entrypoint: ['/a'],
    cmd: ['-x'],
    env: { PATH: '/bin', B: 'b=c' },
    user: '1000:1000',
    workingDir: '/w',
    labels: { z: '1', a: '2' },
    exposedPorts: ['8080/tcp'],
  };
  return { layer, image: imageFromLayers({ layers: [layer], config, ...(annotations ? { annotations } : {}) }) };
}

test('the config contains uncompressed digests, the manifest compressed ones', async () => {
  const { layer, image } = await oneLayerImage({ b: '1', a: '2' });
  const config = JSON.parse(image.config.bytes.toString());
  expect(config).toMatchObject({
    architecture: 'amd64',
    os: 'linux',
    config: {
      Entrypoint: ['/a'],
      Cmd: ['-x'],
      Env: ['PATH=/bin', 'B=b=c'],
      User: '1000:1000',
      WorkingDir: '/w',
      Labels: { a: '2', z: '1' },
      ExposedPorts: { '8080/tcp': {} },
    },
    rootfs: { type: 'layers', diff_ids: [layer.diffId] },
  });
  expect(JSON.parse(image.manifest.bytes.toString())).toEqual({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: digestOf(image.config.bytes),
      size: image.config.bytes.length,
    },
    layers: [{ mediaType: layer.mediaType, digest: layer.digest, size: layer.size }],
    annotations: { a: '2', b: '1' },
  });
  expect(image.manifest.descriptor).toEqual({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    digest: digestOf(image.manifest.bytes),
    size: image.manifest.bytes.length,
  });
});

test('unset parts of the config are left out', () => {
  const image = imageFromLayers({ layers: [], config: { architecture: 'arm64', os: 'linux' } });
  expect(JSON.parse(image.config.bytes.toString()).config).toEqual({});
  expect(JSON.parse(image.manifest.bytes.toString())).not.toHaveProperty('annotations');
});

test('a layout archive contains every blob under its digest, and the name that containerd looks for', async () => {
  const { layer, image } = await oneLayerImage();
  const archive = join(dir, 'image.tar');
  await writeLayout(archive, image, 'kf.local/a:1');
  const reader = extract();
  reader.end(readFileSync(archive));
  const files = new Map<string, Buffer>();
  for await (const entry of reader) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    if (entry.header.type === 'file') files.set(entry.header.name, Buffer.concat(chunks));
  }
  const index = JSON.parse(String(files.get('index.json')));
  expect(JSON.parse(String(files.get('oci-layout')))).toEqual({ imageLayoutVersion: '1.0.0' });
  expect(index.manifests).toEqual([
    {
      ...image.manifest.descriptor,
      annotations: { 'io.containerd.image.name': 'kf.local/a:1', 'org.opencontainers.image.ref.name': 'kf.local/a:1' },
    },
  ]);
  const blobs = [...files].filter(([name]) => name.startsWith('blobs/'));
  expect(blobs.map(([name]) => name).sort()).toEqual(
    [image.manifest.descriptor.digest, image.config.descriptor.digest, layer.digest]
      .map((digest) => `blobs/${digest.replace(':', '/')}`)
      .sort(),
  );
  for (const [name, bytes] of blobs) expect(`blobs/${digestOf(bytes).replace(':', '/')}`).toBe(name);
});
