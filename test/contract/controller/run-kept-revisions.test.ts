// What is kept of the revision that serves while newer ones fail.

import { afterEach, expect, test } from 'vitest';
import { surplusOf } from '../../../src/controller/builds/retention.ts';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { conditionTypes, kinds } from '../../../src/lib/api/group.ts';
import { readRecords, settingsIn, type RevisionRecord } from '../../../src/lib/api/revisions.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const records = (): RevisionRecord[] => readRecords(scene.cluster.peek(configMapType, ns, `${appGuid}-revisions`));
const secret = () => scene.cluster.peek(secretType, ns, `${appGuid}-revisions`);
/** The numbers under which settings are kept. */
const kept = (): number[] => Object.keys(secret()?.data ?? {}).map(Number);
const encoded = (text: string): string => Buffer.from(text).toString('base64');

const setEnv = async (value: string): Promise<void> =>
  void (await scene.cluster.mergePatch(secretType, ns, 'env', { data: { COLOUR: encoded(value) } }));

async function serves(image: string): Promise<void> {
  const id = await scene.deploy(image);
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
}

/** Starts a version that never serves, and waits for its record. */
async function neverServes(version: number): Promise<void> {
  await scene.deploy(`silent:${String(version)}`);
  await scene.until(() => expect(records()[0]?.version).toBe(version));
}

/** The builds that the retention deletes an hour from now; all builds of the scene have ended. */
function surplusBuilds(): string[] {
  const app = scene.cluster.peek(kinds.app, ns, appGuid);
  const succeeded = { type: conditionTypes.succeeded, status: 'True' as const, reason: 'x', message: '', lastTransitionTime: '' };
  const builds = scene.cluster.all(kinds.build).map((build) => ({ ...build, status: { ...build.status, conditions: [succeeded] } }));
  return app === undefined ? [] : surplusOf(app, builds, [], Date.now() + 3_600_000).builds.map(({ metadata }) => metadata.name);
}

test('the one that serves keeps droplet and settings, however many that fail come after it, until another one serves', async () => {
  scene = await startRunScene({ routed: false });
  await serves('good:1');
  await setEnv('blue');
  await serves('good:2');
  for (let version = 3; version <= 14; version += 1) {
    await setEnv(`colour ${String(version)}`);
    await neverServes(version);
  }
  const droplets = (from: number, to: number): string[] =>
    Array.from({ length: from - to + 1 }, (_, index) => `build-${String(from - index)}`);
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 14, deployed: 2, droplets: [...droplets(14, 5), 'build-2'] })); // prettier-ignore
  expect(surplusBuilds().toSorted()).toEqual(['build-1', 'build-3', 'build-4']);
  expect([records().find(({ version }) => version === 2)?.settings, settingsIn(secret(), 2)?.env]).toEqual([
    2,
    { COLOUR: encoded('blue') },
  ]);
  expect(kept()).toEqual([2, ...Array.from({ length: 11 }, (_, index) => 4 + index)]);
  await setEnv('red');
  await serves('good:15');
  await setEnv('green');
  await serves('good:16');
  expect(scene.app()?.status?.revision).toMatchObject({ version: 16, deployed: 16, droplets: droplets(16, 7) });
  expect(kept()).not.toContain(2);
});

test('the settings of the one that serves are kept before those of newer ones that leave no room', async () => {
  scene = await startRunScene({ routed: false });
  await setEnv('a'.repeat(300_000));
  await serves('good:1');
  for (const version of [2, 3]) {
    await setEnv(String(version).repeat(300_000));
    await neverServes(version);
  }
  expect(kept()).toEqual([1, 3]);
  expect(records().map(({ version, settings }) => [version, settings])).toEqual([[3, 3], [2, undefined], [1, 1]]); // prettier-ignore
});

test('the one that serves stays among the 100 records', async () => {
  scene = await startRunScene({ routed: false });
  await serves('good:1');
  const record = { guid: 'g', description: 'New droplet deployed.', droplet: 'd', created: 'then' };
  const data = Object.fromEntries(Array.from({ length: 99 }, (_, index) => [String(2 + index), JSON.stringify(record)])) as Record<
    string,
    string
  >;
  await scene.cluster.mergePatch(configMapType, ns, `${appGuid}-revisions`, { data });
  for (const version of [101, 102]) {
    await neverServes(version);
    expect(records().map((one) => one.version)).toEqual([...Array.from({ length: 99 }, (_, index) => version - index), 1]);
  }
  expect(records().at(-1)).toMatchObject({ version: 1, droplet: 'build-1', settings: 1 });
});
