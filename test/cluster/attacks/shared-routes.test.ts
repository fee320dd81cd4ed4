// Attacker: a developer of one space who wants requests of a route of another space without being named there, or wants to send requests to an app
// of a space that has not agreed, or misuses a route that is shared with him.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Place } from '../../support/developer.ts';
import { get } from '../../support/http.ts';
import { kubectl } from '../../support/kf.ts';
import { conditionOf, TestWorld, type Member, type Said } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
const host = `lent-${randomUUID().slice(0, 6)}`;
const world = new TestWorld();
const places: Record<string, Place> = {};
const members: Record<string, Member> = {};
const apps: Record<string, string> = {};
const memberOf = (name: string): Member => members[name] as Member;
const spaceOf = (name: string): string => places[name]?.space ?? '';
let route: { name: string; uid: string };

interface RouteSpec {
  host?: string;
  path?: string;
  apps?: string[];
  sharedWith?: string[];
  sharedFrom?: { space: string; route: string; uid: string };
}

/** A CFRoute made with the rights of a member of that space. */
async function plant(who: string, { apps: guids = [], ...spec }: RouteSpec, name: string = randomUUID()): Promise<string> {
  const said = await memberOf(who).kubectl(['create', '-f', '-'], {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFRoute',
    metadata: { name, namespace: spaceOf(who) },
    spec: {
      ...{ host, protocol: 'http', domainRef: { name: 'default-domain', namespace: 'cf' }, ...spec },
      destinations: guids.map((app) => ({ guid: randomUUID(), appRef: { name: app }, processType: 'web', port: 8080 })),
    },
  });
  expect(said).toMatchObject({ code: 0 });
  return name;
}

const patch = (who: string, name: string, spec: object, space = who): Promise<Said> =>
  memberOf(who).kubectl(['patch', 'cfroute', '-n', spaceOf(space), name, '--type=merge', '-p', JSON.stringify({ spec })]);
const uidOf = (who: string, name: string): Promise<string> =>
  kubectl('get', 'cfroute', '-n', spaceOf(who), name, '-o', 'jsonpath={.metadata.uid}');
const owned = (): { space: string; route: string; uid: string } => ({ space: spaceOf('owner'), route: route.name, uid: route.uid });

async function claimed(who: string, name: string, reason: string): Promise<void> {
  await until(`${reason} of the route`, async () => {
    const claim = await conditionOf('cfroute', spaceOf(who), name, 'Claimed');
    return claim?.reason === reason || (reason === 'Claimed' && claim?.status === 'True') ? true : undefined;
  });
}

async function answers(): Promise<string[]> {
  const seen = new Set<string>();
  for (let i = 0; i < 12; i++) seen.add(String((await get(`${host}.apps.localhost`)).headers['x-sample-version']));
  return [...seen].toSorted();
}

/** What the gateway reads in a space. */
const partsIn = (who: string): Promise<string> => kubectl('get', 'httproutes,referencegrants,services', '-n', spaceOf(who), '-o', 'name');

beforeAll(async () => {
  for (const who of ['owner', 'friend', 'thief']) {
    places[who] = await world.space();
    members[who] = await world.member('spaceDeveloper', places[who]);
  }
  for (const who of ['owner', 'friend', 'thief']) {
    await memberOf(who).kf.ok('push', who, '-o', `${registry}/kf/sample:1`, '-m', '64M', '--no-route', '--no-start');
    await memberOf(who).kf.ok('set-env', who, 'SAMPLE_VERSION', who);
    await memberOf(who).kf.ok('start', who);
    apps[who] = (await memberOf(who).kf.ok('app', who, '--guid')).stdout.trim();
  }
  const name = await plant('owner', { apps: [apps['owner'] ?? ''] });
  route = { name, uid: await uidOf('owner', name) };
  await claimed('owner', name, 'Claimed');
});

afterAll(() => world.remove());

