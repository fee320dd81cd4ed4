// What reaches from one org or space into another: copies of source code, and quotas that are deleted while orgs and spaces have them.

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf } from '../support/kf.ts';
import { until } from '../support/until.ts';

const org = 'other-places';
let kf: Kf;
let there: Kf;

beforeAll(async () => {
  kf = await Kf.create('admin');
  there = await Kf.create('admin', { KF_ORG: org, KF_SPACE: 'stage' });
  await kf.ok('create-org', org);
  await there.ok('create-space', 'stage', '-o', org);
});
afterAll(async () => {
  await kf.run(['delete', 'places-source', '-r', '-f']);
  await kf.run(['delete-org', org, '-f']);
  for (const quota of ['places-large', 'places-spare']) await kf.run(['delete-org-quota', quota, '-f']);
  await Promise.all([kf.remove(), there.remove()]);
});

test('copy-source builds and runs the source of an app in a space of another org', async () => {
  await kf.ok('push', 'places-source', '-p', path.resolve('test/fixtures/apps/node-hello'), '-m', '64M', '--no-route', '--no-start');
  await there.ok('create-app', 'places-copy');
  await there.ok('create-route', 'apps.localhost', '-n', 'places-copy');
  const copied = await kf.ok('copy-source', 'places-source', 'places-copy', '-o', org, '-s', 'stage');
  expect(copied.stdout).toMatch(
    new RegExp(`^Copying source from app places-source to target app places-copy in org ${org} / space stage as .+\\.\\.\\.\n`),
  );
  await there.ok('map-route', 'places-copy', 'apps.localhost', '-n', 'places-copy');
  expect(await get('places-copy.apps.localhost')).toMatchObject({ status: 200 });
  // The copy needs nothing of the app that it comes from.
  await kf.ok('delete', 'places-source', '-r', '-f');
  await there.ok('restage', 'places-copy');
  expect(await get('places-copy.apps.localhost')).toMatchObject({ status: 200 });
});

test('delete-org-quota keeps a quota that an org has, and deletes it when none has it', async () => {
  for (const quota of ['places-large', 'places-spare']) await kf.ok('create-org-quota', quota, '-m', '8G', '-r', '10');
  await kf.ok('set-org-quota', org, 'places-large');
  const refused = await kf.run(['delete-org-quota', 'places-large', '-f']);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('This quota is applied to one or more organizations.')]);
  await kf.ok('set-org-quota', org, 'places-spare');
  await kf.ok('delete-org-quota', 'places-large', '-f');
  expect((await kf.ok('org-quotas')).stdout).not.toContain('places-large');
  expect((await kf.ok('org', org)).stdout).toMatch(/^quota: +places-spare$/m);
});

test('delete-space-quota lifts the quota from the spaces that have it', async () => {
  for (const quota of ['places-none', 'places-unused']) await there.ok('create-space-quota', quota, '-r', '0');
  await there.ok('delete-space-quota', 'places-unused', '-f');
  await there.ok('set-space-quota', 'stage', 'places-none');
  const route = ['create-route', 'apps.localhost', '-n', 'places-second'];
  await until('the quota to hold', async () => (await there.run(route)).stderr.includes("The space quota 'places-none' allows 0 routes"));
  await there.ok('delete-space-quota', 'places-none', '-f');
  await until('the quota to be lifted', async () => (await there.run(route)).code === 0);
  expect((await there.ok('space', 'stage')).stdout).toMatch(/^quota: +kf-limits$/m);
  expect((await there.ok('space-quotas')).stdout).not.toContain('places-');
});
