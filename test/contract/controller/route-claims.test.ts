// Hosts of a shared domain belong to one space each, with all paths; nobody can reserve a host that another space has.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { claimsReconciler } from '../../../src/controller/routes/name-sweep.ts';
import { domainReconciler } from '../../../src/controller/routes/domain.ts';
import { routeReconciler } from '../../../src/controller/routes/route.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { Manager } from '../../../src/controller/runtime/manager.ts';
import { sources } from '../../../src/controller/sources.ts';
import { currentCondition, findCondition } from '../../../src/lib/api/conditions.ts';
import { configMapType, leaseType, namespaceType, serviceType } from '../../../src/lib/api/core.ts';
import { httpRouteType } from '../../../src/lib/api/gateway.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { patienceMs } from '../../support/until.ts';
import { info } from './build-scene.ts';

let cluster: MemoryCluster;
let stop: () => Promise<void>;
/** So much later than now is it for the controller, in milliseconds. */
let later: number;

function startController(): () => Promise<void> {
  const aborter = new AbortController();
  const running = new Manager({
    cluster,
    sources: sources('cf'),
    reconcilers: [routeReconciler, domainReconciler, claimsReconciler],
    leader: { ns: 'kf-system', name: 'kf-controller', identity: 'one', followMs: 20 },
    rootNamespace: 'cf',
    now: () => Date.now() + later,
    log: createLogger('error', (line) => process.stderr.write(line)),
  }).run(aborter.signal);
  return async () => {
    aborter.abort();
    await running;
  };
}

beforeEach(async () => {
  later = 0;
  cluster = new MemoryCluster();
  for (const name of ['cf', 'a', 'b', 'c'])
    await cluster.create(namespaceType, { metadata: { name, labels: { 'kf.cloudfoundry.org/managed-by': 'kf' } } });
  await cluster.create(configMapType, { metadata: { name: 'kf-info', namespace: 'cf' }, data: { 'info.json': JSON.stringify(info) } });
  await cluster.create(kinds.domain, { metadata: { name: 'd', namespace: 'cf' }, spec: { name: 'apps.example' } });
  stop = startController();
});

afterEach(async () => {
  await stop();
  cluster.close();
});

const until = (check: () => void) => vi.waitFor(check, { timeout: patienceMs, interval: 5 });
const claimed = (ns: string, name: string) => findCondition(cluster.peek(kinds.route, ns, name) ?? { metadata: {} }, 'Claimed');
const spec = (host: string, path = '') => ({
  host,
  ...(path === '' ? {} : { path }),
  domainRef: { name: 'd', namespace: 'cf' },
  destinations: [],
});

async function make(
  ns: string,
  name: string,
  wanted: CFRoute['spec'],
  annotations: Record<string, string> = {},
): Promise<string | undefined> {
  await cluster.create(kinds.route, { metadata: { name, namespace: ns, annotations }, spec: wanted });
  await until(() => expect(claimed(ns, name)).toBeDefined());
  return claimed(ns, name)?.reason;
}

const hostLeases = () =>
  cluster.all(leaseType).filter(({ metadata }) => metadata.annotations?.['coordination.cloudfoundry.org/entity-type'] === 'routehost');

