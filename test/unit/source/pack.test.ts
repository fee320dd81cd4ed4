import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listSource } from '../../../src/lib/source/content-hash.ts';
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

test.each(['gzip', 'zstd'] as const)('what is packed with %s comes out as it was', async (compression) => {
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

test('a layer that an interrupted run left is taken, unless it is not whole', async () => {
  const listing = await listSource(root, { cacheDir });
  const first = await packSource(listing, { cacheDir });
  first.memory.save('/v2/x/blobs/uploads/1');
  const second = await packSource(listing, { cacheDir });
  expect(second).toMatchObject({ reused: true, layer: first.layer });
  expect(second.memory.load()).toBe('/v2/x/blobs/uploads/1');
  truncateSync(first.layer.path, 10);
  const third = await packSource(listing, { cacheDir });
  expect(third).toMatchObject({ reused: false, layer: first.layer });
  expect(third.memory.load()).toBeUndefined();
  third.discard();
  expect(layersInCache()).toEqual([]);
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
])('a file that %s since it was listed fails the packing by name and leaves no layer', async (_, file, change) => {
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
