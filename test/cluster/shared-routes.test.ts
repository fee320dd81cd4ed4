// A route that two spaces share: requests reach the apps of both, also while an app of the other space is replaced, and none after unshare-route.

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cfRoles } from '../../src/lib/api/roles.ts';
import { buildRoleBinding } from '../../src/templates/tenancy.ts';
import type { Place } from '../support/developer.ts';
import { get } from '../support/http.ts';
import { kubectl } from '../support/kf.ts';
import { applyAsAdmin, displayName, TestWorld, type Member } from '../support/members.ts';
import { until } from '../support/until.ts';

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
const domain = 'apps.localhost';
const host = `both-${randomUUID().slice(0, 6)}`;
const url = `${host}.${domain}`;
const address = [domain, '-n', host];
const world = new TestWorld();
let [place, others]: Place[] = [];
let owner: Member;
let other: Member;
let otherSpace: string;

/** Versions of the sample that answer: `1` is the owner's app, `2` that of the other space. */
async function answers(requests = 40): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < requests; i++) {
    const { status, headers } = await get(url);
    const who = status === 200 ? String(headers['x-sample-version']) : `status ${status}`;
    counts[who] = (counts[who] ?? 0) + 1;
  }
  return counts;
}

/**
 * Both get the same number of 40 requests, and nothing else answers. A change of any route on the cluster, also by another test, makes the gateway begin
 * its turns anew, which gives one app a request more; so two changes meanwhile are allowed for.
 */
async function expectSameShare(): Promise<void> {
  const counts = await answers();
  expect(Object.keys(counts)).toEqual(['1', '2']);
  expect(Math.abs((counts['1'] ?? 0) - (counts['2'] ?? 0)), JSON.stringify(counts)).toBeLessThanOrEqual(3);
}

beforeAll(async () => {
  const org = await world.org();
  [place, others] = [await world.space(org), await world.space(org)] as [Place, Place];
  [owner, other] = [await world.member('spaceDeveloper', place), await world.member('spaceDeveloper', others)];
  const guid = randomUUID();
  await applyAsAdmin(buildRoleBinding({ role: cfRoles.spaceDeveloper, subject: { user: owner.user }, namespace: others.space, guid }));
  otherSpace = await displayName('cfspace', org, others.space);
  await other.kf.ok('push', 'theirs', '-o', `${registry}/kf/sample:2`, '-m', '64M', '--no-route');
  await owner.kf.ok('push', 'mine', '-o', `${registry}/kf/sample:1`, '-m', '64M', '--no-route');
  await owner.kf.ok('map-route', 'mine', ...address);
});

afterAll(() => world.remove());

test('an app of another space is mapped to the route after share-route, and both get the same share of the requests', async () => {
  expect((await other.kf.run(['map-route', 'theirs', ...address])).stderr).toContain('has this host, with all its paths');
  expect((await owner.kf.ok('share-route', ...address, '-s', otherSpace)).stdout).toContain(
    `Sharing route ${url} to space ${otherSpace} as`,
  );
  expect(await answers()).toEqual({ '1': 40 });
  await other.kf.ok('map-route', 'theirs', ...address);
  await expectSameShare();
  expect((await other.kf.ok('app', 'theirs')).stdout).toContain(url);
  expect((await other.kf.ok('routes')).stdout).toMatch(new RegExp(String.raw`${host} .*theirs`));
  expect((await other.kf.ok('why', '--route', url)).stdout).toContain('The gateway has loaded the route.');
  expect((await owner.kf.ok('why', '--route', url)).stdout).toContain('The gateway has loaded the route.');
});

const internalDomainGuid = async (): Promise<string> => {
  const domains = await kubectl(
    'get',
    'cfdomains',
    '-n',
    'cf',
    '-o',
    'jsonpath={range .items[*]}{.spec.name} {.metadata.name}{"\\n"}{end}',
  );
  return /^apps\.internal (\S+)$/m.exec(domains)?.[1] ?? '';
};

/** What answers while a command runs, all in all; requests go on without a pause. */
async function answersDuring(command: () => Promise<unknown>): Promise<string[]> {
  const seen = new Set<string>();
  let ended = false;
  const asking = (async () => {
    while (!ended) for (const who of Object.keys(await answers(5))) seen.add(who);
  })();
  try {
    await command();
  } finally {
    ended = true;
    await asking;
  }
  return [...seen].toSorted();
}

