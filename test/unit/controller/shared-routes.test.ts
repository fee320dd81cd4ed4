import { describe, expect, it } from 'vitest';
import { instancesByProcess } from '../../../src/controller/instances/pod-instances.ts';
import { appIndexes, routesByApp, routesTo } from '../../../src/controller/relations.ts';
import { lackOfRoom, sharedBackends, servicesInUse } from '../../../src/controller/routes/shares.ts';
import type { Index, Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { halvesByOwner, isTakenOver, ownerOf } from '../../../src/controller/shared-routes.ts';
import { serviceType } from '../../../src/lib/api/core.ts';
import { httpRouteType, referenceGrantType, type HttpRoute } from '../../../src/lib/api/gateway.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import type { CFProcess, CFRoute, RouteDestination } from '../../../src/lib/api/types.generated.ts';
import { asStored } from '../../support/stored.ts';

const hash = '0123456789';
const claimed = (status: 'True' | 'False') => ({
  conditions: [{ type: 'Claimed', status, reason: 'Any', message: '', lastTransitionTime: '' }],
});

function routeIn(
  namespace: string,
  spec: Partial<CFRoute['spec']>,
  status: 'True' | 'False' = 'True',
  name = `${namespace}-route`,
): Stored<CFRoute> {
  const domainRef = { name: 'd', namespace: 'cf' };
  const metadata = { name, namespace, uid: `${name}-uid`, generation: 7 };
  return asStored<CFRoute>({ metadata, spec: { host: 'shop', domainRef, ...spec }, status: claimed(status) });
}

const destinations = (space: string, count: number) =>
  Array.from({ length: count }, (_, at) => ({
    guid: `${space}-${at}`,
    appRef: { name: `${space}-app-${at}` },
    processType: 'web',
    port: 8080,
  }));
const half = (space: string, count: number, uid = 'owner-route-uid', more: Partial<CFRoute['spec']> = {}): Stored<CFRoute> =>
  routeIn(space, { sharedFrom: { space: 'owner', route: 'owner-route', uid }, destinations: destinations(space, count), ...more });

/** The caches with these routes; each destination has a started app with one generation, its Service and its grant, unless they are left out. */
function storesOf(routes: readonly Stored<CFRoute>[], without: readonly string[] = []): Stores {
  const all = new Map<string, Store<KubeObject>>();
  const of = (type: ResourceType): Store<KubeObject> => {
    const known = all.get(type.kind) ?? new Store<KubeObject>();
    all.set(type.kind, known);
    return known;
  };
  for (const { type, name, of: keys } of [...appIndexes, routesByApp, halvesByOwner, instancesByProcess] as Index[])
    of(type).addIndex(name, keys);
  for (const route of routes) {
    of(kinds.route).put(route);
    const { namespace } = route.metadata;
    for (const { guid, appRef } of route.spec.destinations ?? []) {
      const put = (type: ResourceType, name: string, spec: object): void => {
        if (!without.includes(`${type.kind} ${name}`))
          of(type).put(
            asStored({
              metadata: { name, namespace, uid: `${namespace}/${name}`, labels: { [labels.generation]: hash } },
              spec,
            } as KubeObject),
          );
      };
      const process = `p-${guid}`;
      put(kinds.app, appRef.name, { desiredState: 'STARTED' });
      put(kinds.process, process, { appRef, processType: 'web', desiredInstances: 1 });
      put(kinds.appWorkload, `${process}-${hash}`, { GUID: process, appGUID: appRef.name, instances: 1, ports: [8080] });
      for (const type of [serviceType, referenceGrantType]) put(type, `s-${guid}-${hash}`, {});
    }
  }
  return { of } as unknown as Stores;
}

function backends(owner: Stored<CFRoute>, stores: Stores): string[] {
  return sharedBackends(owner, owner.spec.destinations ?? [], stores).backends.map(
    ({ namespace = 'own', service, weight }) => `${namespace} ${service} ${weight}`,
  );
}

describe('a route that is shared', () => {
  const owner = routeIn('owner', { destinations: destinations('owner', 1), sharedWith: ['b', 'c'] });

  it('leads to the destinations of all halves with the same weight', () => {
    const stores = storesOf([owner, half('b', 1), half('c', 1)]);
    expect(backends(owner, stores)).toEqual([`own s-owner-0-${hash} 1000`, `b s-b-0-${hash} 1000`, `c s-c-0-${hash} 1000`]);
    expect(sharedBackends(owner, owner.spec.destinations ?? [], stores).serving).toMatchObject({
      'b-route-uid': '7',
      'c-route-uid': '7',
      'b/p-b-0': '',
    });
  });

  it.each(['Service', 'ReferenceGrant'])('leads to no destination without its %s, and says so to the half', (kind) => {
    const stores = storesOf([owner, half('b', 2)], [`${kind} s-b-1-${hash}`]);
    expect(backends(owner, stores)).toEqual([`own s-owner-0-${hash} 1000`, `b s-b-0-${hash} 1000`]);
    expect(Object.keys(sharedBackends(owner, owner.spec.destinations ?? [], stores).serving)).toEqual(['owner/p-owner-0']);
  });

  it('tells the weights of each process, also of one whose GUID a half or a process of another space has', () => {
    const sameName = routeIn('b', { ...half('b', 1).spec, destinations: destinations('owner', 1) }, 'True', 'p-owner-0');
    const { serving } = sharedBackends(owner, owner.spec.destinations ?? [], storesOf([owner, sameName]));
    expect(serving).toEqual({ 'owner/p-owner-0': '', 'b/p-owner-0': '', 'p-owner-0-uid': '7' });
  });

  it.each([0, -1, 65_536, 2_147_483_647])('leads to no destination with the port %i, and to the others', (port) => {
    const [first, ...rest] = destinations('b', 2);
    const wrong = routeIn('b', { ...half('b', 1).spec, destinations: [{ ...first, port } as RouteDestination, ...rest] });
    expect(backends(owner, storesOf([owner, wrong]))).toEqual([`own s-owner-0-${hash} 1000`, `b s-b-1-${hash} 1000`]);
  });

  it('has room for its own destinations first, and leaves out a half that does not fit', () => {
    expect(backends(owner, storesOf([owner, half('b', 15), half('c', 1)]))).toHaveLength(16);
    const many = storesOf([owner, half('b', 16), half('c', 1)]);
    expect(backends(owner, many)).toEqual([`own s-owner-0-${hash} 1000`, `c s-c-0-${hash} 1000`]);
    const said = 'A route leads to at most 16 apps of all spaces together, and these are more.';
    expect([owner, half('b', 16), half('c', 1)].map((one) => lackOfRoom(one, many))).toEqual([undefined, said, undefined]);
  });

  it('says how many of its own destinations have no room', () => {
    const crowded = routeIn('owner', { destinations: destinations('owner', 18) });
    expect(lackOfRoom(crowded, storesOf([crowded]))).toBe('A route leads to at most 16 apps: 2 of its destinations get no requests.');
  });

  it.each([
    ['a space that it does not name', half('x', 1)],
    ['another uid', half('b', 1, 'earlier-uid')],
    ['another path', half('b', 1, undefined, { path: '/pay' })],
    ['another host', half('b', 1, undefined, { host: 'other' })],
  ])('has no half of %s', (_what, wrong) => {
    const stores = storesOf([owner, wrong]);
    expect([ownerOf(wrong, stores), backends(owner, stores)]).toEqual([undefined, [`own s-owner-0-${hash} 1`]]);
  });

  it('has no halves while it does not have its host, and none of its own', () => {
    const refused = routeIn('owner', { sharedWith: ['b'] }, 'False');
    expect(ownerOf(half('b', 1), storesOf([refused]))).toBeUndefined();
    const chained = routeIn('owner', { sharedWith: ['b'], sharedFrom: { space: 'x', route: 'y', uid: 'z' } });
    expect(ownerOf(half('b', 1), storesOf([chained]))).toBeUndefined();
  });
});

describe('a half', () => {
  const refs = [
    { name: 's-b-0', namespace: 'b', port: 1 },
    { name: 's-owner-0', port: 1 },
    { name: 's-c-0', namespace: 'c', port: 1 },
  ];
  const live = (taken: string): Stored<HttpRoute> =>
    asStored<HttpRoute>({
      metadata: { name: 'owner-route', namespace: 'owner', annotations: { 'serving.kf.cloudfoundry.org/b-route-uid': taken } },
      spec: { rules: [{ backendRefs: refs }] },
    });

  const saying = (reason: string): Stored<CFRoute> => {
    const route = half('b', 1);
    const statement = { type: 'Ready', status: 'False' as const, reason, message: '', lastTransitionTime: '' };
    return { ...route, status: { conditions: [...(route.status?.conditions ?? []), statement] } };
  };

  it.each([
    ['nothing, because it has no room in the HTTPRoute', saying('TooManyDestinations'), undefined, 0],
    ['the gateway, since it has room again', saying('TooManyDestinations'), '7', 1],
    ['the gateway, which has not loaded it', saying('NotLoaded'), undefined, 1],
  ])('lets an update of its app wait for %s', (_what, route, taken, number) => {
    const stores = storesOf([routeIn('owner', { sharedWith: ['b'] }), route]);
    if (taken !== undefined) stores.of(httpRouteType).put(live(taken));
    const process = stores.of<CFProcess>(kinds.process).get('b', 'p-b-0') as Stored<CFProcess>;
    expect(routesTo(process, stores)).toHaveLength(number);
  });

  it('counts as loaded only when the HTTPRoute of the owner has its present destinations', () => {
    expect([live('6'), live('7'), undefined].map((one) => isTakenOver(half('b', 1), one))).toEqual([false, true, false]);
    expect(isTakenOver(routeIn('owner', {}), undefined)).toBe(true);
  });

  it('keeps Services while the HTTPRoute of the owner names them', () => {
    const stores = storesOf([half('b', 1)]);
    stores.of(httpRouteType).put(live('7'));
    expect(servicesInUse(half('b', 1), stores)).toEqual(['s-b-0']);
    expect(servicesInUse(routeIn('owner', {}), stores)).toEqual([]);
  });
});
