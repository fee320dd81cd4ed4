// Revisions: what makes one, what is kept of it, and what happens when the controller is killed in between.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { configMapType, secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { heldUntilRestart } from '../../../src/lib/api/held.ts';
import { printSettings, readRecords, settingsIn, type RevisionRecord } from '../../../src/lib/api/revisions.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { processOf, reported, wanted } from './deployment-scene.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';

let scene: RunScene;
afterEach(() => scene.stop());

const records = (): RevisionRecord[] => readRecords(scene.cluster.peek(configMapType, ns, `${appGuid}-revisions`));
const descriptions = (): string[] => records().map(({ description }) => description);
const secret = () => scene.cluster.peek(secretType, ns, `${appGuid}-revisions`);
/** The numbers under which settings are kept. */
const kept = (): number[] => Object.keys(secret()?.data ?? {}).map(Number);
const serving = (id: string): Promise<void> =>
  scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
const encoded = (text: string): string => Buffer.from(text).toString('base64');

let restarts = 0;
async function restart(marks: Record<string, string> = {}): Promise<void> {
  restarts += 1;
  const id = `restart-${String(restarts)}`;
  await scene.patchApp({
    metadata: { annotations: { [annotations.deployId]: id, [annotations.appRev]: String(100 + restarts), ...marks } },
    spec: { desiredState: 'STARTED' },
  });
  await serving(id);
}
const setEnv = async (value: string): Promise<void> =>
  void (await scene.cluster.mergePatch(secretType, ns, 'env', { data: { COLOUR: encoded(value) } }));

test('one that the next one replaces before the whole app serves by it is marked, and no other', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  scene.freezeGateway(true);
  await scene.deploy('good:2');
  await scene.until(() => expect(records()).toHaveLength(2));
  const third = await scene.deploy('good:3');
  await scene.until(() => expect(records()).toHaveLength(3));
  scene.freezeGateway(false);
  await serving(third);
  await serving(await scene.deploy('good:4'));
  expect(records().map(({ version, neverServed }) => [version, neverServed])).toEqual([[4, undefined], [3, false], [2, true], [1, false]]); // prettier-ignore
});

test('one that served and whose last change failed is marked, and no other', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await serving(await scene.deploy('good:2'));
  scene.limitPods(1);
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'fails', [annotations.appRev]: '200' } } });
  await reported(scene, 'fails', 'Failed');
  scene.limitPods(9);
  await serving(await scene.deploy('good:3'));
  await serving(await scene.deploy('good:4'));
  const marks = records().map(({ version, neverServed, failedLast }) => [version, neverServed, failedLast]);
  expect(marks).toEqual([[4, undefined, undefined], [3, false, undefined], [2, false, true], [1, false, undefined]]); // prettier-ignore
});

test('a start makes one when droplet, variables or commands are new, and only then', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  expect(records()).toMatchObject([{ version: 1, description: 'Initial revision.', droplet: 'build-1', settings: 1 }]);
  expect(scene.app()?.status?.revision).toMatchObject({ version: 1, deployed: 1, droplets: ['build-1'] });
  await restart();
  expect(descriptions()).toHaveLength(1);
  await setEnv('blue');
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { desiredInstances: 2 } });
  expect(descriptions()).toHaveLength(1);
  await restart();
  expect(descriptions()[0]).toBe('New environment variables deployed.');
  await serving(await scene.deploy('good:2'));
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', {
    spec: { command: 'serve', sidecars: [{ name: 'proxy', command: 'proxy' }] },
  });
  await restart();
  expect(descriptions().slice(0, 2)).toEqual(["Custom start command added for 'web' process. Sidecars updated.", 'New droplet deployed.']);
  // A revision with the settings of the one before has none of its own.
  expect(records().map(({ version, settings }) => [version, settings])).toEqual([[4, 4], [3, 2], [2, 2], [1, 1]]); // prettier-ignore
  expect(kept()).toEqual([1, 2, 4]);
  expect(settingsIn(secret(), 2)).toEqual({ env: { COLOUR: encoded('blue') }, commands: { web: '' }, sidecars: {} });
});

test('an app without a Secret for variables has one too, and no Secret without a name is asked for', async () => {
  scene = await startRunScene();
  const read: string[] = [];
  scene.cluster.intercept = (verb, type, name) => void (verb === 'get' && type === secretType && read.push(name));
  await scene.patchApp({ spec: { envSecretName: '' } });
  await serving(await scene.deploy('good:1'));
  expect(descriptions()).toEqual(['Initial revision.']);
  expect(read).not.toContain('');
});

