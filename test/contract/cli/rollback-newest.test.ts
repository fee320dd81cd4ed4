// `rollback` to the newest revision of an app. Other rollbacks are in revisions.test.ts.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundleForTests } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';
import { RevisionScene } from '../../support/revision-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;
let revisions: RevisionScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  revisions = new RevisionScene(scene);
  await revisions.twoRevisions();
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const same = 'Unable to rollback. The code and configuration you are rolling back to is the same as';

describe('rollback to the newest revision', () => {
  it('of a stopped app says that the app is stopped, and how to start it', async () => {
    await scene.ok('stop', 'shop');
    expect(await scene.cli.run(['rollback', 'shop', '--version', '2', '-f'])).toMatchObject({
      code: 1,
      stderr: `${same} the newest revision '2', and app 'shop' is stopped.\n\nTIP:\n   kf start shop\n`,
    });
  });

  it('of an app that has never served says so, and how to start it again', async () => {
    revisions.serves(2, { deployed: null });
    expect(await scene.cli.run(['rollback', 'shop', '--version', '2', '-f'])).toMatchObject({
      code: 1,
      stderr: `${same} the newest revision '2', and app 'shop' has not served by it.\n\nTIP:\n   kf restart shop\n`,
    });
  });

  it('after it has failed promises no new revision', async () => {
    revisions.serves(2, { deployed: 1 });
    const asked = await scene.cli.run(['rollback', 'shop', '--version', '2'], { stdin: 'n\n' });
    expect(asked.stdout).toContain(
      "Revision '2' is the newest one of app 'shop'. Rolling back to it starts the app with the settings from that revision again.\n",
    );
    expect(asked.stdout).not.toContain('will create a new revision');
  });
});
