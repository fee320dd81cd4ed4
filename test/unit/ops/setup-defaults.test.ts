import { expect, test } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { resolvePlan } from '../../../src/lib/ops/install/request.ts';
import { withDefaultGuids } from '../../../src/lib/ops/install/defaults.ts';
import { buildOrg, buildSpace } from '../../../src/templates/tenancy.ts';
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
