import { describe, expect, test } from 'vitest';
import { namespaceType } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { withDefaultGuids, withInternalDomain } from '../../../src/lib/ops/install/defaults.ts';
import { buildDomain, buildOrg, buildSpace } from '../../../src/templates/tenancy.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const author = { changedBy: 'admin', now: new Date(0) };

test('the default space is the oldest of its name, not one that a manager of the org made later', async () => {
  const cluster = new MemoryCluster();
  await cluster.create(kinds.org, buildOrg({ guid: 'o-1', rootNamespace: 'cf', displayName: 'default' }, author));
  for (const [guid, second] of [
    ['a-later', '09'],
    ['z-first', '01'],
  ] as const) {
    await cluster.create(kinds.space, buildSpace({ guid, orgGuid: 'o-1', displayName: 'default' }, author));
    await cluster.mergePatch(kinds.space, 'o-1', guid, { metadata: { creationTimestamp: `2026-01-01T00:00:${second}Z` } });
  }
  const plan = await withDefaultGuids(cluster, resolvePlan({}, '0.2.0', 'hostport'));
  expect([plan.org.guid, plan.space.guid]).toEqual(['o-1', 'z-first']);
});

describe('setup makes the domain apps.internal', () => {
  const planned = (cluster: MemoryCluster, domain = 'apps.example.com') =>
    withInternalDomain(cluster, resolvePlan({ domain }, '0.2.0', 'hostport'));
  const addDomain = (cluster: MemoryCluster, guid: string, name: string) =>
    cluster.create(kinds.domain, buildDomain({ guid, rootNamespace: 'cf', name }, author));

  test('in a new cluster, and again where it has made it before', async () => {
    const cluster = new MemoryCluster();
    expect((await planned(cluster)).plan.internalDomain).toBe(true);
    await addDomain(cluster, 'internal-domain', 'apps.internal');
    await cluster.create(namespaceType, { metadata: { name: 'internal', labels: { [labels.managedBy]: 'kf' } } });
    expect((await planned(cluster)).plan.internalDomain).toBe(true);
  });

  test.each(['apps.internal', 'Apps.internal.', 'internal', 'shop.apps.internal'])(
    'not beside the domain %s of an operator',
    async (name) => {
      const cluster = new MemoryCluster();
      await addDomain(cluster, 'd', name);
      expect(await planned(cluster)).toEqual({ plan: expect.not.objectContaining({ internalDomain: true }) as unknown });
    },
  );

  test('not beside a default domain of that name', async () => {
    expect((await planned(new MemoryCluster(), 'apps.internal')).plan.internalDomain).toBeUndefined();
  });

  test("not where its namespace is somebody else's", async () => {
    const cluster = new MemoryCluster();
    await cluster.create(namespaceType, { metadata: { name: 'internal' } });
    const { plan, taken } = await planned(cluster);
    expect([plan.internalDomain, taken]).toEqual([undefined, { namespace: 'internal' }]);
  });
});
