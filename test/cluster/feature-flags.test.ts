// What a disabled feature flag refuses to a developer of a space, and what goes on as before.

import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { changeableFlags } from '../../src/lib/cf/feature-flags.ts';
import type { Place } from '../support/developer.ts';
import { get } from '../support/http.ts';
import { Kf, ringEnv } from '../support/kf.ts';
import { displayName, TestWorld, type Member } from '../support/members.ts';
import { until } from '../support/until.ts';

const image = `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1`;
const world = new TestWorld();
let admin: Kf;
let place: Place;
let [org, space] = ['', ''];
let developer: Member;
let manager: Member;
let source: string;
const run = randomUUID().slice(0, 8);
const [shop, own] = [`shop-${run}`, `own-${run}`];

beforeAll(async () => {
  admin = await Kf.create('admin');
  place = await world.space();
  [org, space] = [await displayName('cforg', 'cf', place.org), await displayName('cfspace', place.org, place.space)];
  developer = await world.member('spaceDeveloper', place);
  manager = await world.member('organizationManager', place);
  source = path.join(await mkdtemp(path.join(tmpdir(), 'kf-source-')), 'app');
  await mkdir(source);
  await writeFile(path.join(source, 'index.html'), 'hello');
  await developer.kf.ok('push', shop, '-o', image, '-m', '64M');
});

afterAll(async () => {
  for (const flag of changeableFlags) await admin.run(['enable-feature-flag', flag]);
  await rm(path.dirname(source), { recursive: true, force: true });
  await admin.remove();
  await world.remove();
});

const refusal = (flag: string): string => `Feature Disabled: ${flag}; an operator enables it (kf enable-feature-flag ${flag})`;

/** What a flag refuses; `again` undoes what a success has made. */
interface Deed {
  flag: string;
  args: string[];
  again?: string[];
  who?: 'manager';
}

const auditor = ['ann', 'ORG', 'SPACE', 'SpaceAuditor'];
const deeds: Deed[] = [
  { flag: 'diego_docker', args: ['push', 'image', '-o', image, '-m', '64M', '--no-route'], again: ['delete', 'image', '-f'] },
  { flag: 'task_creation', args: ['run-task', shop, '--command', 'true', '--wait'] },
  {
    flag: 'route_creation',
    args: ['create-route', 'apps.localhost', '-n', `flags-${run}`],
    again: ['delete-route', 'apps.localhost', '-n', `flags-${run}`, '-f'],
  },
  { flag: 'app_scaling', args: ['scale', shop, '-i', '2'], again: ['scale', shop, '-i', '1'] },
  { flag: 'service_instance_creation', args: ['cups', 'db', '-p', '{"a":"b"}'], again: ['delete-service', 'db', '-f'] },
  { flag: 'set_roles_by_username', who: 'manager', args: ['set-space-role', ...auditor], again: ['unset-space-role', ...auditor] },
  { flag: 'unset_roles_by_username', who: 'manager', args: ['unset-space-role', ...auditor], again: ['set-space-role', ...auditor] },
];
const typed = (args: readonly string[]): string[] => args.map((word) => ({ ORG: org, SPACE: space })[word] ?? word);
const userOf = ({ who }: Deed): Kf => (who === 'manager' ? manager : developer).kf;

describe('a disabled feature flag', () => {
  test.each(deeds)('$flag refuses $args to whoever is no operator, until it is enabled', async (deed) => {
    const { flag, args, again } = deed;
    if (flag === 'unset_roles_by_username') await manager.kf.ok(...typed(again ?? []));
    await admin.ok('disable-feature-flag', flag);
    expect((await developer.kf.ok('feature-flag', flag)).stdout).toContain(`${flag}   disabled`);
    await until('the refusal', async () => {
      const ran = await userOf(deed).run(typed(args));
      expect(ran.code === 0 || ran.stderr.includes(refusal(flag)), ran.stderr).toBe(true);
      if (ran.code !== 0) return true;
      if (again !== undefined) await userOf(deed).ok(...typed(again));
      return false;
    });
    expect((await developer.kf.run(['enable-feature-flag', flag])).stderr).toContain('may not change feature flags');
    await admin.ok('enable-feature-flag', flag);
    await until('the flag to be enabled', async () => (await userOf(deed).run(typed(args))).code === 0);
    if (again !== undefined) await userOf(deed).ok(...typed(again));
  });

  test('app_bits_upload refuses source code', async () => {
    await admin.ok('disable-feature-flag', 'app_bits_upload');
    const push = ['push', 'site', '-p', source, '-m', '64M', '--no-route', '--no-start'];
    await until('the refusal', async () => {
      const { stderr } = await developer.kf.run(push);
      return stderr.includes(refusal('app_bits_upload'));
    });
    await admin.ok('enable-feature-flag', 'app_bits_upload');
    await until('the upload', async () => (await developer.kf.run(push)).code === 0);
  });

  test('leaves operators and the controller alone, with all flags disabled: apps restart, and an operator pushes, scales and runs tasks', async () => {
    for (const flag of changeableFlags) await admin.ok('disable-feature-flag', flag);
    await until('the last refusal', async () => (await developer.kf.run(['run-task', shop, '--command', 'true'])).code !== 0);
    await developer.kf.ok('restart', shop);
    expect((await get(`${shop}.apps.localhost`)).headers['x-sample-version']).toBe('1');
    await developer.kf.ok('stop', shop);
    await developer.kf.ok('start', shop);
    const operator = await Kf.create('admin', { KF_ORG: org, KF_SPACE: space });
    try {
      await operator.ok('push', own, '-o', image, '-m', '64M');
      await operator.ok('scale', own, '-i', '2');
      await operator.ok('run-task', own, '--command', 'true', '--wait');
      await operator.ok('create-user-provided-service', own, '-p', '{"a":"b"}');
      await operator.ok('set-space-role', 'bob', org, space, 'SpaceAuditor');
      await operator.ok('unset-space-role', 'bob', org, space, 'SpaceAuditor');
      // The controller gives the rights in a new space, and takes them away with it.
      await operator.ok('create-space', 'more', '-o', org);
      await operator.ok('delete-space', 'more', '-o', org, '-f');
    } finally {
      await operator.remove();
    }
  });

  test('is changed by kf curl, and its text is what the developer reads', async () => {
    const patch = (body: object) =>
      admin.ok('curl', '-X', 'PATCH', '/v3/feature_flags/task_creation', '-d', JSON.stringify(body), '--fail');
    await patch({ enabled: false, custom_error_message: 'jobs run elsewhere' });
    await until('the text', async () =>
      (await developer.kf.run(['run-task', shop, '--command', 'true'])).stderr.includes('Feature Disabled: jobs run elsewhere;'),
    );
    await patch({ enabled: true, custom_error_message: null });
    const { stdout } = await developer.kf.ok('curl', '/v3/feature_flags/task_creation');
    expect(JSON.parse(stdout)).toMatchObject({ name: 'task_creation', enabled: true, custom_error_message: null });
  });
});
