import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { packSource } from '../../../src/lib/source/pack.ts';
import { assertSource, listSource } from '../../../src/lib/source/source.ts';
import { symlinkMode, type Zipped, zipOf } from '../../support/zip.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`../../fixtures/archives/${name}`, import.meta.url));

let dir: string;
let root: string;
let archive: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-archive-'));
  root = join(dir, 'app');
  mkdirSync(root);
  archive = join(dir, 'app.zip');
  mkdirSync(cacheDir());
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), text);
  chmodSync(join(root, path), mode);
}

const cacheDir = (): string => join(dir, 'cache');
const zip = (...entries: Zipped[]): void => writeFileSync(archive, zipOf(entries));

async function list(path = archive) {
  const warnings: string[] = [];
  const listing = await listSource(path, { cacheDir: cacheDir(), warn: (message) => warnings.push(message) });
  const entries = [...listing.layerEntries()].map(({ type, name, mode }) => `${type} ${mode?.toString(8)} ${name}`);
  const { contentHash, files, bytes } = listing;
  const packed = await packSource(listing, { cacheDir: cacheDir() });
  packed.discard();
  listing.close();
  return { contentHash, totals: { entries: listing.entries, files, bytes }, digest: packed.layer.digest, entries, warnings };
}

/** The folder of the fixtures. */
function putFixture({ links = true } = {}): void {
  put('Procfile.txt', 'bin/run');
  put('bin/run', '#!/bin/sh\necho hello\n', 0o755);
  put('docs/größe.txt', `${Array.from({ length: 400 }, (_, index) => index + 1).join('\n')}\n`, 0o600);
  put('docs/nothing', '');
  if (links) {
    symlinkSync('../bin/run', join(root, 'docs/link'));
    mkdirSync(join(root, 'empty'));
    chmodSync(join(root, 'empty'), 0o755);
  }
  for (const folder of ['bin', 'docs']) chmodSync(join(root, folder), 0o755);
}

describe('an archive has the content hash and the layer of the folder', () => {
  test.each(['info-zip.zip', 'info-zip-64.zip'])('%s', async (name) => {
    putFixture();
    expect(await list(fixture(name))).toEqual(await list(root));
  });

  test('python.zip, which has no entries for folders', async () => {
    putFixture({ links: false });
    expect(await list(fixture('python.zip'))).toEqual(await list(root));
  });

  test('with a .cfignore and files that are never pushed', async () => {
    const names = ['.cfignore', '.git/HEAD', 'a/manifest.yml', 'a/x.log', 'b/keep.log', 'c/d'];
    for (const name of names) put(name, name === '.cfignore' ? '*.log\n!keep.log\n' : name);
    for (const folder of ['a', 'b', 'c']) chmodSync(join(root, folder), 0o755);
    zip(...names.map((name) => ({ name, content: name === '.cfignore' ? '*.log\n!keep.log\n' : name })));
    const listed = await list();
    expect(listed).toEqual(await list(root));
    expect(listed.entries).toEqual(['directory 755 a', 'directory 755 b', 'file 644 b/keep.log', 'directory 755 c', 'file 644 c/d']);
  });
});

test('an archive may follow a shell script, with offsets that count it or not', async () => {
  putFixture();
  const plain = readFileSync(fixture('info-zip.zip'));
  const script = Buffer.from('#!/bin/sh\nexec java -jar "$0"\n');
  writeFileSync(archive, Buffer.concat([script, plain]));
  const folder = await list(root);
  expect(await list()).toEqual(folder);
  // As `zip -A` corrects them.
  expect(await list(fixture('script.jar'))).toEqual(folder);
});

test('a jar without modes gets those of cf', async () => {
  expect((await list(fixture('java.jar'))).entries).toEqual([
    ...['directory 755 META-INF', 'file 744 META-INF/MANIFEST.MF', 'file 744 Procfile.txt', 'directory 755 bin', 'file 744 bin/run'],
    ...['directory 755 docs', 'file 744 docs/größe.txt', 'file 744 docs/link', 'file 744 docs/nothing', 'directory 755 empty'],
  ]);
});

test('stored content, ./, backslashes, code page 437 and a folder that is there twice are read', async () => {
  zip(
    { name: './a/', mode: 0o040700 },
    { name: 'a\\b', content: 'stored', says: { method: 0 } },
    { name: 'a/', mode: 0o040750 },
    { name: Buffer.from([0x94]), says: { flags: 0 } },
    { name: 'ö2', says: { flags: 0 } },
  );
  expect((await list()).entries).toEqual(['directory 750 a', 'file 644 a/b', 'file 644 ö', 'file 644 ö2']);
});

test('a device is left out with a warning', async () => {
  zip({ name: 'a' }, { name: 'null', mode: 0o020666 });
  expect(await list()).toMatchObject({
    entries: ['file 644 a'],
    warnings: ["'null' is a device, a named pipe or a socket and is left out."],
  });
});

const content = 'content '.repeat(100);

