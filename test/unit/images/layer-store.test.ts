import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LayerEntry } from '../../../src/lib/oci/layer.ts';
import { storedLayer } from '../../../tools/cluster/images/layer-store.ts';
import { completeTree, mergedUsrName, textFile } from '../../../tools/cluster/images/rootfs.ts';

let cacheDir: string;
let packed: string[];
beforeEach(() => {
  cacheDir = mkdtempSync(join(tmpdir(), 'kf-layers-'));
  packed = [];
});
afterEach(() => rmSync(cacheDir, { recursive: true, force: true }));

function layer(inputs: unknown, text = 'content') {
  return storedLayer({ name: 'test', inputs, entries: () => [textFile('etc/a', text)] }, cacheDir, (line) => packed.push(line));
}

test('a layer with equal inputs is packed once and is the same the second time', async () => {
  const first = await layer(['a', 1]);
  const second = await layer(['a', 1], 'would be other content');
  expect(second).toEqual(first);
  expect(packed).toEqual(['images: packing layer test']);
});

test('other inputs produce another layer', async () => {
  const first = await layer(['a'], 'one');
  const second = await layer(['b'], 'two');
  expect(second.digest).not.toBe(first.digest);
  expect(packed).toHaveLength(2);
});

test('a layer whose file is gone is packed again', async () => {
  const first = await layer('a');
  rmSync(first.path);
  expect(await layer('a')).toEqual(first);
  expect(packed).toHaveLength(2);
});

test('a recipe that fails leaves nothing behind', async () => {
  const failing = storedLayer(
    {
      name: 'test',
      inputs: 1,
      entries: () => {
        throw new Error('no such package');
      },
    },
    cacheDir,
    () => undefined,
  );
  await expect(failing).rejects.toThrow('no such package');
  expect(readdirSync(join(cacheDir, 'layers'))).toEqual([]);
});

test('a tree is sorted, its folders come first, and the later of two equal entries is used', () => {
  const entries: LayerEntry[] = [
    textFile('usr/bin/b', 'old'),
    textFile('etc/a', ''),
    { type: 'directory', name: 'usr', mode: 0o700 },
    textFile('usr/bin/b', 'new'),
  ];
  expect(completeTree(entries)).toEqual([
    { type: 'directory', name: 'etc' },
    textFile('etc/a', ''),
    { type: 'directory', name: 'usr', mode: 0o700 },
    { type: 'directory', name: 'usr/bin' },
    textFile('usr/bin/b', 'new'),
  ]);
});

test.each([
  ['bin/bash', 'usr/bin/bash'],
  ['lib64/ld.so', 'usr/lib64/ld.so'],
  ['usr/bin/env', 'usr/bin/env'],
  ['library/x', 'library/x'],
])('%s of a Debian package is at %s', (name, place) => {
  expect(mergedUsrName(name)).toBe(place);
});
