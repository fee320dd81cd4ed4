// Attacker: a manager of an org who creates many spaces and fills all of them at once, with the largest possible objects.

import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cfRoles } from '../../../src/lib/api/roles.ts';
import { limitsOf, totalsOf } from '../../../src/templates/limits.ts';
import { buildRoleBinding } from '../../../src/templates/tenancy.ts';
import { controllerLine, readControllerReport } from '../../support/controller-report.ts';
import type { Place } from '../../support/developer.ts';
import { kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { spaceObject, TestWorld, untilReady, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const world = new TestWorld();
const apiVersion = 'korifi.cloudfoundry.org/v1alpha1';
const name = `neighbour-${randomUUID().slice(0, 6)}`;
const count = 6;
/** Four bytes each in memory, and one character for a schema. */
const text = (characters: number): string => '\u{1F600}'.repeat(characters);
let org: string;
let attacker: Member;
let victim: Member;
let spaces: string[];

beforeAll(async () => {
  const place: Place = await world.space();
  victim = await world.member('spaceDeveloper', place);
  await victim.kf.ok('push', name, '-p', path.resolve('test/fixtures/apps/node-hello'), '-m', '64M', '--no-route');
  org = await world.org();
  attacker = await world.member('organizationManager', { org });
  const made = Array.from({ length: count }, () => spaceObject(org));
  spaces = made.map(({ metadata }) => metadata.name);
  expect(await attacker.kubectl(['create', '-f', '-'], made)).toMatchObject({ code: 0 });
  await Promise.all(spaces.map((space) => untilReady('cfspace', org, space)));
  const [, , namespace = '', account = ''] = attacker.user.split(':');
  const role = cfRoles.spaceDeveloper;
  const bindings = spaces.map((space) =>
    buildRoleBinding({ role, namespace: space, subject: { namespace, name: account }, guid: randomUUID() }),
  );
  await until('the manager to have made themselves a developer', async () => {
    const said = await attacker.kubectl(['apply', '-f', '-'], bindings);
    return said.code === 0;
  });
  // In a new installation quotas contain kf's kinds only after a while.
  await until(
    'the quotas of the spaces to name the kinds',
    async () => (await Promise.all(spaces.map(shareOf))).every((share) => share > 0),
    180_000,
  );
});
afterAll(() => world.remove());

const kinds: [kind: string, plural: string, spec: (index: number) => object][] = [
  [
    'CFApp',
    'cfapps',
    (index) => ({
      displayName: `a${index}`.padEnd(255, 'x'),
      desiredState: 'STOPPED',
      lifecycle: {
        type: 'buildpack',
        data: { stack: text(255), buildpacks: Array.from({ length: 16 }, (_, one) => `${one}`.padEnd(255, 'x')) },
      },
    }),
  ],
  [
    'CFServiceInstance',
    'cfserviceinstances',
    (index) => ({
      displayName: `s${index}`.padEnd(255, 'x'),
      type: 'user-provided',
      secretName: 'none',
      planGuid: '',
      tags: Array.from({ length: 64 }, () => text(255)),
    }),
  ],
];
const resource = (plural: string): string => `count/${plural}.korifi.cloudfoundry.org`;
const shareOf = async (space: string): Promise<number> => {
  interface Quota {
    status?: { hard?: Record<string, string> };
  }
  const { status } = await kubectlJson<Quota>('get', 'resourcequota', 'kf-limits', '-n', space);
  return Number(status?.hard?.[resource('cfapps')] ?? 0);
};

const object = (kind: string, namespace: string, spec: object): object => ({
  apiVersion,
  kind,
  metadata: {
    name: randomUUID(),
    namespace,
    labels: Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`e${randomUUID()}/l${index}`, 'x'.repeat(50)])),
    annotations: { 'kf.cloudfoundry.org/large': text(4_000) },
  },
  spec,
});

/** Creates as many as possible, up to 40. */
async function fill(space: string, [kind, , spec]: (typeof kinds)[number]): Promise<number> {
  const said = await attacker.kubectl(
    ['create', '-f', '-'],
    Array.from({ length: 40 }, () => object(kind, space, spec(Math.floor(Math.random() * 1e9)))),
  );
  if (said.code !== 0) expect(said.stderr).toContain('exceeded quota: kf-limits');
  return said.stdout.split('\n').filter((line) => line.endsWith(' created')).length;
}

/** The cluster counts again when a quota is written, and misses objects that are being created at that moment. */
const miscounted = 1.1;
const inAll = async (plural: string): Promise<number[]> =>
  Promise.all(spaces.map(async (space) => (await kubectl('get', plural, '-n', space, '-o', 'name')).split('\n').length - 1));
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

test('an org that is filled through all its spaces cannot exceed its total, and other orgs work as before', async () => {
  const before = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
  const totals = totalsOf(limitsOf('space'));
  for (const kind of kinds) {
    const most = Number(totals[resource(kind[1])]);
    const fillAll = (): Promise<number[]> => Promise.all(spaces.map((space) => fill(space, kind)));
    await until(
      `the org to have as many ${kind[1]} as it may`,
      async () => {
        await fillAll();
        // The rest is divided between the spaces and a future one: up to the number of spaces stays unused.
        return sum(await inAll(kind[1])) >= most - count;
      },
      240_000,
    );
    // Capacity in one space is capacity for the others, and repeating this gives them no more.
    for (const space of spaces.slice(0, 2)) {
      const [first = ''] = (await kubectl('get', kind[1], '-n', space, '-o', 'name')).split('\n');
      expect(await attacker.kubectl(['delete', first, '-n', space])).toMatchObject({ code: 0 });
      await fillAll();
    }
    const there = await inAll(kind[1]);
    console.log(kind[0], there.join(' + '));
    expect(sum(there)).toBeLessThanOrEqual(most * miscounted);
  }
  await victim.kf.ok('restart', name);
  const after = await readControllerReport(ringEnv('KF_TEST_KUBECONFIG'));
  console.log(after.map(controllerLine).join('\n'));
  expect(after.map(({ pod, restarts }) => [pod, restarts])).toEqual(before.map(({ pod, restarts }) => [pod, restarts]));
});
