// kf as a pod or a CI container runs it: a random UID without a name, a home that cannot be written or none at all, an empty TERM and LANG=C.

import { chmodSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
});
afterEach(async () => {
  chmodSync(scene.cli.home, 0o755);
  await scene.stop();
});
afterAll(() => bundle.remove());

/** A UID that no file of users names. It owns the home, which has no right to write for anybody. */
const asNobody = 'exec unshare --user --map-user=54321 --map-group=54321';

function run(argv: string[], home: 'read-only' | 'none'): Promise<CliRun> {
  chmodSync(scene.cli.home, 0o555);
  const unset = home === 'none' ? '-u HOME -u CF_HOME ' : '';
  // Without a home the cache would be in the machine's root folder, which this UID may write if the tests run as root.
  const XDG_CACHE_HOME = path.join(scene.cli.home, 'no-cache');
  return scene.cli.run(argv, { env: { TERM: '', LANG: 'C', LC_ALL: 'C', XDG_CACHE_HOME }, script: `${asNobody} env ${unset}"$@"` });
}

it.skipIf(process.platform !== 'linux').each(['read-only', 'none'] as const)(
  'every step of a deployment works with a home: %s',
  async (home) => {
    const lines = [
      ['target'],
      ['push', 'shop', '-p', 'app'],
      ['apps'],
      ['app', 'shop'],
      ['set-env', 'shop', 'COLOUR', 'blue'],
      ['restart', 'shop'],
      ['create-user-provided-service', 'db', '-p', '{"uri":"x"}'],
      ['delete', 'shop', '-f'],
    ];
    for (const argv of lines) {
      const { code, stdout, stderr } = await run(argv, home);
      expect([argv[0], code, code === 0 ? '' : stdout + stderr]).toEqual([argv[0], 0, '']);
      expect(stdout + stderr, argv.join(' ')).not.toMatch(/\u001B|\r|^\s+at \S/m);
    }
  },
);
