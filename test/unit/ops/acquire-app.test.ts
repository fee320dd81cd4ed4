// Concurrent first pushes of one name: one app remains, whichever push takes over.

import { afterEach, expect, test } from 'vitest';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { CFApp } from '../../../src/lib/api/types.generated.ts';
import type { AppPlan } from '../../../src/lib/manifest/plan.ts';
import { acquireApp, type AcquiredApp } from '../../../src/lib/ops/push/acquire-app.ts';
import type { SpaceSession } from '../../../src/lib/session/session.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 'space';
const plan = { name: 'web', lifecycle: 'docker' } as AppPlan;
const claims: AcquiredApp[] = [];
afterEach(() => {
  for (const { follower } of claims.splice(0)) follower.stop();
});

function sessionOf(cluster: MemoryCluster): SpaceSession {
  const report = (): void => undefined;
  const { signal } = new AbortController();
  return { cluster, space: { guid: ns, name: ns }, signal, report, changedBy: async () => 'somebody' } as unknown as SpaceSession;
}

function madeBy(push: string | undefined, name: string): CFApp {
  const marks = push === undefined ? {} : { annotations: { [annotations.pushId]: push } };
  return {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFApp',
    metadata: { name, namespace: ns, ...marks },
    spec: { displayName: 'web', desiredState: 'STOPPED', lifecycle: { type: 'docker', data: { stack: '' } } },
  };
}

/** Acts as the controller. */
async function judge(cluster: MemoryCluster, name: string, status: 'True' | 'False'): Promise<void> {
  const conditions = [{ type: 'Claimed', status, reason: 'Test', message: '', lastTransitionTime: new Date().toISOString() }];
  await cluster.mergePatch(kinds.app, ns, name, { status: { conditions } }, { subresource: 'status' });
}

async function race(loser: CFApp, onDelete: (cluster: MemoryCluster) => Promise<void> = async () => undefined): Promise<MemoryCluster> {
  const cluster = new MemoryCluster();
  const created = await cluster.create(kinds.app, loser);
  const { status } = loser;
  const found = status === undefined ? created : await cluster.mergePatch(kinds.app, ns, 'loser', { status }, { subresource: 'status' });
  await cluster.create(kinds.app, madeBy('holder', 'holder'));
  await judge(cluster, 'holder', 'True');
  let strikes = 0;
  cluster.intercept = async (verb, _type, name) => {
    if (verb === 'watch') queueMicrotask(() => void judge(cluster, 'loser', 'False'));
    if (verb === 'delete' && name === 'loser' && (strikes += 1) === 1) await onDelete(cluster);
  };
  const claimed = await acquireApp(sessionOf(cluster), plan, found, 'mine');
  claims.push(claimed);
  expect(claimed.follower.app.metadata).toMatchObject({ name: 'holder', annotations: { [annotations.pushId]: 'mine' } });
  return cluster;
}

const names = (cluster: MemoryCluster): (string | undefined)[] => cluster.all(kinds.app).map(({ metadata }) => metadata.name);

test('an app that was taken over from another first push and does not get the name is deleted', async () => {
  expect(names(await race(madeBy('theirs', 'loser')))).toEqual(['holder']);
});

test('such an app is deleted even if the controller has just written to it', async () => {
  expect(names(await race(madeBy('theirs', 'loser'), (cluster) => judge(cluster, 'loser', 'False')))).toEqual(['holder']);
});

test('such an app stays if a later push has taken it over, which then deletes it', async () => {
  const later = { metadata: { annotations: { [annotations.pushId]: 'later' } } };
  const cluster = await race(madeBy('theirs', 'loser'), async (seen) => void (await seen.mergePatch(kinds.app, ns, 'loser', later)));
  expect(names(cluster)).toEqual(['loser', 'holder']);
});

test('an app that has held a name and was renamed to a taken one stays, with what is in it', async () => {
  const renamed = { ...madeBy('theirs', 'loser'), status: { observedDesiredState: 'STOPPED' } };
  expect(names(await race(renamed))).toEqual(['loser', 'holder']);
});

test('an app that was made without a push stays', async () => {
  expect(names(await race(madeBy(undefined, 'loser')))).toEqual(['loser', 'holder']);
});
