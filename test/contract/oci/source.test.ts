import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DirectConnection, directConnection } from '../../../src/lib/oci/http.ts';
import { RegistryClient } from '../../../src/lib/oci/registry.ts';
import { listSource } from '../../../src/lib/source/source.ts';
import { fetchSource } from '../../../src/lib/source/fetch.ts';
import { packSource, pushSource, type SourcePushOptions } from '../../../src/lib/source/pack.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const repository = 'space/app-packages';
let dir: string;
let registry: ScriptedRegistry;
let connection: DirectConnection;
let client: RegistryClient;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'kf-source-'));
  mkdirSync(join(dir, 'app'));
  mkdirSync(join(dir, 'out'));
  registry = await ScriptedRegistry.start();
  connection = directConnection(registry.host);
  client = new RegistryClient({ send: connection.send, retryDelaysMs: [1] });
});
afterEach(async () => {
  connection.close();
  await registry.stop();
  rmSync(dir, { recursive: true, force: true });
});

const cacheDir = (): string => join(dir, 'cache');

async function push(more: Partial<SourcePushOptions> = {}) {
  const listing = await listSource(join(dir, 'app'), { cacheDir: cacheDir() });
  const packed = await packSource(listing, { cacheDir: cacheDir(), compression: 'gzip' });
  listing.close();
  const options = { client, repository, tag: 'p', annotations: { 'kf.cloudfoundry.org/content-hash': listing.contentHash } };
  return { ...(await pushSource(packed, { ...options, ...more })), reused: packed.reused };
}

/** Not compressible, so that the layer is as large as the file. */
function noise(bytes: number): Buffer {
  let state = 1;
  return Buffer.from(Array.from({ length: bytes }, () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 24));
}

test('a folder is the same in the build as it was when it was pushed', async () => {
  writeFileSync(join(dir, 'app', 'run.sh'), '#!/bin/sh', { mode: 0o755 });
  writeFileSync(join(dir, 'app', 'ünï'), 'ö');
  const { digest } = await push();
  const result = await fetchSource({ client, repository, digest, target: join(dir, 'out') });
  expect(result).toEqual({ files: 2, bytes: 11 });
  expect(readFileSync(join(dir, 'out', 'ünï'), 'utf8')).toBe('ö');
  expect(readdirSync(cacheDir()).filter((name) => name.startsWith('layer-'))).toEqual([]);
});

/** Assigns the files in the cache to a process that has ended. */
function killOwner(): void {
  const { pid } = spawnSync('true');
  for (const name of readdirSync(cacheDir()))
    renameSync(join(cacheDir(), name), join(cacheDir(), name.replace(`.${process.pid}.`, `.${pid}.`)));
}

test('a push after a killed one continues with the same layer in the same upload', async () => {
  writeFileSync(join(dir, 'app', 'big'), noise(3_000_000));
  const killed = new AbortController();
  registry.switches.intercept = ({ method }) => {
    if (method === 'PATCH' && registry.methods().filter((name) => name === 'PATCH').length === 3) killed.abort();
    return undefined;
  };
  await expect(push({ chunkBytes: 1_000_000, signal: killed.signal })).rejects.toMatchObject({ name: 'AbortError' });
  delete registry.switches.intercept;
  killOwner();
  const result = await push({ chunkBytes: 1_000_000 });
  expect(result.reused).toBe(true);
  expect(result.layerBytesSent).toBeLessThan(1_100_000);
  expect(registry.methods().filter((name) => name === 'POST')).toHaveLength(2);
  await fetchSource({ client, repository, digest: result.digest, target: join(dir, 'out') });
  expect(readFileSync(join(dir, 'out', 'big'))).toEqual(noise(3_000_000));
});

test('a cached layer with damaged bytes is deleted, so that the next push packs it again', async () => {
  writeFileSync(join(dir, 'app', 'a'), 'a');
  registry.switches.intercept = () => 500;
  await expect(push({ stallDelaysMs: [] })).rejects.toMatchObject({ code: 'upload' });
  delete registry.switches.intercept;
  killOwner();
  const kept = readdirSync(cacheDir()).find((name) => name.endsWith('.layer')) ?? '';
  const bytes = readFileSync(join(cacheDir(), kept));
  writeFileSync(join(cacheDir(), kept), bytes.fill(0, bytes.length - 4));
  await expect(push()).rejects.toMatchObject({ details: { codes: ['DIGEST_INVALID'] } });
  expect(await push()).toMatchObject({ reused: false });
});

test.each([
  ['a digest that is not there', `sha256:${'0'.repeat(64)}`, 'not-found', 'is not in the registry'],
  ['a tag', 'latest', 'usage', 'is not a digest'],
])('fetching %s is refused', async (_, digest, code, message) => {
  await expect(fetchSource({ client, repository, digest, target: join(dir, 'out') })).rejects.toMatchObject({
    code,
    message: expect.stringContaining(message),
  });
});

test('a layer with damaged bytes in the registry is not accepted as the source', async () => {
  writeFileSync(join(dir, 'app', 'a'), noise(100_000));
  const { digest } = await push();
  for (const bytes of registry.blobs.values()) if (bytes.length > 50_000) bytes[50_000] = (bytes[50_000] ?? 0) ^ 1;
  await expect(fetchSource({ client, repository, digest, target: join(dir, 'out') })).rejects.toMatchObject({ code: 'upload' });
});