test('a space that the route does not name cannot join it', async () => {
  const name = await plant('thief', { apps: [apps['thief'] ?? ''], sharedFrom: owned() });
  await claimed('thief', name, 'NotShared');
  expect(await answers()).toEqual(['owner']);
  expect(await partsIn('thief')).toBe('');
  expect((await patch('thief', route.name, { sharedWith: [spaceOf('thief')] }, 'owner')).stderr).toContain('Forbidden');
  expect((await patch('thief', name, { sharedFrom: { ...owned(), route: 'other' } })).stderr).toContain('cannot be changed');
});

test('an owner sends no requests to an app of a space that has not agreed', async () => {
  const before = await partsIn('friend');
  await patch('owner', route.name, { sharedWith: [spaceOf('friend')] });
  const stray = { guid: randomUUID(), appRef: { name: apps['friend'] ?? '' }, processType: 'web', port: 8080 };
  // With the guid that it has: another one would be another Service, to which the gateway has to change first.
  const guid = await kubectl('get', 'cfroute', '-n', spaceOf('owner'), route.name, '-o', 'jsonpath={.spec.destinations[0].guid}');
  const own = { guid, appRef: { name: apps['owner'] ?? '' }, processType: 'web', port: 8080 };
  await patch('owner', route.name, { destinations: [own, stray] });
  await until('the app of another space to be taken away', async () => {
    const left = await kubectl('get', 'cfroute', '-n', spaceOf('owner'), route.name, '-o', 'jsonpath={.spec.destinations[*].appRef.name}');
    return left === apps['owner'] ? true : undefined;
  });
  expect(await answers()).toEqual(['owner']);
  expect(await partsIn('friend')).toBe(before);
  for (const kind of ['referencegrants.gateway.networking.k8s.io', 'httproutes.gateway.networking.k8s.io'])
    for (const where of ['owner', 'friend'])
      expect((await memberOf('owner').kubectl(['auth', 'can-i', 'create', kind, '-n', spaceOf(where)])).stdout.trim()).toBe('no');
});

test('a space that the route names leads it to its own apps only, at this address only, and shares it with nobody', async () => {
  const foreign = await plant('friend', { apps: [apps['thief'] ?? '', apps['owner'] ?? ''], sharedFrom: owned() });
  await claimed('friend', foreign, 'Claimed');
  const elsewhere = await plant('friend', { path: '/pay', apps: [apps['friend'] ?? ''], sharedFrom: owned() });
  await claimed('friend', elsewhere, 'NotShared');
  expect(await partsIn('friend')).toBe('');
  expect(await answers()).toEqual(['owner']);
  expect((await patch('friend', foreign, { sharedWith: [spaceOf('thief')] })).stderr).toContain(
    'Only the space that owns a route shares it',
  );
  const uid = await uidOf('friend', foreign);
  const chained = await plant('thief', { apps: [apps['thief'] ?? ''], sharedFrom: { space: spaceOf('friend'), route: foreign, uid } });
  await claimed('thief', chained, 'NotShared');
  await memberOf('friend').kubectl(['delete', 'cfroute', '-n', spaceOf('friend'), foreign, elsewhere]);

  const half = await plant('friend', { apps: [apps['friend'] ?? ''], sharedFrom: owned() });
  await until('the app of the other space to answer', async () => ((await answers()).includes('friend') ? true : undefined));
  const granted = await kubectl('get', 'referencegrants', '-n', spaceOf('friend'), '-o', 'jsonpath={.items[*].spec}');
  const service = (await kubectl('get', 'services', '-n', spaceOf('friend'), '-o', 'name')).trim().replace('service/', '');
  expect(JSON.parse(granted)).toEqual({
    from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: spaceOf('owner') }],
    to: [{ group: '', kind: 'Service', name: service }],
  });
  expect((await kubectl('get', 'cfroute', '-n', spaceOf('friend'), half, '-o', 'name')).trim()).not.toBe('');
});

test('a new route with the GUID of a deleted one gets no requests to apps of the other space, and the other space keeps no right to the host', async () => {
  await memberOf('owner').kubectl(['delete', 'cfroute', '-n', spaceOf('owner'), route.name]);
  await until('the parts in the other space to go', async () => ((await partsIn('friend')) === '' ? true : undefined));
  await plant('owner', { apps: [apps['owner'] ?? ''], sharedWith: [spaceOf('friend')] }, route.name);
  await claimed('owner', route.name, 'Claimed');
  await until('the owner to answer', async () => ((await answers()).join(' ') === 'owner' ? true : undefined));
  expect(await answers()).toEqual(['owner']);
  expect(await partsIn('friend')).toBe('');
});

