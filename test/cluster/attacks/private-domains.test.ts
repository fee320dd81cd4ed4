// Attacker: a developer of one org who wants the domain of another org, by the CLI and by objects of its own.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Place } from '../../support/developer.ts';
import { get, getSecurely } from '../../support/http.ts';
import { Kf, kubectlJson } from '../../support/kf.ts';
import { conditionOf, displayName, TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
const domain = `team-${randomUUID().slice(0, 6)}.localhost`;
const world = new TestWorld();
let admin: Kf;
let place: Place;
let attackers: Place;
let owner: Member;
let attacker: Member;

beforeAll(async () => {
  admin = await Kf.create('admin');
  [place, attackers] = [await world.space(), await world.space()];
  [owner, attacker] = [await world.member('spaceDeveloper', place), await world.member('spaceDeveloper', attackers)];
  await owner.kf.ok('push', 'shop', '-o', `${registry}/kf/sample:1`, '-m', '64M', '--no-route');
  await attacker.kf.ok('push', 'thief', '-o', `${registry}/kf/sample:2`, '-m', '64M', '--no-route');
  await admin.ok('create-private-domain', await displayName('cforg', 'cf', place.org), domain);
});

afterAll(async () => {
  await admin.run(['delete-private-domain', domain, '-f']);
  await admin.remove();
  await world.remove();
});

const domainGuid = async (): Promise<string> => {
  const { items } = await kubectlJson<{ items: { metadata: { name: string }; spec: { name: string } }[] }>('get', 'cfdomains', '-n', 'cf');
  return items.find(({ spec }) => spec.name === domain)?.metadata.name ?? '';
};

/** A CFRoute with the attacker's own rights. @returns the refusal, or nothing */
async function plant(host: string): Promise<string> {
  const app = await attacker.kf.ok('app', 'thief', '--guid');
  const said = await attacker.kubectl(['create', '-f', '-'], {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFRoute',
    metadata: { name: randomUUID(), namespace: attackers.space },
    spec: {
      host,
      protocol: 'http',
      domainRef: { name: await domainGuid(), namespace: 'cf' },
      destinations: [{ guid: randomUUID(), appRef: { name: app.stdout.trim() }, processType: 'web' }],
    },
  });
  return said.code === 0 ? '' : said.stderr;
}

test('a private domain answers with http and https for its org', async () => {
  await owner.kf.ok('map-route', 'shop', domain, '-n', 'www');
  expect((await get(`www.${domain}`)).headers['x-sample-version']).toBe('1');
  const ca = (await admin.ok('ca-certificate')).stdout;
  await until('the certificate of the domain', async () => {
    const answer = await getSecurely(`www.${domain}`, { ca }).catch(() => undefined);
    return answer?.headers['x-sample-version'] === '1' ? true : undefined;
  });
  expect((await owner.kf.ok('domains')).stdout).toMatch(new RegExp(`^${domain.replaceAll('.', String.raw`\.`)} +private +http$`, 'm'));
});

test('another org neither sees nor uses it, and a route made with kubectl is refused', async () => {
  expect((await attacker.kf.ok('domains')).stdout).not.toContain(domain);
  const mapped = await attacker.kf.run(['map-route', 'thief', domain, '-n', 'api']);
  expect([mapped.code, mapped.stderr]).toEqual([1, expect.stringContaining(`Domain '${domain}' not found.`)]);
  expect(await plant('api')).toContain(`Domain '${domain}' is private and not available in the organization of this space`);
  expect((await get(`api.${domain}`)).headers['x-sample-version']).toBeUndefined();
  const taken = await attacker.kf.run(['share-private-domain', await displayName('cforg', 'cf', attackers.org), domain]);
  expect(taken.code).toBe(1);
});

test('an org that it is shared with uses it, until it is unshared', async () => {
  const org = await displayName('cforg', 'cf', attackers.org);
  await admin.ok('share-private-domain', org, domain);
  await attacker.kf.ok('map-route', 'thief', domain, '-n', 'guest');
  expect((await get(`guest.${domain}`)).headers['x-sample-version']).toBe('2');
  const { items } = await kubectlJson<{ items: { metadata: { name: string } }[] }>('get', 'cfroutes', '-n', attackers.space);
  const name = items[0]?.metadata.name ?? '';
  await admin.ok('unshare-private-domain', org, domain, '-f');
  await until('the route to lead nowhere', async () =>
    (await get(`guest.${domain}`)).headers['x-sample-version'] === undefined ? true : undefined,
  );
  expect(await conditionOf('cfroute', attackers.space, name, 'Claimed')).toMatchObject({ status: 'False', reason: 'InvalidDomainRef' });
  expect((await get(`www.${domain}`)).headers['x-sample-version']).toBe('1');
});