describe('a host', () => {
  test('belongs to the space that had it first, with all its paths, whatever the case', async () => {
    expect(await make('b', 'bank', spec('bank'))).toBe('Claimed');
    expect(await make('b', 'bank-pay', spec('BANK', '/pay'))).toBe('Claimed');
    for (const [name, wanted] of [
      ['login', spec('bank', '/login')],
      ['case', spec('Bank', '/Login')],
      ['same', spec('bank')],
    ] as const)
      expect(await make('a', name, wanted), name).toBe('DuplicateName');
    expect(claimed('a', 'login')?.message).toBe(
      "Route already exists with host 'bank' for domain 'apps.example'. Another space has this host, with all its paths.",
    );
    expect(hostLeases()).toHaveLength(1);
  });

  test('has each path once in its own space, whatever the case', async () => {
    expect(await make('b', 'pay', spec('bank', '/pay'))).toBe('Claimed');
    expect(await make('b', 'pay-too', spec('bank', '/Pay'))).toBe('DuplicateName');
    expect(claimed('b', 'pay-too')?.message).toContain('This space has it already.');
  });

  test('that its space gives up does not go to a waiting route, only to one that asks afterwards', async () => {
    await make('b', 'bank', spec('bank'));
    expect(await make('a', 'waiting', spec('bank'))).toBe('DuplicateName');
    await cluster.delete(kinds.route, 'b', 'bank');
    await until(() => expect(hostLeases()).toEqual([]));
    await cluster.mergePatch(kinds.route, 'a', 'waiting', { metadata: { annotations: { look: 'again' } } });
    await stop();
    stop = startController();
    expect(await make('b', 'another', spec('another'))).toBe('Claimed');
    expect(claimed('a', 'waiting')?.reason).toBe('DuplicateName');
    const destinations = [{ guid: 'x', appRef: { name: 'none' }, processType: 'web' }];
    await cluster.mergePatch(kinds.route, 'a', 'waiting', { spec: { destinations } });
    await until(() => expect(claimed('a', 'waiting')?.status).toBe('True'));
  });

  test('stays with its space while one of its routes is left', async () => {
    await make('b', 'bank', spec('bank'));
    await make('b', 'pay', spec('bank', '/pay'));
    await cluster.delete(kinds.route, 'b', 'bank');
    await until(() => expect(cluster.all(leaseType).filter(({ metadata }) => metadata.name?.startsWith('n-'))).toHaveLength(2));
    expect(await make('a', 'early', spec('bank'))).toBe('DuplicateName');
    await cluster.delete(kinds.route, 'b', 'pay');
    expect(await make('a', 'late', spec('bank'))).toBe('Claimed');
    expect(await make('b', 'back', spec('bank', '/back'))).toBe('DuplicateName');
  });

  test('that two spaces shared by path under kf 0.1.0 goes to the one with the oldest route', async () => {
    await stop();
    const condition = {
      type: 'Claimed',
      status: 'True' as const,
      reason: 'Claimed',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const before = [['a', 'thief', spec('bank', '/login')], ['b', 'owner', spec('bank')]] as const; // prettier-ignore
    for (const [ns, name, wanted] of before.toReversed()) {
      await cluster.create(kinds.route, { metadata: { name, namespace: ns }, spec: wanted });
      await cluster.mergePatch(
        kinds.route,
        ns,
        name,
        { status: { conditions: [{ ...condition, observedGeneration: 1 }] } },
        { subresource: 'status' },
      );
    }
    const made = cluster.peek(kinds.route, 'a', 'thief');
    await cluster.replace(kinds.route, { ...made, metadata: { ...made?.metadata, creationTimestamp: '2999-01-01T00:00:00Z' } } as CFRoute);
    stop = startController();
    await until(() => expect(claimed('a', 'thief')?.reason).toBe('DuplicateName'));
    await until(() =>
      expect(hostLeases().map(({ metadata }) => metadata.annotations?.['coordination.cloudfoundry.org/owner-namespace'])).toEqual(['b']),
    );
    expect(claimed('b', 'owner')?.status).toBe('True');
    expect(await make('b', 'login', spec('bank', '/login'))).toBe('Claimed');
  });
});

describe('a host that moves to a route of another space', () => {
  const moves = (name: string) =>
    cluster.mergePatch(kinds.route, 'b', name, { metadata: { annotations: { 'kf.cloudfoundry.org/moves-to': 'c/arriving' } } });
  const holders = () => hostLeases().map(({ metadata }) => metadata.annotations?.['coordination.cloudfoundry.org/owner-namespace']);

  test('goes to that route alone, and is never free in between', async () => {
    await make('b', 'bank', spec('bank', '/pay'));
    await moves('bank');
    expect(await make('a', 'arriving', spec('bank'))).toBe('DuplicateName');
    expect(await make('c', 'other', spec('bank', '/pay'))).toBe('DuplicateName');
    expect(await make('c', 'arriving', spec('bank', '/pay'))).toBe('Claimed');
    expect(holders()).toEqual(['c']);
    expect(await make('a', 'meanwhile', spec('bank'))).toBe('DuplicateName');
    // The old route does not get the host back, also when its space changes its mind.
    const destinations = [{ guid: 'x', appRef: { name: 'none' }, processType: 'web' }];
    await cluster.mergePatch(kinds.route, 'b', 'bank', { spec: { destinations } });
    await until(() => expect(claimed('b', 'bank')?.reason).toBe('DuplicateName'));
    await cluster.delete(kinds.route, 'b', 'bank');
    expect(await make('a', 'afterwards', spec('bank'))).toBe('DuplicateName');
    expect([holders(), claimed('c', 'arriving')?.status]).toEqual([['c'], 'True']);
  });

  test('stays while another path of it does not move', async () => {
    await make('b', 'bank', spec('bank'));
    await make('b', 'pay', spec('bank', '/pay'));
    await moves('bank');
    expect(await make('c', 'arriving', spec('bank'))).toBe('DuplicateName');
    expect(holders()).toEqual(['b']);
  });

  test('stays while the route leads to an app', async () => {
    await cluster.create(kinds.app, {
      metadata: { name: 'shop', namespace: 'b' },
      spec: { displayName: 'shop', desiredState: 'STARTED', lifecycle: { type: 'buildpack', data: { stack: '' } } },
    });
    const destinations = [{ guid: 'x', appRef: { name: 'shop' }, processType: 'web' }];
    await make('b', 'bank', { ...spec('bank'), destinations });
    await moves('bank');
    expect(await make('c', 'arriving', spec('bank'))).toBe('DuplicateName');
    expect(holders()).toEqual(['b']);
  });
});

describe('of two halves of a shared route in one space', () => {
  const addHalf = (name: string, uid: string | undefined) =>
    cluster.create(kinds.route, {
      metadata: { name, namespace: 'b' },
      spec: { ...spec('bank'), sharedFrom: { space: 'a', route: 'bank', uid: uid ?? '' } },
    });
  const ownerUid = async () => {
    await make('a', 'bank', { ...spec('bank'), sharedWith: ['b'] });
    return cluster.peek(kinds.route, 'a', 'bank')?.metadata.uid;
  };
  const accepted = () => ['first', 'second'].filter((name) => claimed('b', name)?.status === 'True');
  const refused = () => ['first', 'second'].filter((name) => claimed('b', name)?.reason === 'DuplicateName');

  test('that were made at once one is refused, and accepted when the other one is gone', async () => {
    const uid = await ownerUid();
    await stop();
    await Promise.all([addHalf('first', uid), addHalf('second', uid)]);
    stop = startController();
    await until(() => expect([accepted().length, refused().length]).toEqual([1, 1]));
    expect(claimed('b', refused()[0] ?? '')?.message).toBe(
      'The route is of another space, and this space has it already by another object.',
    );
    const left = refused();
    await cluster.delete(kinds.route, 'b', accepted()[0] ?? '');
    await until(() => expect(accepted()).toEqual(left));
  });

  test('the accepted one stays', async () => {
    const uid = await ownerUid();
    await addHalf('second', uid);
    await until(() => expect(accepted()).toEqual(['second']));
    await addHalf('first', uid);
    await until(() => expect(refused()).toEqual(['first']));
    expect(accepted()).toEqual(['second']);
  });

  test('that an earlier controller accepted, only the one with the requests stays', async () => {
    const uid = await ownerUid();
    await stop();
    for (const name of ['first', 'second']) {
      await addHalf(name, uid);
      const said = { type: 'Claimed', status: 'True', reason: 'Claimed', message: '', observedGeneration: 1, lastTransitionTime: '' };
      await cluster.mergePatch(kinds.route, 'b', name, { status: { conditions: [said] } }, { subresource: 'status' });
    }
    stop = startController();
    await until(() => expect(refused()).toEqual(['second']));
    expect(accepted()).toEqual(['first']);
  });
});

test('the hosts of a space that is gone are free after one look at its routes', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `route-${String(index)}`);
  for (const name of names) expect(await make('b', name, spec(name))).toBe('Claimed');
  await stop();
  for (const name of names) await cluster.delete(kinds.route, 'b', name);
  await cluster.delete(namespaceType, undefined, 'b');
  expect(hostLeases()).toHaveLength(names.length);
  const list = vi.spyOn(cluster, 'list');
  stop = startController();
  await until(() => expect(hostLeases()).toEqual([]));
  const looks = list.mock.calls.filter(([type, options]) => type.plural === kinds.route.plural && options?.ns === 'b');
  expect(looks.length).toBeLessThan(3);
});