/** A half of the friend's space that leads to one of its apps. */
async function plantHalf(app: string, name?: string): Promise<string> {
  const half = await plant('friend', { apps: [app], sharedFrom: owned() }, name);
  await claimed('friend', half, 'Claimed');
  return half;
}

test('a half with the GUID of a process, and an app with the GUID of an app, stop no update of the owner', async () => {
  route = { ...route, uid: await uidOf('owner', route.name) };
  const process = await kubectl('get', 'cfprocesses', '-n', spaceOf('owner'), '-o', 'jsonpath={.items[0].metadata.name}');
  const half = await plantHalf(apps['friend'] ?? '', process);
  await until('the app of the other space to answer', async () => ((await answers()).includes('friend') ? true : undefined));
  await memberOf('owner').kf.ok('restart', 'owner');
  await memberOf('friend').kubectl(['delete', 'cfroute', '-n', spaceOf('friend'), half]);

  const metadata = { name: apps['owner'] ?? '', namespace: spaceOf('friend') };
  const lifecycle = { type: 'docker', data: { stack: '' } };
  const twin = { displayName: 'twin', desiredState: 'STOPPED', lifecycle };
  const app = { apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFApp', metadata, spec: twin };
  expect(await memberOf('friend').kubectl(['create', '-f', '-'], app)).toMatchObject({ code: 0 });
  await memberOf('friend').kf.ok('push', 'twin', '-o', `${registry}/kf/sample:1`, '-m', '64M', '--no-route');
  const second = await plantHalf(metadata.name);
  await until('the app with the same GUID to answer', async () => ((await answers()).length === 2 ? true : undefined));
  await memberOf('owner').kf.ok('restart', 'owner');
  await memberOf('friend').kf.ok('restart', 'twin');
  await memberOf('friend').kubectl(['delete', 'cfroute', '-n', spaceOf('friend'), second]);
});

test('a port that does not exist is refused in a half and in a route', async () => {
  const half = await plantHalf(apps['friend'] ?? '');
  for (const [who, name] of [
    ['friend', half],
    ['owner', route.name],
  ] as const)
    // prettier-ignore
    for (const port of [0, 65_536]) {
      const wrong = { guid: randomUUID(), appRef: { name: apps[who] ?? '' }, processType: 'web', port };
      const said = await patch(who, name, { destinations: [wrong] });
      expect(said.code, said.stderr).not.toBe(0);
      expect(said.stderr).toContain(`spec.destinations[0].port`);
    }
  await memberOf('friend').kubectl(['delete', 'cfroute', '-n', spaceOf('friend'), half]);
});

test('an owner who takes all places of the route stops no update in the other space, which gets requests again when there is room', async () => {
  const half = await plantHalf(apps['friend'] ?? '');
  await until('the app of the other space to answer', async () => ((await answers()).includes('friend') ? true : undefined));
  const own = { appRef: { name: apps['owner'] ?? '' }, processType: 'web', port: 8080 };
  const many = Array.from({ length: 16 }, () => ({ ...own, guid: randomUUID() }));
  expect(await patch('owner', route.name, { destinations: many })).toMatchObject({ code: 0 });
  await until('the half to have no room', async () => {
    const programmed = await conditionOf('cfroute', spaceOf('friend'), half, 'Programmed');
    return programmed?.reason === 'TooManyDestinations' ? true : undefined;
  });
  await memberOf('friend').kf.ok('restart', 'friend');
  await memberOf('owner').kf.ok('restart', 'owner');
  expect(await patch('owner', route.name, { destinations: many.slice(0, 1) })).toMatchObject({ code: 0 });
  await until('the app of the other space to answer', async () => ((await answers()).includes('friend') ? true : undefined));
  await memberOf('friend').kf.ok('restart', 'friend');
});
