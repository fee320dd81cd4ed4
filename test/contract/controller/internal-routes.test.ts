// Routes on the internal domain: their names lead to the ready instances of their apps, and no gateway knows them.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { domainReconciler } from '../../../src/controller/routes/domain.ts';
import { removeSlices } from '../../../src/controller/routes/internal.ts';
import { routeReconciler } from '../../../src/controller/routes/route.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Context } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { sources } from '../../../src/controller/sources.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { configMapType, endpointSliceType, namespaceType } from '../../../src/lib/api/core.ts';
import { httpRouteType } from '../../../src/lib/api/gateway.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { ResourceType } from '../../../src/lib/api/object.ts';
import type { CFDomain, CFRoute } from '../../../src/lib/api/types.generated.ts';
import { defined } from '../../../src/lib/defined.ts';
import { podType } from '../../../src/lib/api/pod-kind.ts';
import { buildSlice } from '../../../src/templates/internal-domain.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { info } from './build-scene.ts';

let cluster: MemoryCluster;
let stop: () => Promise<void>;

function startController(): () => Promise<void> {
  const aborter = new AbortController();
  const running = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [routeReconciler, domainReconciler],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
    rootNamespace: 'cf',
    log: createLogger('error', (line) => process.stderr.write(line)),
  }).run(aborter.signal);
  return async () => {
    aborter.abort();
    await running;
  };
}

const lifecycle = { type: 'docker' as const, data: { stack: '' } };

beforeEach(async () => {
  cluster = new MemoryCluster();
  for (const name of ['cf', 'a', 'b']) await cluster.create(namespaceType, { metadata: { name, labels: { [labels.managedBy]: 'kf' } } });
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': JSON.stringify(info) } });
  await cluster.create(kinds.domain, { metadata: { name: 'd', namespace: 'cf' }, spec: { name: 'apps.internal', internal: true } });
  for (const space of ['a', 'b']) {
    const spec = { displayName: 'shop', desiredState: 'STARTED' as const, lifecycle };
    await cluster.create(kinds.app, { metadata: { name: 'app', namespace: space }, spec });
    const healthCheck = { type: 'process' as const, data: { invocationTimeoutSeconds: 0, timeoutSeconds: 0 } };
    await cluster.create(kinds.process, {
      metadata: { name: 'web', namespace: space },
      spec: { appRef: { name: 'app' }, processType: 'web', memoryMB: 64, diskQuotaMB: 64, healthCheck },
    });
  }
  stop = startController();
});

afterEach(async () => {
  await stop();
  cluster.close();
});

const until = (check: () => void) => vi.waitFor(check, { timeout: patienceMs, interval: 5 });

async function addPod(space: string, name: string, podIP: string, isReady = true): Promise<void> {
  const marks = { [labels.appGuid]: 'app', [labels.guid]: 'web' };
  const conditions = [
    { type: 'Ready', status: isReady ? ('True' as const) : ('False' as const), lastTransitionTime: '2026-01-01T00:00:00Z' },
  ];
  await cluster.create(podType, { metadata: { name, namespace: space, labels: marks }, status: { podIP, conditions } });
}

async function addRoute(space: string, host: string, path?: string, sharedFrom?: CFRoute['spec']['sharedFrom']): Promise<void> {
  const destinations = [{ guid: 'x', appRef: { name: 'app' }, processType: 'web', port: 8080 }];
  const spec = { host, ...defined({ path, sharedFrom }), domainRef: { name: 'd', namespace: 'cf' }, destinations };
  await cluster.create(kinds.route, { metadata: { name: 'route', namespace: space }, spec });
}

/** `shop 10.0.0.1 10.0.0.2`, one for each slice. */
const slices = (): string[] =>
  cluster
    .all(endpointSliceType)
    .map(({ endpoints }) => [endpoints[0]?.hostname, ...endpoints.flatMap(({ addresses }) => addresses)].join(' '))
    .sort();
const condition = (space: string, type: string) => findCondition(cluster.peek(kinds.route, space, 'route') ?? { metadata: {} }, type);

test('lead to the ready instances, also to those that come later, and to none that go', async () => {
  await addPod('a', 'one', '10.0.0.1');
  await addPod('a', 'two', '10.0.0.2', false);
  await addRoute('a', 'Shop');
  await until(() => expect(slices()).toEqual(['shop 10.0.0.1']));
  await until(() => expect(condition('a', 'Programmed')?.status).toBe('True'));
  expect(cluster.all(httpRouteType)).toEqual([]);
  await addPod('a', 'three', '10.0.0.3');
  await addPod('a', 'six', 'fd00::6');
  await until(() => expect(slices()).toEqual(['shop 10.0.0.1 10.0.0.3', 'shop fd00::6']));
  for (const pod of ['one', 'three', 'six']) await cluster.delete(podType, 'a', pod);
  await until(() => expect(slices()).toEqual([]));
});

