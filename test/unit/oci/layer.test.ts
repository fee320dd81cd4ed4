import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { extract } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Compression, type LayerEntry, layerFromEntries } from '../../../src/lib/oci/layer.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-layer-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

async function readTar(bytes: Buffer): Promise<Record<string, unknown>[]> {
  const reader = extract();
  reader.end(bytes);
  const found: Record<string, unknown>[] = [];
  for await (const entry of reader) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    const { name, mode, uid, gid, type, linkname, mtime } = entry.header;
    found.push({ name, mode, uid, gid, type, linkname, mtime: mtime?.getTime(), text: Buffer.concat(chunks).toString() });
  }
  return found;
}

function entries(): LayerEntry[] {
  writeFileSync(join(dir, 'on-disk'), 'from disk');
  return [
    { type: 'directory', name: 'app', mode: 0o750, uid: 1000, gid: 1001 },
    { type: 'file', name: 'app/a', source: join(dir, 'on-disk'), mode: 0o755 },
    { type: 'file', name: 'app/empty', source: Buffer.alloc(0) },
    { type: 'file', name: 'app/ünï/日本.txt', source: Buffer.from('names') },
    { type: 'file', name: `app/${'long/'.repeat(60)}end`, source: Buffer.from('x'.repeat(513)) },
    { type: 'file', name: 'big-ids', source: Buffer.from('i'), uid: 2_097_152, gid: 4_000_000 },
    { type: 'symlink', name: 'app/link', target: 'a' },
    { type: 'symlink', name: 'app/far', target: `../${'é/'.repeat(80)}z` },
  ];
}

test.each<[Compression, (bytes: Buffer) => Buffer, string]>([
  ['gzip', gunzipSync, 'application/vnd.oci.image.layer.v1.tar+gzip'],
  ['zstd', zstdDecompressSync, 'application/vnd.oci.image.layer.v1.tar+zstd'],
  ['none', (bytes) => bytes, 'application/vnd.oci.image.layer.v1.tar'],
])('a %s layer contains the given entries, and both hashes are right', async (compression, decompress, mediaType) => {
  const output = join(dir, 'layer');
  const layer = await layerFromEntries(entries(), { output, compression });
  const file = readFileSync(output);
  const tar = decompress(file);
  expect(layer).toEqual({ mediaType, digest: sha256(file), diffId: sha256(tar), size: file.length, path: output });
  const plain = { uid: 0, gid: 0, mtime: 0, linkname: null, text: '' };
  expect(await readTar(tar)).toEqual([
    { ...plain, name: 'app/', mode: 0o750, uid: 1000, gid: 1001, type: 'directory' },
    { ...plain, name: 'app/a', mode: 0o755, type: 'file', text: 'from disk' },
    { ...plain, name: 'app/empty', mode: 0o644, type: 'file' },
    { ...plain, name: 'app/ünï/日本.txt', mode: 0o644, type: 'file', text: 'names' },
    { ...plain, name: `app/${'long/'.repeat(60)}end`, mode: 0o644, type: 'file', text: 'x'.repeat(513) },
    expect.objectContaining({ name: 'big-ids', text: 'i' }),
    { ...plain, name: 'app/link', mode: 0o777, type: 'symlink', linkname: 'a' },
    { ...plain, name: 'app/far', mode: 0o777, type: 'symlink', linkname: `../${'é/'.repeat(80)}z` },
  ]);
});

test('GNU tar reads names, modes and large owner numbers of the archive', async () => {
  const output = join(dir, 'layer.tar');
  await layerFromEntries(entries(), { output, compression: 'none' });
  const listing = execFileSync('tar', ['--numeric-owner', '-tvf', output], {
    env: { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC' },
  }).toString();
  expect(listing).toMatch(/^drwxr-x--- 1000\/1001 +0 1970-01-01 00:00 app\/$/m);
  expect(listing).toMatch(/^-rw-r--r-- 2097152\/4000000 +1 1970-01-01 00:00 big-ids$/m);
  expect(listing).toMatch(/^-rw-r--r-- 0\/0 +5 1970-01-01 00:00 app\/ünï\/日本\.txt$/m);
  expect(listing).toContain(`app/far -> ../${'é/'.repeat(80)}z`);
});

test('the same entries give the same digests twice', async () => {
  const list = entries();
  const first = await layerFromEntries(list, { output: join(dir, '1'), compression: 'gzip' });
  const second = await layerFromEntries(list, { output: join(dir, '2'), compression: 'gzip' });
  expect({ ...second, path: '' }).toEqual({ ...first, path: '' });
});

test('files larger than a block and many small files are complete', async () => {
  const big = Buffer.alloc(1_000_003, 'abcdefg');
  writeFileSync(join(dir, 'big'), big);
  const list: LayerEntry[] = [{ type: 'file', name: 'big', source: join(dir, 'big') }];
  for (let i = 0; i < 2000; i++) list.push({ type: 'file', name: `small/${i}`, source: Buffer.from(String(i)) });
  const output = join(dir, 'layer');
  await layerFromEntries(list, { output, compression: 'none' });
  const found = await readTar(readFileSync(output));
  expect(found[0]?.['text']).toBe(big.toString());
  expect(found.slice(1).map((entry) => entry['text'])).toEqual(Array.from({ length: 2000 }, (_, i) => String(i)));
});

test.each([
  ['another size', { size: 3, sha256: '0'.repeat(64) }],
  ['another content', { size: 9, sha256: '0'.repeat(64) }],
])('a file that has %s since it was listed fails the packing and is named', async (_, expectation) => {
  writeFileSync(join(dir, 'f'), 'nine byte');
  const list: LayerEntry[] = [{ type: 'file', name: 'src/f', source: join(dir, 'f'), expect: expectation }];
  await expect(layerFromEntries(list, { output: join(dir, 'l'), compression: 'gzip' })).rejects.toMatchObject({
    code: 'upload',
    message: "The file 'src/f' changed while it was packed.",
    details: { file: 'src/f' },
  });
});

test('a file that is gone when it is packed fails the packing and is named', async () => {
  const list: LayerEntry[] = [{ type: 'file', name: 'gone', source: join(dir, 'nothing') }];
  await expect(layerFromEntries(list, { output: join(dir, 'l'), compression: 'zstd' })).rejects.toThrow(
    "The file 'gone' changed while it was packed.",
  );
});

test('an aborted signal ends the packing', async () => {
  const controller = new AbortController();
  async function* endless(): AsyncGenerator<LayerEntry> {
    for (let i = 0; ; i++) {
      if (i === 10) controller.abort();
      yield { type: 'file', name: `f${i}`, source: Buffer.alloc(300_000) };
    }
  }
  await expect(
    layerFromEntries(endless(), { output: join(dir, 'l'), compression: 'gzip', signal: controller.signal }),
  ).rejects.toMatchObject({ name: 'AbortError' });
});
