// What a collection of the registry keeps, on folders in the layout of CNCF distribution.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { collect } from '../../../src/controller/gate/collection.ts';
import { RepositoryUse } from '../../../src/controller/gate/repository-use.ts';
import { ImageStore } from '../../../src/controller/gate/store.ts';

const now = 1_800_000_000_000;
const hour = 3_600_000;
const repository = 's-1/a-droplets';
let folder: string;
let store: ImageStore;
const root = (...names: string[]): string => join(folder, 'docker/registry/v2', ...names);
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kf-collection-'));
  store = new ImageStore(folder);
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(file: string, text: string, ageMs: number): void {
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  utimesSync(file, (now - ageMs) / 1000, (now - ageMs) / 1000);
}

function blob(text: string): string {
  const digest = hex(text);
  write(root('blobs/sha256', digest.slice(0, 2), digest, 'data'), text, 0);
  return digest;
}

function layer(text: string, ageMs = 2 * hour): string {
  const digest = blob(text);
  write(root('repositories', repository, '_layers/sha256', digest, 'link'), `sha256:${digest}`, ageMs);
  return digest;
}

function manifest(content: object, ageMs = 2 * hour): string {
  const digest = blob(JSON.stringify(content));
  write(root('repositories', repository, '_manifests/revisions/sha256', digest, 'link'), `sha256:${digest}`, ageMs);
  return digest;
}

function tag(name: string, digest: string, ageMs = 2 * hour): void {
  for (const at of ['current', `index/sha256/${digest}`])
    write(root('repositories', repository, '_manifests/tags', name, at, 'link'), `sha256:${digest}`, ageMs);
}

/** A manifest with a config and layers, which are stored too. */
function image(name: string, layers: string[], ageMs = 2 * hour): string {
  const descriptor = (text: string) => ({ digest: `sha256:${layer(text, ageMs)}` });
  return manifest({ name, config: descriptor(`config of ${name}`), layers: layers.map(descriptor) }, ageMs);
}

const has = (kind: '_layers' | '_manifests/revisions', digest: string): boolean =>
  existsSync(root('repositories', repository, kind, 'sha256', digest));
const hasTag = (name: string): boolean => existsSync(root('repositories', repository, '_manifests/tags', name));
const run = (keep: string[], { dryRun = false, at = now }: { dryRun?: boolean; at?: number } = {}) =>
  collect(store.repository(repository), { keep, unusedSince: at / 1000 - 3_600, dryRun }, at);

