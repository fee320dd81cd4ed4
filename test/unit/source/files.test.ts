import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { comparePaths, resolveSource, type SourceEntry, walkSource } from '../../../src/lib/source/files.ts';
import { assertSource } from '../../../src/lib/source/source.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kf-files-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, text = '', mode = 0o644): void {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), text);
  chmodSync(join(root, path), mode);
}

async function walk(warn?: (message: string) => void): Promise<SourceEntry[]> {
  const entries: SourceEntry[] = [];
  for await (const entry of walkSource(root, warn ? { warn } : {})) entries.push(entry);
  return entries;
}

const paths = async (): Promise<string[]> => (await walk()).map(({ path }) => path);

test('files, folders and links are listed with their kinds, sizes and permission bits', async () => {
  put('run.sh', '#!/bin/sh\n', 0o755);
  put('data', '12345', 0o640);
  mkdirSync(join(root, 'empty'));
  symlinkSync('data', join(root, 'link'));
  expect(await walk()).toEqual([
    expect.objectContaining({ path: 'data', type: 'file', size: 5, mode: 0o640 }),
    expect.objectContaining({ path: 'empty', type: 'directory', size: 0 }),
    expect.objectContaining({ path: 'link', type: 'symlink', target: 'data' }),
    expect.objectContaining({ path: 'run.sh', type: 'file', size: 10, mode: 0o755 }),
  ]);
});

test('parents come before children and names are sorted by their bytes, whatever the order in the folder', async () => {
  for (const path of ['b/x', 'a.txt', 'a/z', 'a/b/c', 'B', 'é', 'z', '日本', '\u{1f600}', '\uff5e']) put(path);
  const found = await paths();
  expect(found).toEqual(['B', 'a', 'a/b', 'a/b/c', 'a/z', 'a.txt', 'b', 'b/x', 'z', 'é', '日本', '\uff5e', '\u{1f600}']);
  expect([...found].reverse().sort(comparePaths)).toEqual(found);
});

test('only the .cfignore of the root is used, not one in a folder', async () => {
  put('.cfignore', 'skip\n!deep/skip/keep');
  put('skip/a');
  put('deep/skip/keep');
  put('deep/skip/lose');
  put('other/.cfignore', 'wanted');
  put('other/wanted');
  put('.git/config');
  put('other/manifest.yml');
  expect(await paths()).toEqual(['deep', 'deep/skip/keep', 'other', 'other/wanted']);
});

test('links to folders are not followed', async () => {
  put('dir/file');
  symlinkSync('dir', join(root, 'to-dir'));
  symlinkSync('.', join(root, 'dir', 'loop'));
  symlinkSync('nowhere', join(root, 'dangling'));
  expect(await paths()).toEqual(['dangling', 'dir', 'dir/file', 'dir/loop', 'to-dir']);
});

test.each([
  ['/etc/passwd', 'link'],
  ['../x', 'link'],
  ['..', 'link'],
  ['a/../../x', 'link'],
  ['../../x', 'dir/link'],
])('a link to %s at %s is refused with its name and an alternative', async (target, path) => {
  put('dir/file');
  symlinkSync(target, join(root, path));
  await expect(walk()).rejects.toMatchObject({
    code: 'upload',
    message: `Symlink '${path}' points outside of the pushed folder, to '${target}'.`,
    hints: [expect.stringContaining(`/${path}`)],
  });
});

test('a link that reaches a file inside by a detour is kept', async () => {
  put('dir/file');
  symlinkSync('../other/../dir/file', join(root, 'dir', 'link'));
  expect(await paths()).toEqual(['dir', 'dir/file', 'dir/link']);
});

test('an ignored link may point anywhere', async () => {
  put('.cfignore', '/venv');
  mkdirSync(join(root, 'venv'));
  symlinkSync('/usr/bin/python3', join(root, 'venv', 'python'));
  put('a');
  expect(await paths()).toEqual(['a']);
});

