// Attacker: a developer of one space who wants the requests of another space: by path, by case, by wildcard, by waiting for its host, and with
// objects instead of the CLI.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get, type Answer } from '../../support/http.ts';
import { Kf, kubectl, kubectlJson } from '../../support/kf.ts';
import { applyAsAdmin, conditionOf, displayName, TestWorld, type Member } from '../../support/members.ts';
import type { Place } from '../../support/developer.ts';
import { until } from '../../support/until.ts';

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
const host = `bank-${randomUUID().slice(0, 6)}`;
const domain = 'apps.localhost';
const url = `${host}.${domain}`;
const outside = `outside-${host}`;
const world = new TestWorld();
let place: Place;
let attackers: Place;
let victim: Member;
let attacker: Member;

beforeAll(async () => {
  [place, attackers] = [await world.space(), await world.space()];
  [victim, attacker] = [await world.member('spaceDeveloper', place), await world.member('spaceDeveloper', attackers)];
  await victim.kf.ok('push', 'bank', '-o', `${registry}/kf/sample:1`, '-m', '64M', '--no-route');
  await victim.kf.ok('map-route', 'bank', domain, '-n', host);
  await attacker.kf.ok('push', 'thief', '-o', `${registry}/kf/sample:2`, '-m', '64M', '--no-route');
});

afterAll(async () => {
  await kubectl('delete', 'namespace', outside, '--ignore-not-found', '--wait=false');
  await world.remove();
});

/** Which of the two apps answered: the victim's sample is version 1. */
const answeredBy = ({ headers }: Answer): unknown => headers['x-sample-version'];
const ways = ['/', '/login', '/Login', '/pay', '/LOGIN/x', '/?a=b'];

/** All variants of the bank's URL lead to the bank. */
async function expectBank(): Promise<void> {
  for (const way of ways) expect(answeredBy(await get(url, way)), way).toBe('1');
  for (const spelled of [url.toUpperCase(), `${url}.`, `${url}:80`]) expect(answeredBy(await get(spelled)), spelled).toBe('1');
}

interface RouteObject {
  host: string;
  path?: string;
  domainNamespace?: string;
  annotations?: Record<string, string>;
}

/** Without the CLI: a CFRoute with the attacker's own rights. Returns its name, or the API server's message. */
async function plant({
  host: wanted,
  path,
  domainNamespace = 'cf',
  annotations = {},
}: RouteObject): Promise<{ name: string; refusal: string }> {
  const name = randomUUID();
  const app = await attacker.kf.ok('app', 'thief', '--guid');
  const destinations = [{ guid: randomUUID(), appRef: { name: app.stdout.trim() }, processType: 'web' }];
  const said = await attacker.kubectl(['create', '-f', '-'], {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFRoute',
    metadata: { name, namespace: attackers.space, annotations },
    spec: {
      host: wanted,
      ...(path === undefined ? {} : { path }),
      protocol: 'http',
      domainRef: { name: 'default-domain', namespace: domainNamespace },
      destinations,
    },
  });
  return { name, refusal: said.code === 0 ? '' : said.stderr };
}

const claimOf = (name: string) => conditionOf('cfroute', attackers.space, name, 'Claimed');

async function refusalOf(name: string): Promise<string> {
  return until(`the route ${name} to be judged`, async () => {
    const claim = await claimOf(name);
    return claim?.status === 'False' ? claim.reason : undefined;
  });
}

describe('a host of another space', () => {
  test.each([[[]], [['--path', '/login']], [['--path', '/Login']]])('cannot be mapped by the CLI: %j', async (path) => {
    const ran = await attacker.kf.run(['map-route', 'thief', domain, '-n', host.toUpperCase(), ...path]);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('Another space has this host, with all its paths.');
    expect(ran.stderr).not.toContain(place.space);
    await expectBank();
  });

  test.each([{ host, path: '/login' }, { host: host.toUpperCase() }, { host, path: '/pay' }, { host }])(
    'cannot be taken by an object either: %j',
    async (object) => {
      const { name, refusal } = await plant(object);
      expect(refusal).toBe('');
      expect(await refusalOf(name)).toBe('DuplicateName');
      await expectBank();
    },
  );

  test.each(['kf-system', 'own', 'victim'])('cannot be taken by a domain that claims to be in %s', async (where) => {
    const domainNamespace = where === 'own' ? attackers.space : where === 'victim' ? place.space : where;
    const { name } = await plant({ host, domainNamespace });
    expect(await refusalOf(name)).toBe('InvalidDomainRef');
    await expectBank();
  });

  test('cannot be taken by a route for every host, whatever its annotations', async () => {
    const ran = await attacker.kf.run(['map-route', 'thief', domain, '-n', '*']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('only an operator');
    for (const annotations of [{}, { 'kf.cloudfoundry.org/wildcard': 'allowed' }])
      expect((await plant({ host: '*', annotations })).refusal).toContain('only an operator');
    await expectBank();
  });

  test("cannot be taken by an HTTPRoute in the attacker's own space", async () => {
    const said = await attacker.kubectl(['create', '-f', '-'], httpRoute(attackers.space));
    expect(said.stderr).toContain('cannot create resource "httproutes"');
  });
});

const httpRoute = (namespace: string): object => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: 'steal', namespace },
  spec: {
    parentRefs: [{ namespace: 'kf-node', name: 'kf' }],
    hostnames: [url],
    rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/login' } }], backendRefs: [{ name: 'thief', port: 80 }] }],
  },
});

