// `rollback` while no controller has recorded the app's last change, and after a cancellation. Other rollbacks are in revisions.test.ts.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';
import { push, RevisionScene } from '../../support/revision-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;
let revisions: RevisionScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  revisions = new RevisionScene(scene);
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const droplet = (): string | undefined => scene.app().spec.currentDropletRef?.name;
const rollback = (...flags: string[]): Promise<number> => revisions.rollback(...flags);

/** Something new with which version 2 is replaced. */
const changes: Record<string, () => Promise<unknown>> = {
  source: () => {
    scene.source('c');
    return scene.ok(...push);
  },
  variable: async () => {
    await scene.ok('set-env', 'shop', 'SIZE', '2');
    await scene.ok('restart', 'shop');
  },
  command: () => scene.ok(...push, '-c', 'serve third'),
};

describe('rollback', () => {
  it.each(
    Object.keys(changes).flatMap((what): [string, string[]][] => [
      [what, []],
      [what, ['--version', '2']],
    ]),
  )('of a change that is not recorded yet returns to the version that serves: %s, %j', async (what, flags) => {
    const [, second] = await revisions.twoRevisions();
    revisions.serves(2);
    await changes[what]?.();
    expect(await rollback(...flags)).toBe(2);
    expect([droplet(), revisions.variables(), scene.cluster.memory.all(kinds.process).map(({ spec }) => spec.command)]).toEqual([
      second,
      { SIZE: '1' },
      [undefined],
    ]);
  });

  it('after a cancellation returns to the version before the one that serves, which it refuses', async () => {
    const [first, second] = await revisions.twoRevisions();
    await revisions.recorded(3, 'canceled', { SIZE: '1' });
    const id = scene.app().metadata.annotations?.[annotations.deployId];
    await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { spec: { rollout: { id, canceled: true } } });
    revisions.serves(3, { deployed: 2 });
    const same = await scene.cli.run(['rollback', 'shop', '--version', '2', '-f']);
    expect([same.code, same.stderr]).toEqual([1, expect.stringContaining('is the same as the deployed revision.')]);
    expect([await rollback(), droplet()]).toEqual([1, first]);
    expect(second).not.toBe(first);
  });

  it('after a cancellation returns to the one that serves for what the canceled change has left', async () => {
    const [, second] = await revisions.twoRevisions();
    await revisions.recorded(3, 'canceled', { SIZE: '1' });
    const id = scene.app().metadata.annotations?.[annotations.deployId];
    await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { spec: { rollout: { id, canceled: true } } });
    revisions.serves(3, { deployed: 2 });
    await scene.ok('set-env', 'shop', 'SIZE', '3');
    expect([await rollback(), droplet(), revisions.variables()]).toEqual([2, second, { SIZE: '1' }]);
  });

  it.each(['no controller has taken up', 'is under way'])('repeated while one %s goes to the same version', async (state) => {
    const [first] = await revisions.twoRevisions();
    revisions.serves(2);
    expect([await rollback(), droplet()]).toEqual([1, first]);
    if (state === 'is under way') {
      await revisions.recorded(3, first, { COLOUR: 'red' }, 'serve first');
      revisions.serves(3, { deployed: 2 });
    }
    expect([await rollback(), droplet()]).toEqual([1, first]);
  });

  it.each(['failed', 'was canceled'])('after one that %s goes to the version that serves', async (state) => {
    const [first, second] = await revisions.twoRevisions();
    revisions.serves(2);
    expect([await rollback(), droplet()]).toEqual([1, first]);
    await revisions.recorded(3, first, { COLOUR: 'red' }, 'serve first');
    const id = scene.app().metadata.annotations?.[annotations.deployId] ?? '';
    if (state === 'failed') revisions.serves(3, { deployed: 2 }, { deployment: { id, phase: 'Failed' } });
    else {
      await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { spec: { rollout: { id, canceled: true } } });
      revisions.serves(3, { deployed: 2 });
    }
    expect([await rollback(), droplet()]).toEqual([2, second]);
  });

  it('of a restart that is not recorded yet returns to the version before', async () => {
    const [first] = await revisions.twoRevisions();
    revisions.serves(2);
    await scene.ok('restart', 'shop');
    expect(await rollback()).toBe(1);
    expect(droplet()).toBe(first);
  });
});