/** The variable of the newest generation; empty when it has none. */
const colourOfNewest = (): string => {
  const [newest] = scene.cluster
    .all(kinds.appWorkload)
    .toSorted((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));
  const env = scene.cluster.peek(secretType, ns, `${newest?.metadata.name ?? ''}-env`)?.data?.['COLOUR'] ?? '';
  return Buffer.from(env, 'base64').toString();
};

test('a variable that is set after a start waits for the next one, also when the instances are made later', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setEnv('blue');
  // Set between the record of the revision and the generation, which reads the revision's own variables.
  let isSet = false;
  scene.cluster.intercept = async (verb, type, name) => {
    if (isSet || verb !== 'patch' || type.kind !== 'ConfigMap' || name !== `${appGuid}-revisions`) return;
    isSet = true;
    await setEnv('red');
  };
  await restart();
  expect(isSet).toBe(true);
  expect([descriptions()[0], colourOfNewest()]).toEqual(['New environment variables deployed.', 'blue']);
  expect(settingsIn(secret(), 2)?.env).toEqual({ COLOUR: encoded('blue') });
  await restart();
  expect([records()[0]?.version, colourOfNewest()]).toEqual([3, 'red']);
});

test('a Secret that a developer made immutable does not keep new revisions from being recorded', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await scene.cluster.mergePatch(secretType, ns, `${appGuid}-revisions`, { immutable: true });
  await setEnv('blue');
  await restart();
  expect(descriptions()).toEqual(['New environment variables deployed.', 'Initial revision.']);
  expect(kept()).toEqual([1, 2]);
  expect(secret()).not.toHaveProperty('immutable');
});

test('a revision knows where its source comes from, also when the package is gone', async () => {
  scene = await startRunScene();
  const commit = 'a'.repeat(40);
  await scene.cluster.create(kinds.package, {
    metadata: {
      name: 'p',
      namespace: ns,
      annotations: { [annotations.commit]: commit, [annotations.contentHash]: 'sha256:1', [annotations.ciRun]: 'x'.repeat(513) },
    },
    spec: { type: 'docker', appRef: { name: appGuid } },
  });
  await serving(await scene.deploy('good:1'));
  expect(records()[0]).toMatchObject({ image: 'good:1', commit, contentHash: 'sha256:1' });
  expect(records()[0]).not.toHaveProperty('ciRun');
  await scene.cluster.delete(kinds.package, ns, 'p');
  await setEnv('blue');
  await restart();
  expect(records()[0]).toMatchObject({ version: 2, image: 'good:1', commit, contentHash: 'sha256:1' });
  await serving(await scene.deploy('good:2'));
  expect(records()[0]).toMatchObject({ version: 3, image: 'good:2' });
  expect(records()[0]).not.toHaveProperty('commit');
});

test('the description names the revision of a rollback, once', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setEnv('blue');
  await restart();
  await setEnv('red');
  restarts += 1;
  await restart({ [annotations.rolledBack]: `1/restart-${String(restarts + 1)}` });
  expect(descriptions()[0]).toBe('New environment variables deployed. Rolled back to revision 1.');
  await setEnv('green');
  await restart();
  expect(descriptions()[0]).toBe('New environment variables deployed.');
});

test('a version that fails leaves the former one deployed, and its number is used', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  const id = await scene.deploy('crash:1');
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Failed' }));
  expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 1 });
  await serving(await scene.deploy('good:3'));
  expect(scene.app()?.status?.revision).toMatchObject({ version: 3, deployed: 3, droplets: ['build-3', 'build-2', 'build-1'] });
});

test('records of 100, and droplets and settings of the newest 10, are kept', async () => {
  scene = await startRunScene({ routed: false });
  await serving(await scene.deploy('good:1'));
  const old = Array.from({ length: 104 }, (_, index) => index + 1).map((version) => {
    const record = { guid: `g${String(version)}`, description: 'New droplet deployed.', droplet: `d${String(version)}`, created: 'then' };
    return [String(version), JSON.stringify({ ...record, ...(version > 93 ? { settings: version } : {}) })];
  });
  await scene.cluster.mergePatch(configMapType, ns, `${appGuid}-revisions`, { data: Object.fromEntries(old) as Record<string, string> });
  const settings = printSettings({ env: {}, commands: {}, sidecars: {} });
  const data = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [String(94 + index), settings])) as Record<string, string>;
  await scene.cluster.mergePatch(secretType, ns, `${appGuid}-revisions`, { data });
  await setEnv('blue');
  await restart();
  expect([records().length, records()[0]?.version, records().at(-1)?.version]).toEqual([100, 105, 6]);
  const newest = Array.from({ length: 11 }, (_, index) => 95 + index);
  expect([
    kept(),
    records()
      .flatMap((one) => one.settings ?? [])
      .toSorted((a, b) => a - b),
  ]).toEqual([newest, newest]);
  expect(scene.app()?.status?.revision?.droplets).toEqual([
    'build-1',
    ...Array.from({ length: 9 }, (_, index) => `d${String(104 - index)}`),
  ]);
});

