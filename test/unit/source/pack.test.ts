import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listSource } from '../../../src/lib/source/source.ts';
import { extractLayer } from '../../../src/lib/source/extract.ts';
import { packSource } from '../../../src/lib/source/pack.ts';

let dir: string;
let root: string;
let cacheDir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-pack-'));
  root = join(dir, 'app');
  cacheDir = join(dir, 'cache');
  mkdirSync(join(root, 'bin'), { recursive: true });
  writeFileSync(join(root, 'bin', 'run'), 'run', { mode: 0o755 });
  writeFileSync(join(root, 'data'), 'x'.repeat(600_000));
  symlinkSync('data', join(root, 'link'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const layersInCache = (): string[] => readdirSync(cacheDir).filter((name) => name.startsWith('layer-'));

test.each(['gzip', 'zstd'] as const)('a layer that is packed with %s contains the same files when it is unpacked', async (compression) => {
  const listing = await listSource(root, { cacheDir });
  const { layer } = await packSource(listing, { cacheDir, compression });
  const target = join(dir, 'out');
  mkdirSync(target);
  await extractLayer(Readable.from([readFileSync(layer.path)]), { mediaType: layer.mediaType, target });
  const again = await listSource(target, { cacheDir });
  expect(again.contentHash).toBe(listing.contentHash);
  again.close();
  listing.close();
});

/** Gives all layers in the cache to a process that has ended. */
function killOwner(): void {
  const { pid } = spawnSync('true');
  for (const name of layersInCache()) renameSync(join(cacheDir, name), join(cacheDir, name.replace(`.${process.pid}.`, `.${pid}.`)));
}

test('a layer that a killed run left is used again with its upload session', async () => {
  const listing = await listSource(root, { cacheDir });
  const first = await packSource(listing, { cacheDir });
  first.memory.save('/v2/x/blobs/uploads/1');
  killOwner();
  const second = await packSource(listing, { cacheDir });
  expect(second).toMatchObject({ reused: true, layer: { ...first.layer, path: second.layer.path } });
  expect(readFileSync(second.layer.path)).toHaveLength(first.layer.size);
  expect(second.memory.load()).toBe('/v2/x/blobs/uploads/1');
  second.discard();
  expect(layersInCache()).toEqual([]);
  listing.close();
});

test('an incomplete layer of a killed run is packed again', async () => {
  const listing = await listSource(root, { cacheDir });
  const first = await packSource(listing, { cacheDir });
  truncateSync(first.layer.path, 10);
  killOwner();
  const second = await packSource(listing, { cacheDir });
  expect(second).toMatchObject({ reused: false, layer: { digest: first.layer.digest } });
  second.discard();
  expect(layersInCache()).toEqual([]);
  listing.close();
});

test('two simultaneous pushes of one folder share neither layer nor session', async () => {
  const listing = await listSource(root, { cacheDir });
  const first = await packSource(listing, { cacheDir });
  first.memory.save('/v2/x/blobs/uploads/1');
  const second = await packSource(listing, { cacheDir });
  expect(second.memory.load()).toBeUndefined();
  first.discard();
  expect(readFileSync(second.layer.path)).toHaveLength(second.layer.size);
  listing.close();
});

test('a cache that is gone is reported by path', async () => {
  const listing = await listSource(root, { cacheDir });
  const elsewhere = join(dir, 'none');
  await expect(packSource(listing, { cacheDir: elsewhere })).rejects.toMatchObject({
    code: 'upload',
    message: expect.stringContaining(elsewhere),
  });
  listing.close();
});

test.each<[string, string, () => void]>([
  ['grew', 'data', () => appendFileSync(join(root, 'data'), 'y')],
  ['has other bytes', 'data', () => writeFileSync(join(root, 'data'), 'z'.repeat(600_000))],
  ['is gone', 'bin/run', () => rmSync(join(root, 'bin/run'))],
  [
    'became a link',
    'bin/run',
    () => {
      rmSync(join(root, 'bin/run'));
      symlinkSync('../data', join(root, 'bin/run'));
    },
  ],
  [
    'became a folder',
    'bin/run',
    () => {
      rmSync(join(root, 'bin/run'));
      mkdirSync(join(root, 'bin/run'));
    },
  ],
])('a file that %s since it was listed fails the packing, is named and leaves no layer', async (_, file, change) => {
  const listing = await listSource(root, { cacheDir });
  change();
  await expect(packSource(listing, { cacheDir })).rejects.toMatchObject({
    code: 'upload',
    message: `The file '${file}' changed while it was packed.`,
    details: { file },
  });
  listing.close();
  expect(layersInCache()).toEqual([]);
});