test('no request is lost while the app of either space is replaced and scaled', async () => {
  const during = {
    update: await answersDuring(() => other.kf.ok('restart', 'theirs', '--strategy', 'rolling')),
    scale: await answersDuring(() => other.kf.ok('scale', 'theirs', '-i', '2')),
    fewer: await answersDuring(() => other.kf.ok('scale', 'theirs', '-i', '1')),
    own: await answersDuring(() => owner.kf.ok('restart', 'mine', '--strategy', 'rolling')),
  };
  expect(during).toEqual({ update: ['1', '2'], scale: ['1', '2'], fewer: ['1', '2'], own: ['1', '2'] });
  // Who develops only in the other space cannot read the owner's HTTPRoute, so this stop does not wait for the gateway (decision 83).
  await other.kf.ok('stop', 'theirs');
  await until('the requests to reach the owner only', async () => ((await answers(10))['1'] === 10 ? true : undefined));
  await other.kf.ok('start', 'theirs');
  await expectSameShare();
});

test('only the owner changes and deletes the route, and it is not orphaned while it is shared', async () => {
  expect(await other.kf.run(['delete-route', ...address, '-f'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('belongs to another space') as string,
  });
  await owner.kf.ok('unmap-route', 'mine', ...address);
  expect(await answers(10)).toEqual({ '2': 10 });
  expect((await owner.kf.ok('delete-orphaned-routes', '-f')).stdout).not.toContain(url);
  await other.kf.ok('unmap-route', 'theirs', ...address);
  expect((await other.kf.ok('delete-orphaned-routes', '-f')).stdout).not.toContain(url);
  expect(await answers(5)).toEqual({ 'status 404': 5 });
  await owner.kf.ok('map-route', 'mine', ...address);
  await other.kf.ok('map-route', 'theirs', ...address);
  await expectSameShare();
});

test('a shared name on the internal domain leads to the instances of both spaces', async () => {
  const name = `${host}.apps.internal`;
  const internal = ['apps.internal', '-n', host];
  const script = `require('node:dns').lookup('${name}', { all: true }, (e, all) => console.log(e ? e.code : new Set(all.map((one) => one.address)).size))`;
  const instances = async (): Promise<string> => (await owner.kf.ok('ssh', 'mine', '-c', `node -e "${script}"`)).stdout.trim();
  await owner.kf.ok('map-route', 'mine', ...internal);
  await owner.kf.ok('share-route', ...internal, '-s', otherSpace);
  await until('the instance of the owner', async () => ((await instances()) === '1' ? true : undefined));
  await other.kf.ok('map-route', 'theirs', ...internal);
  await until('the instances of both', async () => ((await instances()) === '2' ? true : undefined));
  expect((await other.kf.ok('app', 'theirs')).stdout).toContain(name);
  const guid = (
    await kubectl(
      'get',
      'cfroutes',
      '-n',
      place?.space ?? '',
      '-l',
      `korifi.cloudfoundry.org/domain-guid=${await internalDomainGuid()}`,
      '-o',
      'jsonpath={.items[0].metadata.name}',
    )
  ).trim();
  const { data } = JSON.parse((await owner.kf.ok('curl', `/v3/routes/${guid}/relationships/shared_spaces`)).stdout) as { data: unknown };
  expect(data).toEqual([{ guid: others?.space }]);
  await owner.kf.ok('curl', '-X', 'DELETE', `/v3/routes/${guid}/relationships/shared_spaces/${others?.space ?? ''}`, '--fail');
  await until('the instance of the owner alone', async () => ((await instances()) === '1' ? true : undefined));
});

test('after unshare-route no request reaches the other space, and none is lost', async () => {
  const seen = await answersDuring(() => owner.kf.ok('unshare-route', ...address, '-s', otherSpace));
  expect(await answers()).toEqual({ '1': 40 });
  expect(seen.filter((who) => who.startsWith('status'))).toEqual([]);
  expect((await other.kf.ok('routes')).stdout).toContain('No routes found.');
  await until('the parts in the other space to go', async () => {
    const found = await kubectl(
      'get',
      'services,referencegrants',
      '-n',
      others?.space ?? '',
      '-l',
      'korifi.cloudfoundry.org/route-guid',
      '-o',
      'name',
    );
    return found.trim() === '' ? true : undefined;
  });
  expect((await other.kf.run(['map-route', 'theirs', ...address])).code).toBe(1);
});

test('when the other space is deleted, the route answers for its owner', async () => {
  await owner.kf.ok('share-route', ...address, '-s', otherSpace);
  await other.kf.ok('map-route', 'theirs', ...address);
  await expectSameShare();
  await kubectl('delete', 'cfspace', '-n', others?.org ?? '', others?.space ?? '');
  await until('the requests to reach the owner only', async () => ((await answers(10))['1'] === 10 ? true : undefined));
  expect((await owner.kf.ok('why', '--route', url)).stdout).toContain('The gateway has loaded the route.');
});