test('of two spaces that have one GUID lead to their own apps', async () => {
  await addPod('a', 'one', '10.0.0.1');
  await addPod('b', 'one', '10.0.0.2');
  await addRoute('a', 'shop');
  await addRoute('b', 'bank');
  await until(() => expect(slices()).toEqual(['bank 10.0.0.2', 'shop 10.0.0.1']));
  await cluster.delete(kinds.route, 'a', 'route');
  await until(() => expect(slices()).toEqual(['bank 10.0.0.2']));
});

test('that two spaces share lead to the instances of both, until one takes its part back', async () => {
  await addPod('a', 'one', '10.0.0.1');
  await addPod('b', 'one', '10.0.0.2');
  await addRoute('a', 'shop');
  await until(() => expect(condition('a', 'Programmed')?.status).toBe('True'));
  const { uid } = cluster.peek(kinds.route, 'a', 'route')?.metadata ?? {};
  await addRoute('b', 'shop', undefined, { space: 'a', route: 'route', uid: uid ?? '' });
  await until(() => expect(condition('b', 'Claimed')).toMatchObject({ status: 'False', reason: 'NotShared' }));
  expect(slices()).toEqual(['shop 10.0.0.1']);
  await cluster.mergePatch(kinds.route, 'a', 'route', { spec: { sharedWith: ['b'] } });
  await until(() => expect(slices()).toEqual(['shop 10.0.0.1', 'shop 10.0.0.2']));
  await until(() => expect(condition('b', 'Programmed')?.status).toBe('True'));
  const { metadata } = await cluster.mergePatch(kinds.route, 'a', 'route', { spec: { sharedWith: [] } });
  await until(() => expect(condition('a', 'Programmed')?.observedGeneration).toBe(metadata.generation));
  expect(slices()).toEqual(['shop 10.0.0.1']);
  await until(() => expect(condition('b', 'Claimed')).toMatchObject({ status: 'False', reason: 'NotShared' }));
});

test.each([
  ['*', undefined],
  ['shop', '/cart'],
])('with host %s and path %s are refused', async (host, path) => {
  await addPod('a', 'one', '10.0.0.1');
  await addRoute('a', host, path);
  await until(() => expect(condition('a', 'Claimed')).toMatchObject({ status: 'False', reason: 'ProtocolNotSupported' }));
  expect(slices()).toEqual([]);
});

test('that were deleted while no controller ran lose their addresses', async () => {
  await addPod('a', 'one', '10.0.0.1');
  await addRoute('a', 'shop');
  await until(() => expect(slices()).toHaveLength(1));
  await stop();
  await cluster.delete(kinds.route, 'a', 'route');
  stop = startController();
  await until(() => expect(slices()).toEqual([]));
});

test('get back what somebody deletes or changes of their addresses, without a request for each route', async () => {
  await addPod('a', 'one', '10.0.0.1');
  await addPod('b', 'one', '10.0.0.2');
  await addRoute('a', 'shop');
  await addRoute('b', 'bank');
  const all = ['bank 10.0.0.2', 'shop 10.0.0.1'];
  await until(() => expect(slices()).toEqual(all));
  const asked: string[] = [];
  cluster.intercept = (verb, { kind }) => void (kind === endpointSliceType.kind && asked.push(verb));
  const [first, second] = cluster.all(endpointSliceType).map(({ metadata }) => metadata.name ?? '');
  await cluster.delete(endpointSliceType, 'internal', first ?? '');
  await cluster.mergePatch(endpointSliceType, 'internal', second ?? '', { endpoints: [] });
  await until(() => expect(slices()).toEqual(all));
  // The first two are those of this test.
  expect(
    asked
      .slice(2)
      .filter((verb) => verb !== 'list')
      .toSorted(),
  ).toEqual(['create', 'patch']);
});

test('are the only ones that are asked about when routes go', async () => {
  const idle = new MemoryCluster();
  const domains = new Store<CFDomain>();
  domains.put(await idle.create(kinds.domain, { metadata: { name: 'i', namespace: 'cf' }, spec: { name: 'i.internal', internal: true } }));
  const context = {
    cluster: idle,
    stores: { of: () => domains },
    memory: new Memory(),
    now: () => 0,
    signal: undefined,
  } as unknown as Context;
  const counted = [vi.spyOn(idle, 'get'), vi.spyOn(idle, 'list')] as const;
  const asked = () => counted.map(({ mock }) => (mock.calls as [ResourceType][]).filter(([type]) => type === endpointSliceType).length);
  for (let index = 0; index < 50; index += 1) await removeSlices(context, { namespace: 'a', name: `route-${String(index)}` });
  expect(asked()).toEqual([0, 1]);
});

test('list each address once, in a constant order', () => {
  const metadata = { name: 'route', namespace: 'a', uid: 'u', resourceVersion: '1' };
  const route = { metadata, spec: { host: 'shop', domainRef: { name: 'd' } } };
  const addresses = ['10.0.0.2', '10.0.0.1', '10.0.0.2'];
  expect(buildSlice(route, 'IPv4', { addresses, port: 8080 })?.endpoints.map((one) => one.addresses)).toEqual([['10.0.0.1'], ['10.0.0.2']]);
  expect(buildSlice(route, 'IPv6', { addresses, port: 8080 })).toBeUndefined();
});
