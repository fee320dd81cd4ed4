import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { layerFromEntries } from '../../../src/lib/oci/layer.ts';
import { fetchLockedPackages, lockedPackages, startNpmMirror, withoutCollisions } from '../../../tools/cluster/images/npm-mirror.ts';
import type { NpmMirror } from '../../../tools/cluster/images/npm-mirror.ts';
import { archiveName } from '../../../tools/cluster/images/npm-package.ts';

let folder: string;
let mirror: NpmMirror | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kf-mirror-'));
});
afterEach(async () => {
  await mirror?.close();
  mirror = undefined;
  rmSync(folder, { recursive: true, force: true });
});

async function publish(name: string, version: string, more: object = {}): Promise<void> {
  const manifest = Buffer.from(JSON.stringify({ name, version, ...more }));
  const output = join(folder, archiveName(name, version));
  await layerFromEntries([{ type: 'file', name: 'package/package.json', source: manifest }], { output, compression: 'gzip' });
}

test('the packages of a lockfile are listed once each, without links, folders, and packages without a registry or for other systems', () => {
  const lockfile = join(folder, 'package-lock.json');
  const packages = {
    '': { version: '1.0.0' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b/node_modules/a': { version: '1.0.0' },
    'node_modules/@scope/c': { version: '2.0.0' },
    'node_modules/alias': { name: 'd', version: '3.0.0' },
    'node_modules/local': { link: true, resolved: 'local' },
    'node_modules/from-git': { version: '1.0.0', resolved: 'git+ssh://git@example.com/from-git.git#1' },
    'node_modules/mac-only': { version: '1.0.0', os: ['darwin'] },
    'node_modules/other-processor': { version: '1.0.0', os: ['linux'], cpu: ['!' + process.arch] },
    local: { version: '1.0.0' },
  };
  writeFileSync(lockfile, JSON.stringify({ lockfileVersion: 3, packages }));
  expect(lockedPackages([lockfile])).toEqual([
    { name: 'a', version: '1.0.0' },
    { name: '@scope/c', version: '2.0.0' },
    { name: 'd', version: '3.0.0' },
  ]);
});

test('a scoped package is found under its encoded name, with an archive of the announced hash', async () => {
  await publish('@scope/a', '1.0.0', { dependencies: { b: '1' }, scripts: { postinstall: 'x' } });
  await publish('@scope/a', '1.1.0');
  mirror = await startNpmMirror({ host: '127.0.0.1', port: 0, tarballDir: folder });
  const answer = (await (await fetch(`${mirror.url}@scope%2fa`)).json()) as {
    versions: Record<string, { dependencies: object; hasInstallScript: boolean; dist: { tarball: string; integrity: string } }>;
  };
  expect(Object.keys(answer.versions)).toEqual(['1.0.0', '1.1.0']);
  const version = answer.versions['1.0.0'];
  expect(version).toMatchObject({ dependencies: { b: '1' }, hasInstallScript: true });
  const archive = await fetch(version?.dist.tarball ?? '');
  const hash = await crypto.subtle.digest('SHA-512', await archive.arrayBuffer());
  expect(version?.dist.integrity).toBe(`sha512-${Buffer.from(hash).toString('base64')}`);
});

test('an archive that was added later is served, also at the address that a lockfile recorded at another registry', async () => {
  mirror = await startNpmMirror({ host: '127.0.0.1', port: 0, tarballDir: folder });
  expect((await fetch(`${mirror.url}late`)).status).toBe(404);
  await publish('late', '1.0.0');
  await publish('@scope/late', '2.0.0-rc.1');
  expect((await fetch(`${mirror.url}late`)).status).toBe(200);
  expect((await fetch(`${mirror.url}api/npm/late/-/late-1.0.0.tgz`)).status).toBe(200);
  expect((await fetch(`${mirror.url}@scope/late/-/late-2.0.0-rc.1.tgz`)).status).toBe(200);
});

test('a scoped package and a package of the same name without scope are distinguished', async () => {
  await publish('send', '1.0.0', { description: 'the server' });
  mirror = await startNpmMirror({ host: '127.0.0.1', port: 0, tarballDir: folder });
  await publish('@types/send', '1.0.0', { description: 'the types' });
  for (const name of ['@types/send', 'send']) {
    const packument = (await (await fetch(`${mirror.url}${name.replace('/', '%2f')}`)).json()) as {
      versions: Record<string, { dist: { tarball: string; integrity: string } }>;
    };
    const { tarball = '', integrity } = packument.versions['1.0.0']?.dist ?? {};
    const inFolder = tarball.replace(mirror.url, `${mirror.url}api/npm/`);
    for (const url of [tarball, inFolder]) {
      const hash = await crypto.subtle.digest('SHA-512', await (await fetch(url)).arrayBuffer());
      expect([name, `sha512-${Buffer.from(hash).toString('base64')}`]).toEqual([name, integrity]);
    }
  }
});

test('packages that npm would write to one file are downloaded separately', () => {
  const [scoped, plain, other] = [
    { name: '@types/send', version: '1.0.0' },
    { name: 'types-send', version: '1.0.0' },
    { name: 'send', version: '1.0.0' },
  ];
  expect(withoutCollisions([scoped, plain, other])).toEqual([[scoped, other], [plain]]);
});

test('an archive that differs from the lockfile is reported immediately by name, and is not stored', async () => {
  await publish('send', '1.0.0');
  const lockfile = join(folder, 'package-lock.json');
  const packages = { 'node_modules/send': { version: '1.0.0', integrity: `sha512-${Buffer.alloc(64).toString('base64')}` } };
  writeFileSync(lockfile, JSON.stringify({ lockfileVersion: 3, packages }));
  await expect(fetchLockedPackages([lockfile], folder, () => undefined)).rejects.toThrow(/archive of send@1\.0\.0 is not the one/);
  expect(existsSync(join(folder, archiveName('send', '1.0.0')))).toBe(false);
});

test.each([
  ['a package that it does not hold', 'gone', 'GET', 404],
  ['a file outside its folder', 'a/-/..%2f..%2f..%2fetc%2fpasswd', 'GET', 404],
  ['a publication', 'a', 'PUT', 405],
])('%s is refused', async (_, path, method, status) => {
  await publish('a', '1.0.0');
  mirror = await startNpmMirror({ host: '127.0.0.1', port: 0, tarballDir: folder });
  expect((await fetch(mirror.url + path, { method })).status).toBe(status);
});
