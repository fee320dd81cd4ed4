// Attacker: any user of the cluster. The environment that the operator gives to every build may contain the password of a mirror.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { kubectl } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const world = new TestWorld();
let member: Member;

beforeAll(async () => {
  member = await world.member('spaceAuditor', await world.space());
});
afterAll(() => world.remove());

test('the environment of builds is not in an object that everybody can read', async () => {
  const data = JSON.parse(await kubectl('get', 'secret', '-n', 'kf-system', 'kf-build-env', '-o', 'jsonpath={.data}')) as Record<
    string,
    string
  >;
  const values = Object.values(data).map((value) => Buffer.from(value, 'base64').toString());
  expect(Object.keys(data)).toContain('NPM_CONFIG_REGISTRY');
  const { stdout } = await member.kubectl(['get', 'configmap', '-n', 'cf', 'kf-info', '-o', 'yaml']);
  expect(stdout).toContain('envRevision');
  for (const text of [...Object.keys(data), ...values.filter((value) => value.includes('://'))]) expect(stdout).not.toContain(text);
});

test('only the controller can read the Secret with the environment of builds', async () => {
  const said = await member.kubectl(['get', 'secret', '-n', 'kf-system', 'kf-build-env']);
  expect(said.stderr).toContain('forbidden');
  expect(said.code).not.toBe(0);
});
