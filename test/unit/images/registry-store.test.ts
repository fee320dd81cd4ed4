import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { imageFromLayers } from '../../../src/lib/oci/image.ts';
import type { BuiltImage } from '../../../tools/cluster/images/index.ts';
import { storedLayer } from '../../../tools/cluster/images/layer-store.ts';
import { storeImages } from '../../../tools/cluster/images/registry-store.ts';
import { textFile } from '../../../tools/cluster/images/rootfs.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kf-store-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function built(name: string, text: string, push = true): Promise<BuiltImage> {
  const layer = await storedLayer(
    { name: 'test', inputs: text, entries: () => [textFile('a', text)] },
    join(folder, 'cache'),
    () => undefined,
  );
  const image = imageFromLayers({ layers: [layer], config: { architecture: 'amd64', os: 'linux' } });
  return { name, image, archive: '', preload: true, push, digest: image.manifest.descriptor.digest };
}

const root = (): string => join(folder, 'storage', 'docker', 'registry', 'v2');

test('a tag refers to the manifest, and every blob is stored under its own hash', async () => {
  const image = await built('reg:5000/kf/a:1', 'one');
  storeImages([image], join(folder, 'storage'), 'reg:5000');
  expect(readFileSync(join(root(), 'repositories/kf/a/_manifests/tags/1/current/link'), 'utf8')).toBe(image.digest);
  const blobs = readdirSync(join(root(), 'blobs/sha256'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(blobs).toHaveLength(3);
  for (const blob of blobs) {
    expect(blob.name).toBe('data');
    const hash = createHash('sha256')
      .update(readFileSync(join(blob.parentPath, blob.name)))
      .digest('hex');
    expect(blob.parentPath.endsWith(`/${hash.slice(0, 2)}/${hash}`)).toBe(true);
  }
});

test('a tag moves to the newer image, and the older one can still be read by digest', async () => {
  const [older, newer] = [await built('reg:5000/kf/a:1', 'one'), await built('reg:5000/kf/a:1', 'two')];
  storeImages([older], join(folder, 'storage'), 'reg:5000');
  storeImages([newer], join(folder, 'storage'), 'reg:5000');
  expect(readFileSync(join(root(), 'repositories/kf/a/_manifests/tags/1/current/link'), 'utf8')).toBe(newer.digest);
  const revisions = readdirSync(join(root(), 'repositories/kf/a/_manifests/revisions/sha256'));
  expect(revisions.toSorted()).toEqual([older.digest, newer.digest].map((digest) => digest.slice('sha256:'.length)).toSorted());
});

test('images of another registry and those not meant for one are left out', async () => {
  storeImages([await built('other:5000/kf/a:1', 'one'), await built('reg:5000/kf/b:1', 'two', false)], join(folder, 'storage'), 'reg:5000');
  expect(() => readdirSync(root())).toThrow('ENOENT');
});