test('a controller that is killed before the record is written makes it once, with the settings of now', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setEnv('blue');
  // The settings of the second revision were written, with variables that were changed since; the record was not.
  const left = printSettings({ env: {}, commands: {}, sidecars: {} });
  await scene.cluster.mergePatch(secretType, ns, `${appGuid}-revisions`, { data: { 2: left } });
  await restart();
  expect(records().map(({ version }) => version)).toEqual([2, 1]);
  expect(settingsIn(secret(), 2)?.env).toEqual({ COLOUR: encoded('blue') });
  // The record was written, and the app's status was not.
  await scene.stopController();
  // Which revision the change has replaced is known only while it is under way.
  const { replaced: _replaced, ...before } = scene.app()?.status?.revision ?? { change: '', version: 0, droplets: [] };
  await scene.cluster.mergePatch(kinds.app, ns, appGuid, { status: { revision: { ...before, change: 'old' } } }, { subresource: 'status' });
  await scene.restartController();
  await scene.until(() => expect(scene.app()?.status?.revision).toEqual(before));
  expect(records().map(({ version }) => version)).toEqual([2, 1]);
});

test('a conflict with another controller is settled before anything of the change starts', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  let conflicts = 0;
  const early: string[] = [];
  scene.cluster.intercept = (verb, type, name) => {
    if (records().length < 2 && verb === 'create' && type.kind === 'AppWorkload') early.push(name);
    if (verb !== 'patch' || type.kind !== 'ConfigMap' || conflicts === 3) return;
    conflicts += 1;
    throw apiError(409, 'Conflict', 'the object has been modified', name);
  };
  await serving(await scene.deploy('good:2'));
  expect([conflicts, records().length, early]).toEqual([3, 2, []]);
});

test('records and settings that somebody deleted do not stop a start, and numbers are not given twice', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await serving(await scene.deploy('good:2'));
  await scene.cluster.delete(configMapType, ns, `${appGuid}-revisions`);
  await serving(await scene.deploy('good:3'));
  expect(records()).toMatchObject([{ version: 3, description: 'Initial revision.' }]);
  await scene.cluster.delete(secretType, ns, `${appGuid}-revisions`);
  await serving(await scene.deploy('good:4'));
  expect(records()[0]).toMatchObject({ version: 4, settings: 4 });
  await scene.cluster.mergePatch(configMapType, ns, `${appGuid}-revisions`, { data: { 4: 'no JSON', x: '{}' } });
  await serving(await scene.deploy('good:5'));
  expect(records().map(({ version }) => version)).toEqual([5, 3]);
});

test('settings that do not fit into one Secret beside newer ones are not kept', async () => {
  scene = await startRunScene({ routed: false });
  await serving(await scene.deploy('good:1'));
  for (const letter of ['a', 'b', 'c']) {
    await setEnv(letter.repeat(300_000));
    await restart();
  }
  expect(kept()).toEqual([3, 4]);
  expect(records().map(({ version, settings }) => [version, settings])).toEqual([[4, 4], [3, 3], [2, undefined], [1, undefined]]); // prettier-ignore
});

/** Refuses the writes of the settings until the returned function is called. */
function refuseSettings(): () => void {
  let isRefused = true;
  scene.cluster.intercept = (verb, type, name) => {
    if (isRefused && (verb === 'patch' || verb === 'create') && type === secretType && name === `${appGuid}-revisions`)
      throw apiError(500, 'InternalError', 'etcdserver: request timed out', name);
  };
  return () => (isRefused = false);
}

/** Starts a change without its variables, which come back while the settings cannot be written. */
async function startsWithoutRecord(): Promise<() => void> {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await scene.cluster.delete(secretType, ns, 'env');
  const id = await scene.deploy('good:2', { rev: '1' });
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Pending', reason: 'EnvironmentLost' }));
  const allow = refuseSettings();
  await scene.cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: encoded('blue') } });
  await serving(id);
  expect(records().map(({ version, settings }) => [version, settings])).toEqual([[2, undefined], [1, 1]]); // prettier-ignore
  return allow;
}

