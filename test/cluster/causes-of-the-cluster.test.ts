// Cause codes of what a cluster does to an app without the app's fault: its operator's policies add volumes, hide events, move routes and shorten builds.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CauseCode } from '../../src/lib/api/causes.ts';
import { takenName } from '../support/cause-fixtures.ts';
import { CausePolicies } from '../support/cause-policies.ts';
import { installingApp } from '../support/installing-app.ts';
import { ringEnv } from '../support/kf.ts';
import { TestWorld, type Member } from '../support/members.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const sample = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const world = new TestWorld();
let folder: string;
let place: { org: string; space: string };
let developer: Member;
let auditor: Member;
let policies: CausePolicies;

/** Pods with this size get a volume that does not exist, and the kubelet's words about the checks of apps with that size are lost. */
const [volumeMemory, silentMemory] = ['66M', '67M'];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-causes-'));
  place = await world.space();
  [developer, auditor] = [await world.member('spaceDeveloper', place), await world.member('spaceAuditor', place)];
  policies = new CausePolicies(place.space)
    .addsMissingVolume(volumeMemory, 'not-there')
    .movesRoutes('causes-route-not-programmed.')
    .shortensBuilds(2)
    .losesEvents('Unhealthy');
  await policies.apply();
});
afterAll(async () => {
  await policies.remove();
  await world.remove();
  await rm(folder, { recursive: true, force: true });
});

test('a build whose pod is ended by its deadline has the code build-timeout, with that deadline', async () => {
  const ran = await developer.kf.run(['push', 'causes-late', '-p', await installingApp(folder, 'late', 'sleep 60'), '--json']);
  expect(ran.code, ran.stdout).toBe(1);
  const { error } = JSON.parse(ran.stdout) as { error: { message: string; details: { cause: string } } };
  expect([error.details.cause, error.message]).toEqual(['build-timeout', expect.stringContaining('longer than 2 s')]);
  expect(await why(auditor.kf, 'causes-late')).toMatchObject({ state: 'failed', cause: 'build-timeout' });
});

const sleeps = ['-c', 'sleep 600'];

test.each<[string, CauseCode, string[], RegExp]>([
  ['a volume that does not exist', 'volume', ['-m', volumeMemory, '--no-route', '-u', 'process', ...sleeps], /not-there/],
  ['a check that nobody explains', 'start-timeout', ['-m', silentMemory, '-t', '5', ...sleeps], /within 5 s/],
  ['a route that the gateway refuses', 'route-not-programmed', ['-m', '64M'], /causes-route-not-programmed/],
])('an app that fails because of %s has the code %s, which an auditor reads later', async (_, cause, flags, said) => {
  const app = `causes-${cause}`;
  const ran = await developer.kf.run(['push', app, '-o', sample, ...flags, '--json']);
  expect(ran.code, ran.stdout).toBe(1);
  const { error } = JSON.parse(ran.stdout) as { error: { message: string; details: { cause: string } } };
  expect([error.details.cause, error.message]).toEqual([cause, expect.stringMatching(said)]);
  expect(await why(auditor.kf, app)).toMatchObject({ state: 'failed', cause });
});

test('the route that the gateway refuses has the code route-not-programmed too', async () => {
  expect(await why(auditor.kf, '--route', 'causes-route-not-programmed.apps.localhost')).toMatchObject({
    state: 'failed',
    cause: 'route-not-programmed',
  });
});

test('an app whose name belongs to one that cannot end has the code name-taken', async () => {
  const letGo = await takenName(developer.kf, place.space, 'causes-name');
  try {
    await until('the refused name', async () => (await why(auditor.kf, 'causes-name')).cause === 'name-taken');
  } finally {
    await letGo();
  }
});
