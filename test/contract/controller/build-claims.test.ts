import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { leaseType, namespaceType } from '../../../src/lib/api/core.ts';
import type { Lease } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { claimName } from '../../../src/controller/names/leases.ts';
import type { NamedObject } from '../../../src/controller/names/leases.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { app, startScene } from './build-scene.ts';
import type { BuildScene } from './build-scene.ts';
import { settled } from './settled.ts';

const appLease = 'n-81c7b2925006d086e7596837968776c128ba5ec2';
const lease = (name: string, ns: string, entity: string, owner: string): Lease => ({
  metadata: {
    name,
    namespace: ns,
    annotations: {
      'coordination.cloudfoundry.org/entity-type': entity,
      'coordination.cloudfoundry.org/namespace': ns,
      'coordination.cloudfoundry.org/name': 'x',
      'coordination.cloudfoundry.org/owner-namespace': 's-1',
      'coordination.cloudfoundry.org/owner-name': owner,
    },
  },
  spec: { holderIdentity: 'none' },
});

describe('name leases', () => {
  let scene: BuildScene;
  beforeEach(async () => void (scene = await startScene()));
  afterEach(() => scene.stop());
  const claimed = (name: string, ns = 's-1') => scene.condition(kinds.app, ns, name, 'Claimed');
  const appLeases = () =>
    scene.cluster.all(leaseType).filter((item) => item.metadata.annotations?.['coordination.cloudfoundry.org/entity-type'] === 'app');

  test('are the Leases of the contract, and are deleted with their owner', async () => {
    await scene.cluster.create(kinds.app, app('a-1', 's-1', 'My-App'));
    await scene.until(() => expect(claimed('a-1')?.status).toBe('True'));
    expect(scene.cluster.peek(leaseType, 's-1', appLease)).toMatchObject({
      metadata: {
        annotations: {
          'coordination.cloudfoundry.org/entity-type': 'app',
          'coordination.cloudfoundry.org/namespace': 's-1',
          'coordination.cloudfoundry.org/name': 'my-app',
          'coordination.cloudfoundry.org/owner-namespace': 's-1',
          'coordination.cloudfoundry.org/owner-name': 'a-1',
        },
        ownerReferences: [{ kind: 'CFApp', name: 'a-1' }],
      },
      spec: { holderIdentity: 'none' },
    });
    await scene.cluster.delete(kinds.app, 's-1', 'a-1');
    expect(appLeases()).toEqual([]);
  });

  test('of twenty apps made at the same time with one name: exactly one app has it, and keeps it', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `a-${String(n)}`);
    await Promise.all(names.map((name, n) => scene.cluster.create(kinds.app, app(name, 's-1', n % 2 === 0 ? 'same' : 'SAME'))));
    await scene.until(() => expect(names.every((name) => claimed(name) !== undefined)).toBe(true));
    const winners = () => names.filter((name) => claimed(name)?.status === 'True');
    expect(winners()).toHaveLength(1);
    const [winner = ''] = winners();
    expect(claimed(names.find((name) => name !== winner) ?? '')).toMatchObject({
      reason: 'DuplicateName',
      message: expect.stringContaining(`(CFApp s-1/${winner} has it)`) as string,
    });
    await settled(scene.cluster);
    expect(winners()).toEqual([winner]);
  });

  test('the same name in two spaces is not a conflict', async () => {
    await scene.cluster.create(kinds.app, app('a-1', 's-1', 'x'));
    await scene.cluster.create(kinds.app, app('a-2', 's-2', 'x'));
    await scene.until(() => expect([claimed('a-1')?.status, claimed('a-2', 's-2')?.status]).toEqual(['True', 'True']));
  });

  test('follow a rename: the old name is free at once, and an object that waits for it gets it', async () => {
    await scene.cluster.create(kinds.app, app('a-1', 's-1', 'old'));
    await scene.until(() => expect(claimed('a-1')?.status).toBe('True'));
    await scene.cluster.create(kinds.app, app('a-2', 's-1', 'old'));
    await scene.until(() => expect(claimed('a-2')?.status).toBe('False'));
    await scene.cluster.mergePatch(kinds.app, 's-1', 'a-1', { spec: { displayName: 'new' } });
    await scene.until(() =>
      expect([claimed('a-1')?.observedGeneration, claimed('a-1')?.status, claimed('a-2')?.status]).toEqual([2, 'True', 'True']),
    );
    expect(appLeases()).toHaveLength(2);
  });

  test('a name whose owner is gone or has another name is taken over', async () => {
    await scene.cluster.create(leaseType, lease(appLease, 's-1', 'app', 'long-gone'));
    await scene.cluster.create(kinds.app, app('a-1', 's-1', 'my-app'));
    await scene.until(() => expect(claimed('a-1')?.status).toBe('True'));
    expect(scene.cluster.peek(leaseType, 's-1', appLease)?.metadata.annotations?.['coordination.cloudfoundry.org/owner-name']).toBe('a-1');
  });

  test('an object that was made again under its GUID keeps its name when the garbage collector deletes what belonged to the old one', async () => {
    const left = lease(appLease, 's-1', 'app', 'a-1');
    const gone = { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFApp', name: 'a-1', uid: 'gone' };
    await scene.cluster.create(leaseType, { ...left, metadata: { ...left.metadata, ownerReferences: [gone] } });
    const made = await scene.cluster.create(kinds.app, app('a-1', 's-1', 'my-app'));
    await scene.until(() => expect(claimed('a-1')?.status).toBe('True'));
    expect(scene.cluster.peek(leaseType, 's-1', appLease)?.metadata.ownerReferences).toMatchObject([{ uid: made.metadata.uid }]);
  });

  test('a name lease that an object has is not requested again on every reconcile', async () => {
    await scene.cluster.create(kinds.app, app('a-1'));
    await scene.until(() => expect(claimed('a-1')?.status).toBe('True'));
    let asked = 0;
    scene.cluster.intercept = (_verb, type) => void (asked += type.kind === 'Lease' && _verb !== 'patch' ? 1 : 0);
    for (let n = 0; n < 5; n += 1) await scene.cluster.mergePatch(kinds.app, 's-1', 'a-1', { metadata: { annotations: { n: String(n) } } });
    await settled(scene.cluster);
    expect(asked).toBe(0);
  });

  test('the cleanup deletes Leases of routes that are gone, and of owners from another installation', async () => {
    const route = {
      metadata: { name: 'r-1', namespace: 's-1' },
      spec: { host: 'h', domainRef: { name: 'd', namespace: 'cf' }, destinations: [] },
    } as CFRoute;
    const made = await scene.cluster.create(kinds.route, route);
    const { signal } = new AbortController();
    const context = { cluster: scene.cluster, memory: new Memory(), now: () => Date.now(), signal } as unknown as Context;
    const named: NamedObject = { entity: 'route', object: made, domainName: 'example.org' };
    expect((await claimName(context, named)).held).toBe(true);
    await scene.cluster.create(leaseType, lease('n-foreign', 'cf', 'something-else', 'x'));
    const other: NamedObject = { ...named, object: { ...made, metadata: { ...made.metadata, name: 'r-2', uid: 'other' } } };
    expect((await claimName(context, other)).notReady?.message).toBe(
      "Route already exists with host 'h' for domain 'example.org'. This space has it already.",
    );
    await scene.cluster.delete(kinds.route, 's-1', 'r-1');
    const names = () =>
      scene.cluster
        .all(leaseType)
        .map((item) => item.metadata.name)
        .filter((name) => name?.startsWith('n-'));
    await scene.until(() => expect(names()).toEqual(['n-foreign']));
    await scene.cluster.create(leaseType, lease('n-left', 's-7', 'app', 'gone'));
    await scene.cluster.create(namespaceType, { metadata: { name: 's-7', labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
    await scene.until(() => expect(names()).toEqual(['n-foreign']));
  });
});