/** Starts a look at the app. */
const touch = (): Promise<void> => scene.patchApp({ metadata: { annotations: { touched: 'yes' } } });

test('variables that could not be written when they came back are recorded later', async () => {
  const allow = await startsWithoutRecord();
  allow();
  await scene.restartController();
  await touch();
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 3, deployed: 3 }));
  expect(records()[0]).toMatchObject({ version: 3, settings: 3, description: 'New environment variables deployed.' });
  expect(settingsIn(secret(), 3)?.env).toEqual({ COLOUR: encoded('blue') });
});

test('variables that were set after the start are not recorded as those of the change', async () => {
  const allow = await startsWithoutRecord();
  await setEnv('green');
  allow();
  let looks = 0;
  scene.cluster.intercept = (verb, type, name) => void (verb === 'get' && type === secretType && name === 'env' && (looks += 1));
  await touch();
  await scene.until(() => expect(looks).toBeGreaterThan(0));
  await setEnv('blue');
  await scene.patchApp({ metadata: { annotations: { touched: 'again' } } });
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 3, deployed: 3 }));
  expect(settingsIn(secret(), 3)?.env).toEqual({ COLOUR: encoded('blue') });
});

test('settings that wait for the next start are recorded with that start', async () => {
  const allow = await startsWithoutRecord();
  const marks = heldUntilRestart(scene.app() as CFApp) as Record<string, string>;
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', {
    metadata: { annotations: marks },
    spec: { command: 'serve' },
  });
  allow();
  await touch();
  await sleep(300);
  expect(records()).toHaveLength(2);
  await restart();
  expect(settingsIn(secret(), 3)).toMatchObject({ env: { COLOUR: encoded('blue') }, commands: { web: 'serve' } });
});

test('a first try that fails is repeated with the variables that the version has', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setEnv('blue');
  const allow = refuseSettings();
  const id = await scene.deploy('good:2', { rev: '1' });
  await serving(id);
  expect(records().map(({ version }) => version)).toEqual([1]);
  await setEnv('green');
  allow();
  await touch();
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 2 }));
  expect(records()[0]).not.toHaveProperty('settings');
  await restart();
  expect([records()[0]?.version, settingsIn(secret(), 3)?.env]).toEqual([3, { COLOUR: encoded('green') }]);
});

test('other variables are recorded once when another tool stops and starts the app without another deploy-id', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await scene.patchApp({ spec: { desiredState: 'STOPPED' } });
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ phase: 'Stopped' }));
  await setEnv('blue');
  await scene.patchApp({ spec: { desiredState: 'STARTED' } });
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 2 }));
  await sleep(300);
  expect(descriptions()).toEqual(['New environment variables deployed.', 'Initial revision.']);
  expect([settingsIn(secret(), 2)?.env, colourOfNewest()]).toEqual([{ COLOUR: encoded('blue') }, 'blue']);
});

test('other variables are recorded once when another tool raises only the app-rev', async () => {
  scene = await startRunScene();
  await serving(await scene.deploy('good:1'));
  await setEnv('blue');
  await scene.patchApp({ metadata: { annotations: { [annotations.appRev]: '5' } } });
  await scene.until(() => expect(scene.app()?.status?.revision).toMatchObject({ version: 2, deployed: 2 }));
  await scene.until(() => expect(colourOfNewest()).toBe('blue'));
  await sleep(300);
  expect(descriptions()).toEqual(['New environment variables deployed.', 'Initial revision.']);
  expect(settingsIn(secret(), 2)?.env).toEqual({ COLOUR: encoded('blue') });
});

test('variables that were lost before a change that leaves a process alone are recorded when they are there again', async () => {
  scene = await startRunScene();
  const processTypes = ['web', 'worker'];
  await serving(await scene.deploy('good:1', { processTypes }));
  await wanted(scene, 'worker');
  await scene.until(() => expect(processOf(scene, 'worker')?.status?.rollout?.generations).toMatchObject([{ served: true }]));
  await scene.cluster.delete(secretType, ns, 'env');
  await scene.cluster.mergePatch(kinds.process, ns, scene.web()?.metadata.name ?? '', { spec: { memoryMB: 333 } });
  await scene.patchApp({ metadata: { annotations: { [annotations.deployId]: 'sized' } } });
  await reported(scene, 'sized', 'Pending', { reason: 'EnvironmentLost' });
  await scene.cluster.create(secretType, { metadata: { name: 'env', namespace: ns }, data: { COLOUR: encoded('blue') } });
  await serving('sized');
  await scene.until(() => expect(scene.app()?.status?.revision?.lacksSettings).toBeUndefined());
});
