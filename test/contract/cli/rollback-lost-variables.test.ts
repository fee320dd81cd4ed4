// `rollback` of an app whose Secret with the variables was deleted, with stops and starts in between. Other rollbacks are in revisions.test.ts.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { changeOf } from '../../../src/lib/api/held.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';
import { RevisionScene } from '../../support/revision-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;
let revisions: RevisionScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  revisions = new RevisionScene(scene);
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const twoRevisions = (): Promise<[string, string]> => revisions.twoRevisions();
const variables = (): Record<string, string> => revisions.variables();
const loseVariables = (): Promise<unknown> => scene.cluster.memory.delete(secretType, ns, revisions.envSecret);
const droplet = (): string | undefined => scene.app().spec.currentDropletRef?.name;
const rollback = (...flags: string[]): Promise<number> => revisions.rollback(...flags);

describe('rollback', () => {
  it.each([
    ['missing', []],
    ['missing', ['--version', '2']],
    ['made again', []],
    ['made again', ['--version', '2']],
    ['made again after the stop', []],
    ['made again after the stop', ['--version', '2']],
  ])('of a stopped app whose variables are lost brings back those of the revision that served last: %s, %j', async (how, flags) => {
    const [, second] = await twoRevisions();
    revisions.serves(2);
    await loseVariables();
    if (how === 'made again') {
      await scene.ok('set-env', 'shop', 'NEW', 'x');
      await scene.ok('set-env', 'shop', 'OTHER', 'y');
    }
    await scene.ok('stop', 'shop');
    if (how === 'made again after the stop') await scene.ok('set-env', 'shop', 'NEW', 'x');
    expect(await rollback(...flags)).toBe(2);
    expect([droplet(), variables()]).toEqual([second, { SIZE: '1' }]);
  });

  it('of a stopped app with a newer version that failed brings back the variables of the one that served last', async () => {
    const [first] = await twoRevisions();
    revisions.serves(2, { deployed: 1 });
    await scene.ok('stop', 'shop');
    await loseVariables();
    expect(await rollback()).toBe(1);
    expect([droplet(), variables()]).toEqual([first, { COLOUR: 'red' }]);
  });

  it('of a stopped app accepts the mark that an earlier version wrote, which named the stop', async () => {
    await twoRevisions();
    revisions.serves(2);
    await scene.ok('stop', 'shop');
    const marks = { [annotations.variablesLost]: changeOf(scene.app()) };
    await scene.cluster.memory.mergePatch(secretType, ns, revisions.envSecret, { metadata: { annotations: marks } });
    expect(await rollback()).toBe(2);
  });

  it.each([['before the stop'], ['after the stop']])('no longer brings back lost variables after a start: set %s', async (when) => {
    const [first] = await twoRevisions();
    revisions.serves(2);
    await loseVariables();
    if (when === 'before the stop') await scene.ok('set-env', 'shop', 'SIZE', '1');
    await scene.ok('stop', 'shop');
    if (when === 'after the stop') await scene.ok('set-env', 'shop', 'SIZE', '1');
    // The settings are the same, so the start makes no revision.
    await scene.ok('start', 'shop');
    revisions.serves(2);
    expect((await run('rollback', 'shop', '--version', '2', '-f')).stderr).toContain('is the same as the deployed revision.');
    expect(await rollback()).toBe(1);
    expect(droplet()).toBe(first);
  });

  it('no longer brings back lost variables after a start by another tool, which writes no change of its own', async () => {
    await twoRevisions();
    revisions.serves(2);
    await loseVariables();
    await scene.ok('stop', 'shop');
    await scene.ok('set-env', 'shop', 'SIZE', '1');
    await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { spec: { desiredState: 'STARTED' } });
    revisions.serves(2);
    expect(await rollback()).toBe(1);
  });

  it('goes past a start with the variables that were set after it had waited for lost ones', async () => {
    const [, second] = await twoRevisions();
    await scene.ok('restart', 'shop');
    revisions.serves(3, { deployed: 2, lacksSettings: true });
    await loseVariables();
    await scene.ok('set-env', 'shop', 'NEW', 'x');
    await revisions.recorded(4, second, { NEW: 'x' });
    revisions.serves(4);
    expect(await rollback()).toBe(2);
    expect(variables()).toEqual({ SIZE: '1' });
  });
});