test('a deleted route gets no requests, even while a finalizer of its owner keeps it, and its host is free when it is gone', async () => {
  const finalizers = ['example.com/never'];
  await cluster.create(kinds.route, { metadata: { name: 'squat', namespace: 'a', finalizers }, spec: spec('bank', '/login') });
  await until(() => expect(cluster.all(httpRouteType)).toHaveLength(1));
  await cluster.delete(kinds.route, 'a', 'squat');
  await until(() => expect(cluster.all(httpRouteType)).toEqual([]));
  expect(await make('b', 'early', spec('bank'))).toBe('DuplicateName');
  await cluster.mergePatch(kinds.route, 'a', 'squat', { metadata: { finalizers: [] } });
  await until(() => expect(hostLeases()).toEqual([]));
  expect(await make('b', 'late', spec('bank'))).toBe('Claimed');
});

test('an HTTPRoute is deleted if its route is gone and the garbage collector did not delete it', async () => {
  await make('b', 'bank', spec('bank'));
  await until(() => expect(cluster.all(httpRouteType)).toHaveLength(1));
  const left = cluster.all(httpRouteType)[0];
  await stop();
  await cluster.delete(kinds.route, 'b', 'bank');
  await cluster.create(httpRouteType, { ...left, metadata: { ...left?.metadata, ownerReferences: [] } });
  stop = startController();
  await until(() => expect(cluster.all(httpRouteType)).toEqual([]));
});