test.each<[string, Zipped[], string]>([
  ['an entry above the folder', [{ name: '../a' }], 'invalid relative path: ../a'],
  ['an absolute path', [{ name: '/a' }], 'absolute path: /a'],
  ['a path with a drive', [{ name: 'C:\\a' }], 'absolute path: C:/a'],
  ['a path with ..', [{ name: 'a/../b' }], 'invalid relative path'],
  ['an empty name in a path', [{ name: 'a//b' }], "The entry 'a//b' of '%' has a name that no file in a folder can have."],
  ['a dot in a path', [{ name: 'a/./b' }], 'has a name that no file in a folder can have.'],
  ['a null character', [{ name: 'a\0b' }], 'has a name that no file in a folder can have.'],
  ['a name that is not UTF-8', [{ name: Buffer.from([0xff]) }], 'has a name that no file in a folder can have.'],
  ['a file that is there twice', [{ name: 'a' }, { name: './a' }], "The entry 'a' of '%' is there twice."],
  ['a file in place of a folder', [{ name: 'a/b' }, { name: 'a' }], "The entry 'a' of '%' is there twice."],
  ['a folder in place of a file', [{ name: 'a' }, { name: 'a/' }], "The entry 'a' of '%' is there twice."],
  ['a file below a file', [{ name: 'a' }, { name: 'a/b/c' }], "The entry 'a/b/c' of '%' lies below 'a', which is no folder."],
  [
    'a file through a link',
    [{ name: 'l', content: 'd', mode: symlinkMode }, { name: 'd/' }, { name: 'l/x' }],
    "lies below 'l', which is no folder.",
  ],
  [
    'a link to the outside',
    [{ name: 'd/l', content: '../../x', mode: symlinkMode }],
    "Symlink 'd/l' points outside of the pushed folder, to '../../x'.",
  ],
  ['a link to an absolute path', [{ name: 'l', content: '/etc/passwd', mode: symlinkMode }], "Symlink 'l' points outside"],
  ['a link without a target', [{ name: 'l', mode: symlinkMode }], "The entry 'l' of '%' is a link without a valid target."],
  ['a link with an endless target', [{ name: 'l', content: 'x'.repeat(5000), mode: symlinkMode }], 'longer than any path'],
  ['a .cfignore that is too large', [{ name: '.cfignore', content: '#'.repeat(1024 * 1024 + 1) }], 'is larger than 1 MB'],
  ['an encrypted file', [{ name: 'a', content, says: { flags: 0x801 } }], "The entry 'a' of '%' is encrypted."],
  ['an unknown compression', [{ name: 'a', content, says: { method: 93 } }], 'is compressed in a way that kf does not read (method 93).'],
  ['a wrong checksum', [{ name: 'a', content, says: { crc: 1 } }], "The entry 'a' of '%' is damaged: its checksum (CRC-32) is wrong."],
  [
    'a file that ends early',
    [{ name: 'a', content, says: { compressedSize: 5 } }],
    "The entry 'a' of '%' is damaged: unexpected end of file.",
  ],
  ['a file that is larger than it says', [{ name: 'a', content, says: { size: 10 } }], "The entry 'a' of '%' is damaged: too many bytes"],
  [
    'a file that is smaller than it says',
    [{ name: 'a', content, says: { size: 1000 } }],
    "The entry 'a' of '%' is damaged: not enough bytes",
  ],
  [
    'more bytes than any app',
    ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, says: { size: 0xfffffffe } })),
    "The archive '%' has more than 16G when it is unpacked.",
  ],
])('%s is refused', async (_, entries, message) => {
  zip(...entries);
  await expect(list()).rejects.toMatchObject({
    code: expect.stringMatching(/^(?:usage|upload)$/) as string,
    message: expect.stringContaining(message.replace('%', archive)) as string,
  });
});

test.each<[string, (bytes: Buffer) => Buffer, string]>([
  ['no archive', () => Buffer.from('console.log(1)'), 'End of central directory record signature not found'],
  ['an empty file', () => Buffer.alloc(0), 'cannot be read as a zip, jar or war'],
  ['an archive without its end', (bytes) => bytes.subarray(0, -30), 'cannot be read as a zip, jar or war'],
  ['an archive without its beginning', (bytes) => bytes.subarray(20), 'cannot be read as a zip, jar or war'],
])('%s is refused before anything is read of it, and named', async (_, change, message) => {
  writeFileSync(archive, change(zipOf([{ name: 'a', content }])));
  const refusal = { code: 'usage', message: expect.stringContaining(message) as string, details: { file: archive } };
  await expect(assertSource(archive)).rejects.toMatchObject(refusal);
  await expect(list()).rejects.toMatchObject(refusal);
});

test('an archive with more entries than any app is refused', async () => {
  writeFileSync(archive, zipOf([{ name: 'a' }], { count: 1_000_001 }));
  await expect(assertSource(archive)).rejects.toThrow('has 1000001 entries, and 1000000 are the most that kf reads.');
});

test('an archive of which nothing is pushed is empty, and one file is enough', async () => {
  zip({ name: '.git/HEAD' }, { name: '.gitignore' });
  await expect(assertSource(archive)).rejects.toMatchObject({ code: 'usage', message: `No app files found in '${archive}'` });
  zip({ name: 'app.js' });
  await assertSource(archive);
});

test('an archive that is overwritten after it was listed fails the packing', async () => {
  const stored = (text: string): Zipped => ({ name: 'a', content: text, says: { method: 0 } });
  zip(stored('before'));
  const listing = await listSource(archive, { cacheDir: cacheDir() });
  zip(stored('behind'));
  await expect(packSource(listing, { cacheDir: cacheDir() })).rejects.toThrow("The entry 'a' of");
  listing.close();
  expect(readdirSync(cacheDir())).toEqual([]);
});

test('an archive can be interrupted', async () => {
  zip({ name: 'a', content });
  await expect(assertSource(archive, AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
  await expect(listSource(archive, { cacheDir: cacheDir(), signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
});