describe('a collection', () => {
  test('removes what nothing refers to, with its tags and the layers that only it has', async () => {
    const [kept, old] = [image('kept', ['base', 'kept']), image('old', ['base', 'old'])];
    tag('b-1', kept);
    tag('b-2', old);
    expect(await run([`sha256:${kept}`])).toEqual({ manifests: 1, layers: 2 });
    expect([has('_manifests/revisions', kept), has('_manifests/revisions', old)]).toEqual([true, false]);
    expect(['base', 'kept', 'old', 'config of kept', 'config of old'].map((text) => has('_layers', hex(text)))).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
    expect([hasTag('b-1'), hasTag('b-2')]).toEqual([true, false]);
  });

  test.each([
    { why: 'a tag that is kept names it', keep: ['latest'], ageMs: 2 * hour },
    { why: 'it was stored or found by a push less than the time ago', keep: [], ageMs: hour / 2 },
  ])('keeps an image with all its layers because $why', async ({ keep, ageMs }) => {
    const imageDigest = image('one', ['base', 'own']);
    for (const text of ['base', 'own']) layer(text);
    manifest({ config: { digest: `sha256:${hex('config of one')}` }, layers: [], name: 'unused' });
    write(root('repositories', repository, '_manifests/revisions/sha256', imageDigest, 'link'), '', ageMs);
    tag('latest', imageDigest);
    expect(await run(keep)).toEqual({ manifests: 1, layers: 0 });
    expect(has('_manifests/revisions', imageDigest)).toBe(true);
  });

  test('keeps the images of an index, and the layers of an upload whose manifest has not come yet', async () => {
    const [inner, fresh] = [image('inner', ['inner']), layer('fresh', 60_000)];
    const index = manifest({ manifests: [{ digest: `sha256:${inner}` }, { digest: 'sha256:none' }, null] });
    expect(await run([`sha256:${index}`])).toEqual({ manifests: 0, layers: 0 });
    expect([has('_manifests/revisions', inner), has('_layers', hex('inner')), has('_layers', fresh)]).toEqual([true, true, true]);
  });

  test('keeps an image that an index names and that was stored as a blob, and reads names in any case', async () => {
    const [own, other] = [layer('own'), layer('other')];
    const text = JSON.stringify({ Layers: [{ Digest: `sha256:${own}` }], 'layer\u017F': [{ digest: `sha256:${other}` }] });
    const child = layer(text);
    const index = manifest({ Manifests: [{ digest: `sha256:${child}` }] });
    expect(await run([`sha256:${index}`])).toEqual({ manifests: 0, layers: 0 });
    expect([child, own, other].map((digest) => has('_layers', digest))).toEqual([true, true, true]);
  });

  test('counts the time from the last collection that found a reference', async () => {
    const digest = image('one', ['own'], 5 * hour);
    await run([`sha256:${digest}`]);
    expect(await run([], { at: now + hour / 2 })).toEqual({ manifests: 0, layers: 0 });
    expect(await run([], { at: now + hour + 1 })).toEqual({ manifests: 1, layers: 2 });
  });

  test('only tells what would go if that is all that is asked', async () => {
    const old = image('old', ['old']);
    const told = await run([], { dryRun: true });
    expect(told.blobs?.map(({ digest }) => digest).toSorted()).toEqual([old, hex('old'), hex('config of old')].toSorted());
    expect(told.blobs?.find(({ digest }) => digest === hex('old'))?.bytes).toBe(3);
    expect(has('_manifests/revisions', old)).toBe(true);
  });

  test('removes nothing from a repository with a manifest that cannot be read', async () => {
    const digest = blob('not JSON');
    write(root('repositories', repository, '_manifests/revisions/sha256', digest, 'link'), '', 0);
    const old = image('old', ['old']);
    await expect(run([])).rejects.toThrow('JSON');
    expect(has('_manifests/revisions', old)).toBe(true);
  });

  test.each(['kept', 'inner'])('removes nothing while the text of the %s manifest is not on the volume yet', async (missing) => {
    const [kept, inner, old] = [image('kept', ['own']), image('inner', ['inner']), image('old', ['old'])];
    const index = manifest({ manifests: [{ digest: `sha256:${inner}` }] });
    const digest = missing === 'kept' ? kept : inner;
    const [file, aside] = [root('blobs/sha256', digest.slice(0, 2), digest, 'data'), join(folder, 'aside')];
    renameSync(file, aside);
    const keep = [`sha256:${kept}`, `sha256:${index}`];
    await expect(run(keep)).rejects.toThrow(`does not have the manifest sha256:${digest}`);
    expect([kept, inner, index, old].map((one) => has('_manifests/revisions', one))).toEqual([true, true, true, true]);
    expect(['own', 'inner', 'old'].map((text) => has('_layers', hex(text)))).toEqual([true, true, true]);
    renameSync(aside, file);
    expect(await run(keep)).toEqual({ manifests: 1, layers: 2 });
    expect(['own', 'inner', 'old'].map((text) => has('_layers', hex(text)))).toEqual([true, true, false]);
  });

  test('does not read what an index names that is no manifest of the repository, however large it is', async () => {
    const huge = blob('huge');
    truncateSync(root('blobs/sha256', huge.slice(0, 2), huge, 'data'), 3 * 1024 ** 3);
    const old = image('old', ['old']);
    const elsewhere = blob(JSON.stringify({ layers: [{ digest: `sha256:${layer('own')}` }] }));
    const named = [huge, elsewhere].map((digest) => ({ digest: `sha256:${digest}` }));
    const index = manifest({ config: {}, layers: [], manifests: named, MANIFESTS: null });
    expect(await run([`sha256:${index}`])).toEqual({ manifests: 1, layers: 3 });
    expect([has('_manifests/revisions', index), has('_manifests/revisions', old), has('_layers', hex('own'))]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('removes nothing from a repository with a kept manifest of more than 1 MiB', async () => {
    const [large, old] = [manifest({ layers: [], annotations: { a: ' '.repeat(1024 * 1024) } }), image('old', ['old'])];
    await expect(run([`sha256:${large}`])).rejects.toThrow('at most 1048576');
    expect(has('_manifests/revisions', old)).toBe(true);
    expect(await run([])).toEqual({ manifests: 2, layers: 2 });
  });

  test('needs no more memory for a manifest than the gate has, whatever is in it', { timeout: 60_000 }, async () => {
    const kept = layer('kept');
    const objects = Array.from({ length: 349_000 }, () => ({}));
    const [many, digest] = [manifest({ other: objects, layers: [{ digest: `sha256:${kept}` }] }), layer('surplus')];
    const program = `
      const { collect } = await import(${JSON.stringify(new URL('../../../src/controller/gate/collection.ts', import.meta.url).href)});
      const { ImageStore } = await import(${JSON.stringify(new URL('../../../src/controller/gate/store.ts', import.meta.url).href)});
      const repository = new ImageStore(${JSON.stringify(folder)}).repository('${repository}');
      console.log(JSON.stringify(await collect(repository, { keep: ['sha256:${many}'], unusedSince: ${now / 1000 - 3_600} }, ${now})));`;
    const gateHeap = ['--max-old-space-size=64', '--input-type=module', '-e', program];
    const { stdout } = await promisify(execFile)(process.execPath, gateHeap);
    expect(JSON.parse(stdout)).toEqual({ manifests: 0, layers: 1 });
    expect([has('_layers', kept), has('_layers', digest)]).toEqual([true, false]);
  });

  test('removes a manifest whose text the volume has lost, with its layers, when nothing names it any more', async () => {
    const [kept, lost] = [image('kept', ['base', 'kept']), image('lost', ['base', 'own'])];
    tag('b-1', lost);
    rmSync(root('blobs/sha256', lost.slice(0, 2), lost, 'data'));
    await expect(run([`sha256:${kept}`, 'b-1'])).rejects.toThrow(lost);
    expect(await run([`sha256:${kept}`])).toEqual({ manifests: 1, layers: 2 });
    expect([has('_manifests/revisions', lost), has('_layers', hex('own')), has('_layers', hex('base')), hasTag('b-1')]).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  test('that was killed is finished by the next one', async () => {
    const kept = image('kept', ['base']);
    const old = image('old', ['old']);
    rmSync(root('repositories', repository, '_manifests/revisions/sha256', old, 'link'));
    rmSync(root('repositories', repository, '_layers/sha256', hex('old'), 'link'));
    expect(await run([`sha256:${kept}`])).toEqual({ manifests: 1, layers: 2 });
  });
});

describe('the use of a repository', () => {
  test('prevents its collection, and nobody waits for the other', async () => {
    const use = new RepositoryUse({ settle: 0 });
    const leave = await use.enter(repository);
    expect(await use.alone(repository, () => Promise.resolve('collected'))).toBeUndefined();
    expect(await use.alone('s-1/other', () => Promise.resolve('collected'))).toBe('collected');
    leave(true);
    expect(await use.alone(repository, () => Promise.resolve('collected'))).toBe('collected');
  });

  test('waits while the repository is collected', async () => {
    const use = new RepositoryUse({ settle: 0 });
    const order: string[] = [];
    let end: () => void = () => undefined;
    const collected = use.alone(repository, () => new Promise<void>((resolve) => (end = resolve)));
    const entered = use.enter(repository).then(() => order.push('entered'));
    await use.enter('s-1/other');
    order.push('collected');
    end();
    await Promise.all([collected, entered]);
    expect(order).toEqual(['collected', 'entered']);
  });

  test('that ended without an answer, or before the gate was started again, prevents it for a while', async () => {
    let at = 0;
    const use = new RepositoryUse({ now: () => at });
    const isCollected = async (): Promise<boolean> => (await use.alone(repository, () => Promise.resolve(true))) ?? false;
    expect(await isCollected()).toBe(false);
    at = 10_000;
    expect(await isCollected()).toBe(true);
    (await use.enter(repository))(false);
    expect(await isCollected()).toBe(false);
    at += 600_001;
    expect(await isCollected()).toBe(true);
  });
});