describe('a route is refused', () => {
  test('for every host of the domain, unless an operator has allowed it', async () => {
    expect(await make('a', 'every', spec('*'))).toBe('WildcardNotAllowed');
    expect(await make('a', 'allowed', spec('*'), { 'kf.cloudfoundry.org/wildcard': 'allowed' })).toBe('Claimed');
  });

  test('on a domain in another namespace, and nothing is written where it points', async () => {
    await cluster.create(kinds.domain, { metadata: { name: 'own', namespace: 'a' }, spec: { name: 'apps.example.net' } });
    for (const namespace of ['a', 'b', 'kf-system'])
      expect(await make('a', `r-${namespace}`, { ...spec('x'), domainRef: { name: 'own', namespace } }), namespace).toBe(
        'InvalidDomainRef',
      );
    expect(cluster.all(leaseType).filter(({ metadata }) => metadata.namespace !== 'kf-system' && metadata.name?.startsWith('n-'))).toEqual(
      [],
    );
  });

  test('on a domain that overlaps with another, with or without the dot at its end', async () => {
    await cluster.create(kinds.domain, { metadata: { name: 'same', namespace: 'cf' }, spec: { name: 'apps.example.' } });
    await until(() => expect(findCondition(cluster.peek(kinds.domain, 'cf', 'same') ?? { metadata: {} }, 'Ready')?.status).toBe('False'));
    expect(await make('a', 'x', { ...spec('x'), domainRef: { name: 'same', namespace: 'cf' } })).toBe('InvalidDomainRef');
  });

  test('without a host or for TCP', async () => {
    expect(await make('a', 'tcp', { ...spec(''), protocol: 'tcp' })).toBe('ProtocolNotSupported');
  });
});

