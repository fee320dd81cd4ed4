import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MEDIA_TYPES } from '../../../src/lib/oci/descriptor.ts';
import { extractLayer } from '../../../src/lib/source/extract.ts';

let dir: string;
let target: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-extract-'));
  target = join(dir, 'target');
  mkdirSync(target);
  writeFileSync(join(dir, 'outside'), 'untouched');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

type Entry = Partial<Header> & { name: string; text?: string };

async function tar(entries: Entry[]): Promise<Buffer> {
  const packer = pack();
  for (const { text, ...header } of entries) packer.entry(header, text ?? '');
  packer.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of packer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const unpack = async (entries: Entry[]) => extractLayer(Readable.from([await tar(entries)]), { mediaType: MEDIA_TYPES.layer, target });

test.each([
  [MEDIA_TYPES.layer, (bytes: Buffer) => bytes],
  [MEDIA_TYPES.layerGzip, gzipSync],
  [MEDIA_TYPES.layerZstd, zstdCompressSync],
])('a layer of type %s is unpacked with modes and links', async (mediaType, compress) => {
  const bytes = compress(
    await tar([
      { name: 'bin', type: 'directory', mode: 0o755 },
      { name: 'bin/run', mode: 0o755, text: '#!/bin/sh' },
      { name: 'deep/er/file', mode: 0o640, text: 'implicit parents' },
      { name: 'ünï/日本', text: 'names' },
      { name: 'link', type: 'symlink', linkname: 'bin/run' },
      { name: 'hard', type: 'link', linkname: 'bin/run' },
    ]),
  );
  expect(await extractLayer(Readable.from([bytes]), { mediaType, target })).toEqual({ files: 3, bytes: 30 });
  expect(statSync(join(target, 'bin/run')).mode & 0o777).toBe(0o755);
  expect(statSync(join(target, 'deep/er/file')).mode & 0o777).toBe(0o640);
  expect(readFileSync(join(target, 'ünï/日本'), 'utf8')).toBe('names');
  expect(readlinkSync(join(target, 'link'))).toBe('bin/run');
  expect(readFileSync(join(target, 'hard'), 'utf8')).toBe('#!/bin/sh');
});

test('a read-only folder is filled first, and stays usable for the build', async () => {
  await unpack([
    { name: 'ro', type: 'directory', mode: 0o555 },
    { name: 'ro/file', mode: 0o000, text: 'x' },
  ]);
  expect(statSync(join(target, 'ro')).mode & 0o777).toBe(0o755);
  expect(statSync(join(target, 'ro/file')).mode & 0o400).toBe(0o400);
});

test('setuid bits are removed', async () => {
  await unpack([{ name: 'su', mode: 0o6755, text: 'x' }]);
  expect(statSync(join(target, 'su')).mode & 0o7777).toBe(0o755);
});

test('a later entry replaces an earlier one', async () => {
  await unpack([
    { name: 'a', text: 'first' },
    { name: 'a', text: 'second' },
    { name: 'l', type: 'symlink', linkname: 'a' },
    { name: 'l', text: 'a file now' },
  ]);
  expect(readFileSync(join(target, 'a'), 'utf8')).toBe('second');
  expect(readFileSync(join(target, 'l'), 'utf8')).toBe('a file now');
});

test('names that begin with ./ are names like others', async () => {
  await unpack([
    { name: './', type: 'directory' },
    { name: './a/b', text: 'x' },
  ]);
  expect(readFileSync(join(target, 'a/b'), 'utf8')).toBe('x');
});

test("names that begin with a slash, as those of Korifi's API, are unpacked into the folder", async () => {
  await unpack([
    { name: '/', type: 'directory' },
    { name: '/app', type: 'directory' },
    { name: '/app/server.js', text: 'x' },
    { name: '//etc/passwd', text: 'ours' },
    { name: '/same', type: 'link', linkname: '/app/server.js' },
    { name: '/to', type: 'symlink', linkname: 'app/server.js' },
  ]);
  expect(readFileSync(join(target, 'app/server.js'), 'utf8')).toBe('x');
  expect(readFileSync(join(target, 'etc/passwd'), 'utf8')).toBe('ours');
  expect(readFileSync(join(target, 'same'), 'utf8')).toBe('x');
  expect(readFileSync(join(target, 'to'), 'utf8')).toBe('x');
});

const leadsOutside: [string, Entry[]][] = [
  ['.. behind a leading slash', [{ name: '/../outside', text: 'x' }]],
  ['.. behind many', [{ name: './/.//../outside', text: 'x' }]],
  ['.. behind a leading slash in a hard link', [{ name: 'h', type: 'link', linkname: '/../outside' }]],
  ['a path through ..', [{ name: '../outside', text: 'x' }]],
  ['.. in the middle', [{ name: 'a/../../outside', text: 'x' }]],
  ['. in the middle', [{ name: 'a/./b', text: 'x' }]],
  ['an absolute link', [{ name: 'l', type: 'symlink', linkname: '/etc/passwd' }]],
  ['a link through ..', [{ name: 'd/l', type: 'symlink', linkname: '../../outside' }]],
  [
    'a file through a link that was unpacked before',
    [
      { name: 'd', type: 'directory' },
      { name: 'l', type: 'symlink', linkname: 'd' },
      { name: 'l/file', text: 'x' },
    ],
  ],
  [
    'a folder over a link',
    [
      { name: 'l', type: 'symlink', linkname: '.' },
      { name: 'l', type: 'directory' },
    ],
  ],
  [
    'links that lead outside together only',
    [
      { name: 'a/b', type: 'directory' },
      { name: 'a/b/up', type: 'symlink', linkname: '../..' },
      { name: 'out', type: 'symlink', linkname: 'a/b/up/../outside' },
    ],
  ],
  [
    'a hard link to a link',
    [
      { name: 'l', type: 'symlink', linkname: 'x' },
      { name: 'h', type: 'link', linkname: 'l' },
    ],
  ],
  ['a hard link to a file outside', [{ name: 'h', type: 'link', linkname: '../outside' }]],
  ['a hard link to nothing', [{ name: 'h', type: 'link', linkname: 'none' }]],
  ['a character device', [{ name: 'null', type: 'character-device', devmajor: 1, devminor: 3 }]],
  ['a block device', [{ name: 'sda', type: 'block-device', devmajor: 8, devminor: 0 }]],
  ['a named pipe', [{ name: 'pipe', type: 'fifo' }]],
  [
    'a file over a folder',
    [
      { name: 'd', type: 'directory' },
      { name: 'd', text: 'x' },
    ],
  ],
];

test.each(leadsOutside)('%s is refused and nothing outside is changed', async (_, entries) => {
  await expect(unpack(entries)).rejects.toMatchObject({
    code: 'upload',
    message: expect.stringMatching(/^The source image holds '.+', which is not unpacked: /),
  });
  expect(readdirSync(dir).sort()).toEqual(['outside', 'target']);
  expect(readFileSync(join(dir, 'outside'), 'utf8')).toBe('untouched');
});

test('circular links are kept as they are', async () => {
  await unpack([
    { name: 'a', type: 'symlink', linkname: 'b' },
    { name: 'b', type: 'symlink', linkname: 'a' },
  ]);
  expect(lstatSync(join(target, 'a')).isSymbolicLink()).toBe(true);
});

test.each([
  ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
  ['not compressed as it says', () => Buffer.from('plain text, and no gzip at all')],
])('a layer that is %s is an error', async (_, damage) => {
  const bytes = damage(gzipSync(await tar([{ name: 'a', text: 'x'.repeat(10_000) }])));
  await expect(extractLayer(Readable.from([bytes]), { mediaType: MEDIA_TYPES.layerGzip, target })).rejects.toMatchObject({
    code: 'upload',
    message: expect.stringMatching(/^The source image cannot be unpacked: /),
  });
});

test('a layer of an unknown type is refused, and the type is named', async () => {
  await expect(extractLayer(Readable.from([]), { mediaType: 'application/zip', target })).rejects.toThrow(
    "a layer of type 'application/zip'",
  );
});
