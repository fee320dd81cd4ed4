// What kf itself writes during a push: its cache, perhaps in the folder that is pushed as in CI systems where that is the home, and traces.

import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { annotations } from '../../../src/lib/api/group.ts';
import { bundleForTests } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

it('takes neither the cache in a home that is pushed, nor the file that CF_TRACE names there', async () => {
  const push = () => scene.cli.run(['push', 'shop', '-p', '.'], { env: { CF_TRACE: 'trace.log' } });
  expect(await push()).toMatchObject({ code: 0 });
  expect(existsSync(path.join(scene.cli.home, '.cache/kf/source'))).toBe(true);
  expect(existsSync(path.join(scene.cli.home, 'trace.log'))).toBe(true);
  expect(await push()).toMatchObject({ code: 0, stdout: expect.stringContaining('App shop is unchanged') as string });
  expect(scene.packages()).toHaveLength(1);
});

it('create-package takes neither of them', async () => {
  await scene.ok('create-app', 'shop');
  const env = { CF_TRACE: path.join(scene.cli.home, 'trace.log') };
  for (const round of [1, 2])
    expect(await scene.cli.run(['create-package', 'shop', '-p', '.'], { env }), `round ${round}`).toMatchObject({ code: 0 });
  const [first, second] = scene.packages().map(({ metadata }) => metadata.annotations?.[annotations.contentHash]);
  expect(first).toMatch(/^sha256:/);
  expect(second).toBe(first);
});

it('a push of files that cannot be read leaves no temporary cache behind', async () => {
  const inHome = (name: string): string => path.join(scene.cli.home, name);
  const env = { XDG_CACHE_HOME: inHome('app/server.js'), TMPDIR: inHome('tmp') };
  mkdirSync(env.TMPDIR);
  // The checks before a push read no more than three entries.
  for (const name of ['a', 'b', 'c']) writeFileSync(inHome(`app/${name}`), '');
  symlinkSync('/etc/passwd', inHome('app/z'));
  const run = await scene.cli.run(['push', 'shop', '-p', 'app'], { env });
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining("Symlink 'z' points outside") as string });
  expect(run.stderr).toContain('cannot be used, so the next push reads every file again');
  expect(readdirSync(env.TMPDIR).filter((name) => name.startsWith('kf-'))).toEqual([]);
});