test('the gateway ignores routes of namespaces that kf did not create', async () => {
  const labels = { 'example.com/team': 'outside' };
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'thief', namespace: outside }, spec: { ports: [{ port: 80 }] } };
  await applyAsAdmin({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: outside, labels } });
  await applyAsAdmin(service, httpRoute(outside));
  await until('the gateway to have judged the route', async () => {
    const { status } = await kubectlJson<{ status?: { parents?: { conditions: { type: string; reason: string }[] }[] } }>(
      'get',
      'httproute',
      '-n',
      outside,
      'steal',
    );
    const accepted = status?.parents?.flatMap(({ conditions }) => conditions).find(({ type }) => type === 'Accepted');
    return accepted?.reason === 'NotAllowedByListeners';
  });
  await expectBank();
});

test('paths that differ only in capitals are the same, for claims and for requests', async () => {
  await victim.kf.ok('map-route', 'bank', domain, '-n', host, '--path', '/Pay');
  const twin = await victim.kf.run(['map-route', 'bank', domain, '-n', host, '--path', '/pay']);
  expect(twin.stdout).toContain('Nothing has been updated.');
  await victim.kf.ok('unmap-route', 'bank', domain, '-n', host);
  await until('only the path to lead to the app', async () => answeredBy(await get(url, '/login')) === undefined);
  for (const way of ['/pay', '/Pay', '/PAY/x', '/pay?a=b']) expect(answeredBy(await get(url, way)), way).toBe('1');
  expect(answeredBy(await get(url, '/payment'))).toBeUndefined();
});

test('a host without a destination stays with its space and answers 404, and when the space gives it up, no waiting route gets it', async () => {
  await victim.kf.ok('unmap-route', 'bank', domain, '-n', host, '--path', '/pay');
  await until('the host to lead nowhere', async () => (await get(url, '/pay')).status === 404);
  const waiting = await plant({ host });
  expect(await refusalOf(waiting.name)).toBe('DuplicateName');
  const mapped = await attacker.kf.run(['map-route', 'thief', domain, '-n', host, '--path', '/x']);
  expect(mapped.code).toBe(1);
  await victim.kubectl(['delete', 'cfroutes', '--all', '-n', place.space]);
  // The controller has processed the deletion when an object that was created later is ready.
  await attacker.kf.ok('map-route', 'thief', domain, '-n', `own-${host}`);
  await until('the later route to answer', async () => answeredBy(await get(`own-${host}.${domain}`)) === '2');
  expect((await claimOf(waiting.name))?.reason).toBe('DuplicateName');
  expect((await get(url)).status).toBe(404);
  await victim.kf.ok('map-route', 'bank', domain, '-n', host);
  await until('the host to lead to its app again', async () => answeredBy(await get(url)) === '1');
  await expectBank();
});

test('a deleted route that a finalizer keeps gets no requests, and its host is free when it is gone', async () => {
  const squatted = `squat-${host}`;
  const { name } = await plant({ host: squatted, path: '/login' });
  await until('the squatter to have the host', async () => answeredBy(await get(`${squatted}.${domain}`, '/login')) === '2');
  const patch = (finalizers: string[] | null): string => JSON.stringify({ metadata: { finalizers } });
  const held = await attacker.kubectl(['patch', 'cfroute', '-n', attackers.space, name, '--type=merge', '-p', patch(['example.com/hold'])]);
  expect(held.stderr).toBe('');
  await attacker.kubectl(['delete', 'cfroute', '-n', attackers.space, name, '--wait=false']);
  await until('the held route to lead nowhere', async () => (await get(`${squatted}.${domain}`, '/login')).status === 404);
  await attacker.kubectl(['patch', 'cfroute', '-n', attackers.space, name, '--type=merge', '-p', patch(null)]);
  await until('the victim to get the host', async () => (await victim.kf.run(['map-route', 'bank', domain, '-n', squatted])).code === 0);
  for (const way of ['/', '/login']) expect(answeredBy(await get(`${squatted}.${domain}`, way)), way).toBe('1');
});

test('a host that moves to another space is never free: a developer who asks for it all the time does not get it', async () => {
  const moving = `moving-${host}`;
  const target = await world.space();
  const [org, from] = [await displayName('cforg', 'cf', place.org), await displayName('cfspace', place.org, place.space)];
  const [toOrg, to] = [await displayName('cforg', 'cf', target.org), await displayName('cfspace', target.org, target.space)];
  const admin = await Kf.create('admin', { KF_ORG: org, KF_SPACE: from });
  try {
    await admin.ok('create-route', domain, '-n', moving);
    let isOver = false;
    const planted: string[] = [];
    const attack = (async () => {
      while (!isOver) planted.push((await plant({ host: moving })).name);
    })();
    await until('the attacker to ask', () => Promise.resolve(planted.length > 2));
    await admin.ok('move-route', domain, '-n', moving, '-o', toOrg, '-s', to);
    const during = planted.length;
    await until('the attacker to ask afterwards too', () => Promise.resolve(planted.length > during + 2));
    isOver = true;
    await attack;
    for (const one of planted) expect(await refusalOf(one)).toBe('DuplicateName');
    const { items } = await kubectlJson<{ items: { spec: { host: string } }[] }>('get', 'cfroutes', '-n', target.space);
    expect(items.map(({ spec }) => spec.host)).toEqual([moving]);
  } finally {
    await admin.remove();
  }
});
