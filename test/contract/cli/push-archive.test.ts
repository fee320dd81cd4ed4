// A push of a zip, jar or war is a push of the folder that it would be unpacked to.

import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleForTests } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';
import { zipOf } from '../../support/zip.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  scene.source('content');
  chmodSync(home('app', 'server.js'), 0o644);
  writeFileSync(home('app.zip'), zipOf([{ name: 'server.js', content: 'content' }]));
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const home = (...names: string[]): string => path.join(scene.cli.home, ...names);
const digests = (): string[] => scene.packages().map(({ spec }) => spec.source?.registry.image.split('@')[1] ?? '');

describe('push of an archive', () => {
  it('makes the image of the folder', async () => {
    await scene.ok('push', 'shop', '-p', 'app');
    writeFileSync(home('manifest.yml'), 'applications:\n- name: other\n  path: app.zip\n');
    await scene.ok('push', '-f', home('manifest.yml'));
    expect(digests()).toHaveLength(2);
    expect(digests()[0]).toMatch(/^sha256:/);
    expect(digests()[1]).toBe(digests()[0]);
  });

  it('is unchanged if the folder was pushed before, and changed if the archive is', async () => {
    await scene.ok('push', 'shop', '-p', 'app');
    const unchanged = 'App shop is unchanged: nothing uploaded, built or restarted.\n';
    expect((await scene.ok('push', 'shop', '-p', 'app.zip')).stdout).toContain(unchanged);
    writeFileSync(home('app.zip'), zipOf([{ name: 'server.js', content: 'changed' }]));
    expect((await scene.ok('push', 'shop', '-p', 'app.zip')).stdout).not.toContain(unchanged);
    expect(scene.packages()).toHaveLength(2);
  });

  it('fails before anything is written if the file is damaged or no archive, and names it', async () => {
    for (const bytes of [Buffer.from('no zip'), zipOf([{ name: '../../etc/passwd' }])]) {
      writeFileSync(home('app.jar'), bytes);
      const run = await scene.cli.run(['push', 'shop', '-p', 'app.jar']);
      expect([run.code, run.stderr]).toEqual([
        1,
        expect.stringContaining(`The file '${home('app.jar')}' cannot be read as a zip, jar or war: `),
      ]);
      expect(run.stderr).toContain('\nTIP:\n   -p takes a folder, or a zip, jar or war file:\n   kf push APP -p PATH\n');
    }
    writeFileSync(home('app.jar'), zipOf([{ name: 'a', content: 'a', says: { crc: 1 } }]));
    const run = await scene.cli.run(['push', 'shop', '-p', 'app.jar']);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`The entry 'a' of '${home('app.jar')}' is damaged`)]);
    expect(scene.packages()).toEqual([]);
  });
});