test('a route whose domain is deleted gets no requests, so that its host can be used on a new domain', async () => {
  expect(await make('b', 'bank', spec('bank'))).toBe('Claimed');
  await until(() => expect(cluster.all(httpRouteType)).toHaveLength(1));
  // The gateway had reported that it was loaded.
  const said = { type: 'Programmed', status: 'True', reason: 'Loaded', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const before = cluster.peek(kinds.route, 'b', 'bank')?.status;
  expect(before?.uri).toBe('bank.apps.example');
  const conditions = [...(before?.conditions ?? []), said];
  await cluster.mergePatch(kinds.route, 'b', 'bank', { status: { conditions } }, { subresource: 'status' });
  await cluster.delete(kinds.domain, 'cf', 'd');
  await until(() => expect(claimed('b', 'bank')?.reason).toBe('InvalidDomainRef'));
  const { conditions: after = [], ...address } = cluster.peek(kinds.route, 'b', 'bank')?.status ?? {};
  expect(after.map(({ type }) => type).toSorted()).toEqual(['Claimed', 'Ready']);
  expect(Object.keys(address)).toEqual(['observedGeneration']);
  await until(() => expect(cluster.all(httpRouteType)).toEqual([]));
  await cluster.create(kinds.domain, { metadata: { name: 'e', namespace: 'cf' }, spec: { name: 'apps.example' } });
  expect(await make('a', 'bank', { ...spec('bank'), domainRef: { name: 'e', namespace: 'cf' } })).toBe('Claimed');
  expect(cluster.all(serviceType)).toEqual([]);
});

describe('a domain whose requests with http are redirected', () => {
  const redirect = () => cluster.peek(httpRouteType, 'cf', 'http-redirect-d')?.spec;
  const sections = () => cluster.peek(httpRouteType, 'b', 'bank')?.spec?.parentRefs?.map(({ sectionName }) => sectionName);
  const set = (httpRedirect: boolean) => cluster.mergePatch(kinds.domain, 'cf', 'd', { spec: { httpRedirect } });
  const setHttps = (https: object | undefined) => {
    const settings = { ...info, gateway: { ...info.gateway, ...(https === undefined ? {} : { https }) } };
    return cluster.mergePatch(configMapType, 'cf', 'kf-info', { data: { 'info.json': JSON.stringify(settings) } });
  };

  test('has a route that redirects all its hosts, and its other routes only answer https', async () => {
    await setHttps({ port: 8443, secrets: [{ domain: 'apps.example', namespace: 'x', name: 'y' }] });
    await make('b', 'bank', spec('bank'));
    await until(() => expect(sections()).toEqual([undefined]));
    await set(true);
    await until(() => expect(sections()).toEqual(['https-apps', 'https-apps.example']));
    expect(redirect()).toMatchObject({
      parentRefs: [{ kind: 'Gateway', sectionName: 'http-apps' }],
      hostnames: ['*.apps.example', 'apps.example'],
      rules: [{ filters: [{ requestRedirect: { scheme: 'https', port: 8443, statusCode: 301 } }] }],
    });
    await setHttps({ port: 443, secrets: [] });
    await until(() => expect(redirect()?.rules?.[0]?.filters?.[0]?.requestRedirect?.port).toBe(443));
    await until(() => expect(sections()).toEqual(['https-apps']));
    await set(false);
    await until(() => expect([redirect(), sections()]).toEqual([undefined, [undefined]]));
  });

  const isChecked = () => currentCondition(cluster.peek(kinds.domain, 'cf', 'd') ?? { metadata: {} }, 'Ready') !== undefined;

  /** The domain has one route, and its redirection. */
  const redirected = async () => {
    await setHttps({ port: 443, secrets: [] });
    await make('b', 'bank', spec('bank'));
    await set(true);
    await until(() => expect([sections(), redirect() === undefined, isChecked()]).toEqual([['https-apps'], false, true]));
  };

  test('is redirected until each of its routes answers http, and ready only then', async () => {
    await redirected();
    const order: string[] = [];
    let looks = 0;
    cluster.intercept = async (verb, { plural }, name) => {
      if (plural !== httpRouteType.plural) return;
      if (name === 'http-redirect-d' && verb === 'get') looks += 1;
      if (name === 'http-redirect-d' && verb === 'delete') order.push('without redirect');
      if (name !== 'bank' || verb !== 'patch') return;
      await until(() => expect(looks > 2 || order.length > 0).toBe(true));
      order.push(isChecked() ? 'ready before http' : 'http');
    };
    await set(false);
    await until(() => expect([redirect(), sections(), isChecked()]).toEqual([undefined, [undefined], true]));
    expect(order).toEqual(['http', 'without redirect']);
  });

  test('is ready when one of its routes cannot be written, and redirected until it is', async () => {
    await redirected();
    cluster.intercept = (verb, { plural }, name) => {
      if (plural === httpRouteType.plural && name === 'bank' && verb === 'patch') throw new Error('no room');
    };
    await set(false);
    await until(() => expect(isChecked()).toBe(true));
    expect(redirect()).toBeDefined();
    cluster.intercept = () => undefined;
    await until(() => expect([redirect(), sections()]).toEqual([undefined, [undefined]]));
  });

  test('is ready after 30 s when one of its routes is not written and does not say why, and redirected until it is', async () => {
    await redirected();
    let looks = 0;
    cluster.intercept = (verb, { plural }, name) => {
      if (plural === kinds.app.plural && verb === 'get') throw new Error('no answer');
      if (name === 'http-redirect-d' && verb === 'get') looks += 1;
    };
    const destinations = [{ guid: 'x', appRef: { name: 'none' }, processType: 'web' }];
    await cluster.mergePatch(kinds.route, 'b', 'bank', { spec: { destinations } });
    await set(false);
    await until(() => expect(looks).toBeGreaterThan(1));
    later = 15_000;
    looks = 0;
    await until(() => expect(looks).toBeGreaterThan(1));
    expect(isChecked()).toBe(false);
    later = 31_000;
    await until(() => expect(isChecked()).toBe(true));
    expect(redirect()).toBeDefined();
    cluster.intercept = () => undefined;
    await until(() => expect([redirect(), sections()]).toEqual([undefined, [undefined]]));
  });

  test('gets the route back that somebody deletes, by the next look at it', async () => {
    await setHttps({ port: 8443, secrets: [] });
    await set(true);
    await until(() => expect(redirect()).toBeDefined());
    await cluster.delete(httpRouteType, 'cf', 'http-redirect-d');
    await until(() => expect(redirect()).toBeDefined());
  });

  test('answers http while the gateway has no https, or redirects all requests itself', async () => {
    await make('b', 'bank', spec('bank'));
    await set(true);
    await setHttps({ port: 443, secrets: [] });
    await until(() => expect(redirect()).toBeDefined());
    await setHttps({ port: 443, redirect: true, secrets: [] });
    await until(() => expect([redirect(), sections()]).toEqual([undefined, [undefined]]));
    await setHttps(undefined);
    await until(() => expect([redirect(), sections()]).toEqual([undefined, [undefined]]));
  });
});
