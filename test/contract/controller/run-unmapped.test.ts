// The Services of a route whose app is unmapped: the gateway may go on sending requests to them until it has loaded the change.

import { afterEach, describe, expect, test } from 'vitest';
import { currentCondition, findCondition } from '../../../src/lib/api/conditions.ts';
import { serviceType } from '../../../src/lib/api/core.ts';
import { httpRouteType, isLoaded, revisionOf } from '../../../src/lib/api/gateway.ts';
import { conditionTypes, kinds } from '../../../src/lib/api/group.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { apiError } from '../../support/memory-cluster.ts';
import { appGuid, ns, startRunScene, type RunScene } from './run-scene.ts';
import { settled } from './settled.ts';

let scene: RunScene;

afterEach(() => scene.stop());

const services = (destination = 'dest-1'): number =>
  scene.cluster.all(serviceType).filter(({ metadata }) => metadata.name.startsWith(`s-${destination}-`)).length;
const named = (destination = 'dest-1'): boolean => JSON.stringify(scene.cluster.all(httpRouteType)).includes(`s-${destination}-`);

test('stay until the gateway has loaded the route without them', async () => {
  scene = await startRunScene();
  const id = await scene.deploy('good:1');
  await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  scene.freezeGateway(true);
  await scene.cluster.mergePatch(kinds.route, ns, 'route-1', { spec: { destinations: [] } });
  await scene.until(() => expect(named()).toBe(false));
  await settled(scene.cluster);
  expect(services()).toBe(1);
  scene.freezeGateway(false);
  await scene.until(() => expect(services()).toBe(0));
});

describe('make room for those that the quota of the space refuses', () => {
  const mapped = (guid: string) => ({ spec: { destinations: [{ guid, appRef: { name: appGuid }, processType: 'web' }] } });
  const routeNow = () => scene.cluster.peek(kinds.route, ns, 'route-1') ?? { metadata: {} };
  const message = expect.stringContaining("would exceed the quota 'kf-limits'") as string;

  /** The space may have so many Services. */
  function allow(most: number): void {
    scene.cluster.intercept = (verb, type, name) => {
      if (verb !== 'create' || type !== serviceType || scene.cluster.all(serviceType).length < most) return;
      const refusal = `exceeded quota: kf-limits, requested: count/services=1, used: count/services=${most}, limited: count/services=${most}`;
      throw apiError(403, 'Forbidden', `services "${name}" is forbidden: ${refusal}`, name);
    };
  }

  async function serve(image: string): Promise<void> {
    const id = await scene.deploy(image);
    await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  }

  /** The destination is unmapped and another one is mapped, before the gateway has loaded the first change. */
  async function mapAnother(): Promise<void> {
    scene.freezeGateway(true);
    await scene.cluster.mergePatch(kinds.route, ns, 'route-1', { spec: { destinations: [] } });
    await scene.until(() => expect(named()).toBe(false));
    await scene.cluster.mergePatch(kinds.route, ns, 'route-1', mapped('dest-2'));
    await scene.until(() => expect(currentCondition(routeNow(), conditionTypes.ready)).toMatchObject({ status: 'False', message }));
    await settled(scene.cluster);
    expect([services('dest-1'), services('dest-2')]).toEqual([1, 0]);
  }

  test('when the gateway has loaded the route without them', async () => {
    scene = await startRunScene();
    await serve('good:1');
    allow(1);
    await mapAnother();
    scene.freezeGateway(false);
    await scene.until(() => expect([services('dest-1'), services('dest-2'), named('dest-2')]).toEqual([0, 1, true]));
    await scene.until(() => expect(currentCondition(routeNow(), conditionTypes.programmed)?.status).toBe('True'));
    expect(currentCondition(routeNow(), conditionTypes.ready)?.status).toBe('True');
  });

  test('and a mapping that stays refused does not count as loaded by the gateway', async () => {
    scene = await startRunScene();
    await serve('good:1');
    allow(0);
    await mapAnother();
    scene.freezeGateway(false);
    await scene.until(() => expect(services('dest-1')).toBe(0));
    await settled(scene.cluster);
    const live = scene.cluster.peek(httpRouteType, ns, 'route-1');
    expect(isLoaded(findCondition(routeNow(), conditionTypes.programmed), revisionOf(live) ?? '?')).toBe(true);
    expect(currentCondition(routeNow(), conditionTypes.programmed)).toBeUndefined();
    expect(currentCondition(routeNow(), conditionTypes.ready)).toMatchObject({ status: 'False', message });
  });

  test('but not while the route leads to them', async () => {
    scene = await startRunScene();
    await serve('good:1');
    allow(1);
    await scene.cluster.mergePatch(kinds.route, ns, 'route-1', mapped('dest-2'));
    await scene.until(() => expect(currentCondition(routeNow(), conditionTypes.ready)).toMatchObject({ status: 'False', message }));
    await settled(scene.cluster);
    expect([services('dest-1'), named('dest-1')]).toEqual([1, true]);
  });

  test('when they were those of a version that an update has replaced', async () => {
    scene = await startRunScene();
    await serve('good:1');
    allow(2);
    await serve('good:2');
    const workloads = () => scene.cluster.all(kinds.appWorkload).length;
    scene.freezeGateway(true);
    await scene.until(() => expect(workloads()).toBe(1));
    await scene.until(() => expect(services()).toBe(2));
    const id = await scene.deploy('good:3');
    await scene.until(() => expect(currentCondition(routeNow(), conditionTypes.ready)).toMatchObject({ status: 'False', message }));
    scene.freezeGateway(false);
    await scene.until(() => expect(scene.app()?.status?.deployment).toMatchObject({ id, phase: 'Serving' }));
  });

  test('also in a space that shares the route of another one', async () => {
    scene = await startRunScene({ routed: false });
    const domainRef = { name: 'domain-1', namespace: 'cf' };
    const owner = await scene.cluster.create<CFRoute>(kinds.route, {
      metadata: { name: 'owner-1', namespace: 'space-2' },
      spec: { host: 'shop', domainRef, sharedWith: [ns], destinations: [] },
    });
    const sharedFrom = { space: 'space-2', route: 'owner-1', uid: owner.metadata.uid };
    await scene.cluster.create<CFRoute>(kinds.route, {
      metadata: { name: 'route-1', namespace: ns },
      spec: { host: 'shop', domainRef, sharedFrom, ...mapped('dest-1').spec },
    });
    await serve('good:1');
    allow(1);
    await mapAnother();
    scene.freezeGateway(false);
    await scene.until(() => expect([services('dest-1'), services('dest-2'), named('dest-2')]).toEqual([0, 1, true]));
  });
});
