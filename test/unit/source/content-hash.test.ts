import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openSourceCache } from '../../../src/lib/source/cache.ts';
import { listSource } from '../../../src/lib/source/source.ts';

let dir: string;
let root: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kf-hash-'));
  root = join(dir, 'app');
  mkdirSync(root);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

/** Files are trusted two seconds after their last change: the test moves the clock and does not wait. */
function waitUntilTrusted(): void {
  const now = Date.now() + 2100;
  vi.spyOn(Date, 'now').mockReturnValue(now);
}

const cacheDir = (): string => join(dir, 'cache');

function put(path: string, text: string, base = root): void {
  mkdirSync(join(base, dirname(path)), { recursive: true });
  writeFileSync(join(base, path), text);
}

async function list(path = root, cache = cacheDir()) {
  const listing = await listSource(path, { cacheDir: cache });
  const entries = [...listing.layerEntries()];
  listing.close();
  return { ...listing, layer: entries };
}

const hash = async (): Promise<string> => (await list()).contentHash;

test('a listing has the totals, and the entries of the layer with the sizes and hashes that they must have', async () => {
  put('a', 'hello');
  put('d/b', '');
  symlinkSync('a', join(root, 'l'));
  chmodSync(join(root, 'a'), 0o755);
  chmodSync(join(root, 'd'), 0o755);
  chmodSync(join(root, 'd/b'), 0o644);
  const listing = await list();
  expect(listing).toMatchObject({
    entries: 4,
    files: 2,
    bytes: 5,
    bytesRead: 5,
    contentHash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
  const emptySha = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  const helloSha = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
  expect(listing.layer).toEqual([
    { type: 'file', name: 'a', mode: 0o755, source: join(root, 'a'), expect: { size: 5, sha256: helloSha } },
    { type: 'directory', name: 'd', mode: 0o755 },
    { type: 'file', name: 'd/b', mode: 0o644, source: join(root, 'd/b'), expect: { size: 0, sha256: emptySha } },
    { type: 'symlink', name: 'l', mode: 0o777, target: 'a' },
  ]);
});

test('the same content in another folder at another time has the same hash', async () => {
  const other = join(dir, 'other');
  for (const base of [root, other]) {
    put('a', 'x', base);
    put('d/b', 'y', base);
  }
  chmodSync(join(other, 'a'), 0o664);
  utimesSync(join(other, 'a'), 1, 1);
  expect((await list(other)).contentHash).toBe((await list(root)).contentHash);
});

test.each<[string, () => void]>([
  ['content', () => put('a', 'changed')],
  ['a new file', () => put('new', '')],
  ['a new empty folder', () => mkdirSync(join(root, 'new'))],
  ['a file that is gone', () => rmSync(join(root, 'd/b'))],
  ['another name', () => renameSync(join(root, 'a'), join(root, 'a2'))],
  ['an executable bit', () => chmodSync(join(root, 'a'), 0o755)],
  [
    'another link target',
    () => {
      rmSync(join(root, 'l'));
      symlinkSync('d', join(root, 'l'));
    },
  ],
  [
    'a link in place of a file',
    () => {
      rmSync(join(root, 'd/b'));
      symlinkSync('y', join(root, 'd/b'));
    },
  ],
])('%s changes the hash', async (_, change) => {
  put('a', 'x');
  put('d/b', 'y');
  symlinkSync('a', join(root, 'l'));
  const before = await hash();
  change();
  expect(await hash()).not.toBe(before);
});

test('names of folders and files cannot be confused', async () => {
  put('a/b', 'x');
  const first = await hash();
  rmSync(join(root, 'a'), { recursive: true });
  put('a', 'b');
  expect(await hash()).not.toBe(first);
});

test('a file that is old enough for the index is not read again, and a fresh one is', async () => {
  put('old', '12345');
  waitUntilTrusted();
  put('fresh', '123');
  utimesSync(join(root, 'fresh'), Date.now() / 1000, Date.now() / 1000);
  expect(await list()).toMatchObject({ bytesRead: 8 });
  expect(await list()).toMatchObject({ bytesRead: 3 });
});

test('a change that keeps size and modification time is detected', async () => {
  put('a', 'one');
  utimesSync(join(root, 'a'), 1000, 1000);
  waitUntilTrusted();
  const before = await hash();
  put('a', 'two');
  utimesSync(join(root, 'a'), 1000, 1000);
  const after = await list();
  expect(after.bytesRead).toBe(3);
  expect(after.contentHash).not.toBe(before);
});

test('new, changed and missing files between known files do not disturb the index', async () => {
  const names = Array.from({ length: 50 }, (_, i) => `d${i % 7}/f${i}`);
  for (const name of names) put(name, name);
  waitUntilTrusted();
  await list();
  rmSync(join(root, 'd3'), { recursive: true });
  put('d1/a-new', '1234567');
  put('zz', '1');
  const mixed = await list();
  expect(mixed.bytesRead).toBe(8);
  expect(mixed.contentHash).toBe((await list(root, join(dir, 'cold'))).contentHash);
});

test.each<[string, (text: string) => string]>([
  ['cut in the middle', (text) => text.slice(0, text.length / 2)],
  ['of another format', (text) => text.replace('kf-stat-index-1', 'kf-stat-index-0')],
  ['of another folder', (text) => text.replace(root, `${root}x`)],
  ['filled with noise', () => '\0\xff{"a":'],
  ['empty', () => ''],
])('an index that is %s costs time but not correctness', async (_, damage) => {
  for (let i = 0; i < 20; i++) put(`f${i}`, String(i));
  waitUntilTrusted();
  const before = await hash();
  const [index = ''] = readdirSync(cacheDir());
  writeFileSync(join(cacheDir(), index), damage(readFileSync(join(cacheDir(), index), 'utf8')));
  const after = await list();
  expect(after.contentHash).toBe(before);
  expect(after.bytesRead).toBeGreaterThan(0);
});

test('two folders have two indexes, and a run leaves nothing else', async () => {
  put('a', 'x');
  put('b', 'x', join(dir, 'other'));
  await list();
  await list(join(dir, 'other'));
  await list();
  expect(readdirSync(cacheDir())).toEqual([expect.stringMatching(/^index-\w+\.jsonl$/), expect.stringMatching(/^index-\w+\.jsonl$/)]);
});

test("an empty folder is a usage error with cf's message, and leaves nothing in the cache", async () => {
  put('.git/config', 'x');
  put('manifest.yml', 'x');
  await expect(list()).rejects.toMatchObject({ code: 'usage', message: `No app files found in '${root}'` });
  expect(readdirSync(cacheDir())).toEqual([]);
});

test('a cache that cannot be written causes a warning, and its replacement is removed', () => {
  writeFileSync(join(dir, 'file'), '');
  const warnings: string[] = [];
  const cache = openSourceCache(join(dir, 'file', 'cache'), (message) => warnings.push(message));
  expect(warnings).toEqual([expect.stringContaining('the next push reads every file again')]);
  expect(readdirSync(cache.dir)).toEqual([]);
  cache.close();
  expect(() => readdirSync(cache.dir)).toThrow('ENOENT');
});

test('files of killed runs are removed after a day, and indexes stay', () => {
  mkdirSync(cacheDir());
  const dayAgo = Date.now() / 1000 - 25 * 3600;
  for (const name of ['index-1.jsonl', 'index-1.jsonl.x.tmp', 'layer-1-zstd.layer']) {
    put(name, '', cacheDir());
    utimesSync(join(cacheDir(), name), dayAgo, dayAgo);
  }
  put('layer-2-zstd.layer', '', cacheDir());
  openSourceCache(cacheDir());
  expect(readdirSync(cacheDir()).sort()).toEqual(['index-1.jsonl', 'layer-2-zstd.layer']);
});

test('what kf writes itself is left out: the folder of the index, and files that are named, also by way of a link', async () => {
  put('a', 'hello');
  put('logs/b', '');
  symlinkSync(root, join(dir, 'link'));
  const before = await hash();
  put('.cache/kf/source/other', '');
  put('logs/trace.log', 'x');
  const listing = await listSource(root, {
    cacheDir: join(dir, 'link/.cache/kf/source'),
    own: [join(dir, 'link/logs/trace.log'), join(root, 'none')],
  });
  expect([...listing.layerEntries()].map(({ name }) => name)).toEqual(['.cache', '.cache/kf', 'a', 'logs', 'logs/b']);
  listing.close();
  rmSync(join(root, '.cache'), { recursive: true });
  rmSync(join(root, 'logs/trace.log'));
  expect(await hash()).toBe(before);
});