test('sockets and named pipes are left out with a warning', async () => {
  put('a');
  execFileSync('mkfifo', [join(root, 'pipe')]);
  const server = createServer().listen(join(root, 'sock'));
  await new Promise((resolve) => server.once('listening', resolve));
  const warnings: string[] = [];
  const entries = await walk((message) => warnings.push(message));
  server.close();
  expect(entries.map(({ path }) => path)).toEqual(['a']);
  expect(warnings).toEqual(["'pipe' is a named pipe and is left out.", "'sock' is a socket and is left out."]);
});

test('a name that is not UTF-8 is refused', async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${root}/bad`), Buffer.from([0xff])]), '');
  await expect(walk()).rejects.toThrow('is not valid UTF-8');
});

test('the pushed folder itself may be a link', () => {
  mkdirSync(join(root, 'real'));
  symlinkSync('real', join(root, 'app'));
  expect(resolveSource(join(root, 'app'))).toEqual({ root: join(root, 'real'), isFolder: true });
});

test.each([
  ['flag', "Incorrect Usage: The specified path './none' does not exist."],
  ['manifest', 'File not found locally, make sure the file exists at given path ./none'],
] as const)('a missing path from a %s is reported with its origin', (namedBy, message) => {
  expect(() => resolveSource('./none', namedBy)).toThrow(expect.objectContaining({ code: 'not-found', message }));
});

test('a file is an archive, and anything else is refused', () => {
  put('app.jar');
  expect(resolveSource(join(root, 'app.jar'))).toEqual({ root: join(root, 'app.jar'), isFolder: false });
  expect(() => resolveSource('/dev/null')).toThrow("The path '/dev/null' is neither a folder nor a file.");
});

test('an aborted signal ends the walk of a large folder', async () => {
  for (let i = 0; i < 600; i++) writeFileSync(join(root, `f${i}`), '');
  const walking = walkSource(root, { signal: AbortSignal.abort() });
  await expect(
    (async () => {
      for await (const entry of walking) expect(entry.type).toBe('file');
    })(),
  ).rejects.toMatchObject({ name: 'AbortError' });
});

test('a walk in which everything is ignored can be aborted too', async () => {
  // So many lines that this walk takes far longer than the timer of the abort.
  put('.cfignore', `${'x*y*z\n'.repeat(20_000)}*\n!none`);
  for (let i = 0; i < 2000; i++) writeFileSync(join(root, `f${i}`), '');
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 1);
  await expect(assertSource(root, controller.signal)).rejects.toMatchObject({ name: 'AbortError' });
});

test('a .cfignore that is too large or not a file is refused, and its path is named', async () => {
  put('a');
  put('.cfignore', '#'.repeat(1024 * 1024 + 1));
  await expect(assertSource(root)).rejects.toMatchObject({
    code: 'usage',
    message: expect.stringContaining("'.cfignore' is larger than 1 MB") as string,
  });
  rmSync(join(root, '.cfignore'));
  symlinkSync('/dev/zero', join(root, '.cfignore'));
  await expect(assertSource(root)).rejects.toMatchObject({ code: 'usage', message: "'.cfignore' is no file." });
});

test('a folder without files to push is distinguished from one with a single file', async () => {
  put('.cfignore', '*.log\n');
  put('debug.log');
  await expect(assertSource(root)).rejects.toMatchObject({ code: 'usage', message: `No app files found in '${root}'` });
  put('deep/one.txt');
  await assertSource(root);
});

test('a folder in which only a Dockerfile could be built is refused, and the hint says what to do', async () => {
  put('Dockerfile');
  put('.dockerignore');
  await expect(assertSource(root)).rejects.toMatchObject({
    code: 'usage',
    message: expect.stringContaining(`In '${root}' there is only a Dockerfile, which kf does not build: builds run without root`) as string,
    hints: ['docker build -t IMAGE . && docker push IMAGE && kf push APP --docker-image IMAGE'],
  });
  put('main.py');
  await assertSource(root);
});
