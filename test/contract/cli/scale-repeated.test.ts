// `kf scale -m` that is run again after a failure or an interruption: it starts what the one before did not, and waits for the result.

import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { changeOf } from '../../../src/lib/api/held.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  await scene.ok('push', 'shop', '-p', 'app', '-m', '256M', '-k', '512M');
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const scale = (...sizes: string[]): Promise<CliRun> => scene.cli.run(['scale', 'shop', ...sizes, '-f']);
const web = () => scene.cluster.memory.all(kinds.process)[0];
const deployId = (): string | undefined => scene.app().metadata.annotations?.[annotations.deployId];
/** Runs a command until it follows the app. @returns its end, in a list: what is in one is not awaited here */
async function untilAwaited(run: () => Promise<CliRun>): Promise<Promise<CliRun>[]> {
  const watches = (): number => scene.cluster.server.callsOf('GET .*/cfapps').filter(({ query }) => query.has('watch')).length;
  const before = watches();
  const running = run();
  await expect.poll(watches).toBeGreaterThan(before);
  return [running];
}

const fails = { reason: 'Crashed', message: 'The app ran out of memory.' };

it('fails again as long as the sizes do not serve, and succeeds when they do', async () => {
  scene.failure = fails;
  for (let tries = 1; tries <= 2; tries += 1) {
    const before = deployId();
    expect(await scale('-m', '16M')).toMatchObject({ code: 1, stderr: expect.stringContaining(fails.message) as string });
    expect(deployId()).not.toBe(before);
  }
  scene.failure = undefined;
  expect(await scale('-m', '16M')).toMatchObject({ code: 0 });
  expect(web()?.spec.memoryMB).toBe(16);
});

it.each([
  ['is still under way', { phase: 'Starting' }],
  ['was not seen by the controller yet', { id: 'before' }],
])('waits for the result of a change that %s', async (_, deployment) => {
  // The controller does nothing by itself.
  scene.cluster.memory.intercept = () => undefined;
  scene.setStatus(kinds.app, nameOf(scene.app()), { deployment });
  const before = deployId();
  const [running] = await untilAwaited(() => scale('-k', '512M'));
  scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { id: before, phase: 'Failed', ...fails } });
  expect(await running).toMatchObject({ code: 1, stderr: expect.stringContaining(fails.message) as string });
  expect(deployId()).toBe(before);
});

it.each([
  ['a push', ['push', 'shop', '-p', 'app']],
  ['a restart', ['restart', 'shop']],
  ['another scale', ['scale', 'shop', '-m', '512M', '-f']],
])('leaves the change of %s to its end, and both succeed', async (_, command) => {
  scene.source('b');
  scene.isStarting = true;
  const first = scene.cli.run(command);
  await expect.poll(() => scene.app().status?.deployment?.phase).toBe('Starting');
  const before = deployId();
  const [again] = await untilAwaited(() => scale('-m', `${web()?.spec.memoryMB}M`));
  scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { phase: 'Serving' } });
  expect([await first, await again]).toMatchObject([{ code: 0 }, { code: 0 }]);
  expect(deployId()).toBe(before);
});

it('starts a process that has its sizes only for the next start', async () => {
  const held = { metadata: { annotations: { [annotations.held]: changeOf(scene.app()) } } };
  await scene.cluster.memory.mergePatch(kinds.process, ns, nameOf(web()), held);
  const before = deployId();
  expect(await scale('-m', '256M')).toMatchObject({ code: 0 });
  expect(deployId()).not.toBe(before);
});

it('changes nothing when the instances have the sizes, nor for a stopped app or beside a canary', async () => {
  const before = deployId();
  expect(await scale('-m', '256M', '-k', '512M')).toMatchObject({ code: 0 });
  expect(deployId()).toBe(before);
  scene.source('b');
  await scene.ok('push', 'shop', '-p', 'app', '--strategy', 'canary');
  const ofCanary = deployId();
  expect(await scale('-m', '256M')).toMatchObject({ code: 0 });
  expect(deployId()).toBe(ofCanary);
  await scene.ok('stop', 'shop');
  const ofStop = deployId();
  expect(await scale('-m', '256M')).toMatchObject({ code: 0 });
  expect(deployId()).toBe(ofStop);
});
