// Attacker: a developer whose one small app requests the disk of a whole node. No app of another space could start there.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { kubectlJson } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';

const sample = `${process.env['KF_CLUSTER_NODE_REGISTRY'] ?? ''}/kf/sample:1`;
const world = new TestWorld();
let attacker: Member;

beforeAll(async () => {
  attacker = await world.member('spaceDeveloper', await world.space());
});
afterAll(() => world.remove());

test('the quota refuses an app that requests the whole disk of a node, in a push and in a scale', async () => {
  const pushed = await attacker.kf.run(['push', 'disk', '-o', sample, '-m', '64M', '-k', '100G']);
  expect([pushed.code, pushed.stderr]).toEqual([1, expect.stringContaining("of disk, and the quota 'kf-limits' has 64G of 64G left")]);
  await attacker.kf.ok('push', 'disk', '-o', sample, '-m', '64M');
  const scaled = await attacker.kf.run(['scale', 'disk', '-k', '100G', '-f']);
  expect([scaled.code, scaled.stderr]).toEqual([
    1,
    expect.stringContaining("one instance of 'web' takes 100G of disk, and the quota 'kf-limits' has 64G in all"),
  ]);
  interface Pods {
    items: { spec: { containers: { resources: { requests: Record<string, string> } }[] } }[];
  }
  const { items } = await kubectlJson<Pods>('get', 'pods', '-A', '-l', 'kf.cloudfoundry.org/generation');
  const asked = items.flatMap(({ spec }) => spec.containers.map(({ resources }) => resources.requests['ephemeral-storage']));
  expect(asked).not.toContain('100Gi');
});
