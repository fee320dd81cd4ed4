// A source of 100,000 files: packed and uploaded by a process of its own, whose peak of memory does not follow their number.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundlePackRun } from '../../bench/pack.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const folders = 200;
const filesPerFolder = 500;
const repository = 'space/many-packages';
const dir = mkdtempSync(path.join(tmpdir(), 'kf-many-'));
let registry: ScriptedRegistry;

const nameOf = (index: number): string => String(index).padStart(3, '0');
const contentOf = (folder: number, file: number): string => `module.exports = ${folder * filesPerFolder + file};\n`;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Makes the tree, and the content hash that it has by the definition of one line per entry. */
function makeTree(root: string): string {
  const hash = createHash('sha256').update('kf-content-1\n');
  for (let folder = 0; folder < folders; folder++) {
    const name = `d${nameOf(folder)}`;
    mkdirSync(path.join(root, name), { recursive: true });
    hash.update(`${JSON.stringify(['directory', false, name, ''])}\n`);
    for (let file = 0; file < filesPerFolder; file++) {
      const within = `${name}/f${nameOf(file)}.js`;
      const content = contentOf(folder, file);
      writeFileSync(path.join(root, within), content, { mode: 0o644 });
      hash.update(`${JSON.stringify(['file', false, within, sha256(content)])}\n`);
    }
  }
  return `sha256:${hash.digest('hex')}`;
}

beforeAll(async () => void (registry = await ScriptedRegistry.start()));
afterAll(async () => {
  await registry.stop();
  rmSync(dir, { recursive: true, force: true });
}, 60_000);

interface PackRun {
  files: number;
  entries: number;
  contentHash: string;
  digest: string;
  layerBytes: number;
  peakMiB: number;
}

/** Through a shell: a process inherits the memory peak of its parent, and this process is large. */
function runPack(program: string, ...args: string[]): Promise<PackRun> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', '"$@"; exit $?', 'sh', process.execPath, program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve(JSON.parse(stdout) as PackRun) : reject(new Error(`it ended with ${String(code)}`))));
  });
}

/** Names and contents of the files of a layer, as one hash in their order; and how many there are. */
async function readLayer(layer: Buffer): Promise<{ files: number; wrong: string[] }> {
  const unpack = extract();
  const seen = { files: 0, wrong: [] as string[] };
  unpack.on('entry', ({ type, name }, stream, next) => {
    let content = '';
    stream.on('data', (bytes) => (content += String(bytes)));
    stream.on('end', () => {
      if (type === 'file') {
        const [, folder = '', file = ''] = /d(\d{3})\/f(\d{3})\.js$/.exec(name) ?? [];
        if (seen.files !== Number(folder) * filesPerFolder + Number(file) || content !== contentOf(Number(folder), Number(file)))
          seen.wrong.push(name);
        seen.files += 1;
      }
      next();
    });
  });
  await pipeline(Readable.from([layer]), createGunzip(), unpack);
  return seen;
}

test('100,000 files are uploaded completely, in at most 150 MiB', async () => {
  const root = path.join(dir, 'tree');
  const contentHash = makeTree(root);
  const program = await bundlePackRun(dir);
  const ran = await runPack(program, root, path.join(dir, 'cache'), registry.host, repository, 'gzip');
  expect(ran).toMatchObject({ files: folders * filesPerFolder, entries: folders * filesPerFolder + folders, contentHash });
  const { bytes } = registry.manifest(repository, 'bench') ?? {};
  const { layers } = JSON.parse(String(bytes)) as { layers: { digest: string; size: number }[] };
  expect(layers).toMatchObject([{ digest: ran.digest, size: ran.layerBytes }]);
  const layer = registry.blobs.get(ran.digest) ?? Buffer.alloc(0);
  expect(`sha256:${createHash('sha256').update(layer).digest('hex')}`).toBe(ran.digest);
  expect(await readLayer(layer)).toEqual({ files: folders * filesPerFolder, wrong: [] });
  expect(ran.peakMiB).toBeLessThanOrEqual(150);
});
