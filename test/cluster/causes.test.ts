// Each cause code that no other file of the ring provokes: what `kf why` says of it on a real cluster.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CauseCode } from '../../src/lib/api/causes.ts';
import { foreignImage, fullQueue, serviceWithoutSecret } from '../support/cause-fixtures.ts';
import { CausePolicies } from '../support/cause-policies.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, ringEnv } from '../support/kf.ts';
import { TestWorld, type Member } from '../support/members.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const registry = ringEnv('KF_CLUSTER_NODE_REGISTRY');
const privateRegistry = ringEnv('KF_CLUSTER_PRIVATE_REGISTRY');
const sample = `${registry}/kf/sample:1`;
const world = new TestWorld();
let place: { org: string; space: string };
let developer: Member;
let auditor: Member;
let admin: Kf;
let policies: CausePolicies;

/** Pods with this size are refused by a policy of the cluster, and pods with that size are never given to a scheduler. */
const [refusedMemory, gatedMemory] = ['66M', '67M'];
beforeAll(async () => {
  [admin, place] = [await Kf.create('admin'), await world.space()];
  [developer, auditor] = [await world.member('spaceDeveloper', place), await world.member('spaceAuditor', place)];
  policies = new CausePolicies(place.space).refusesPods(refusedMemory, 'pods of that size are not wanted here').gatesPods(gatedMemory);
  await policies.apply();
});
afterAll(async () => {
  await policies.remove();
  await Promise.all([world.remove(), admin.remove()]);
});

const worker = ['--no-route', '-u', 'process', '-t', '10'];

describe('an app that fails because of', () => {
  test.each<[string, CauseCode, string[], RegExp]>([
    ['a signal', 'signal', ['-c', "sh -c 'kill -SEGV $$'; exit $?", ...worker], /signal 11, SIGSEGV/],
    ['a port that takes no connection', 'health-port', ['-c', fullQueue, '-t', '20'], /connection was not accepted/],
    ['a policy of the cluster', 'admission', ['-m', refusedMemory, ...worker], /pods of that size are not wanted here/],
    ['something that nobody foresaw', 'unknown', ['-m', gatedMemory, ...worker], /The instance gets no node: .*scheduling gates/],
    ['an image for another processor', 'wrong-architecture', ['-o', foreignImage(), ...worker], /s390x|platform/],
    [
      'an image that asks for a password',
      'image-unauthorized',
      ['-o', `${privateRegistry}/kf/sample:1`],
      new RegExp(`No credential is configured for '${privateRegistry}'\\.`),
    ],
    [
      'a registry with a certificate that nobody trusts',
      'registry-certificate',
      ['-o', `${ringEnv('KF_CLUSTER_ADDRESS')}:443/kf/sample:1`],
      /certificate/,
    ],
  ])('%s has the code %s, which an auditor reads later', async (_, cause, flags, said) => {
    const app = `causes-${cause}`;
    const image = flags.includes('-o') ? [] : ['-o', sample];
    const memory = flags.includes('-m') ? [] : ['-m', '64M'];
    const ran = await developer.kf.run(['push', app, ...image, ...memory, ...flags, '--json']);
    expect(ran.code, ran.stdout).toBe(1);
    const { error } = JSON.parse(ran.stdout) as { error: { message: string; details: { cause: string } } };
    expect([error.details.cause, error.message]).toEqual([cause, expect.stringMatching(said)]);
    expect(await why(auditor.kf, app)).toMatchObject({ state: 'failed', cause, message: expect.stringMatching(said) as string });
  });
});

test('an app that fills its disk again and again has the code disk, also while it runs', async () => {
  const fill = 'head -c 90M /dev/zero > /tmp/full; sleep 600';
  await developer.kf.ok('push', 'causes-disk', '-o', sample, '-m', '64M', '-k', '20M', '-c', fill, ...worker);
  await until('the ends of the instance', async () => {
    const { cause, message } = await why(auditor.kf, 'causes-disk');
    return cause === 'disk' && message.includes('ended 2 times');
  });
});

describe('a service', () => {
  const service = 'causes-db';

  test('whose Secret is gone has the code secret-missing, and an app that needs it waits for binding-not-ready', async () => {
    await serviceWithoutSecret(developer.kf, place.space, service);
    await until('the missing Secret', async () => (await why(developer.kf, '--service', service)).cause === 'secret-missing');
    const ran = await developer.kf.run(['push', 'causes-bound', '-o', sample, '-m', '64M', '--no-start']);
    expect(ran.code).toBe(0);
    await developer.kf.run(['bind-service', 'causes-bound', service]);
    expect((await developer.kf.run(['start', 'causes-bound'])).code).toBe(1);
    expect(await why(auditor.kf, 'causes-bound')).toMatchObject({ state: 'failed', cause: 'binding-not-ready' });
  });
});

test('a route whose host another space has has the code route-taken, and names the space to those who may see it', async () => {
  await admin.ok('create-route', 'apps.localhost', '-n', 'causes-taken');
  const [org, space] = [ringEnv('KF_TEST_ORG'), ringEnv('KF_TEST_SPACE')];
  const said = async (kf: Kf, ...flags: string[]) => why(kf, '--route', 'causes-taken.apps.localhost', ...flags);
  const taken = { state: 'failed', cause: 'route-taken' };
  // A developer of this space may not read who the other is.
  expect(await said(developer.kf)).toMatchObject({ ...taken, message: 'Another space has this host, with all its paths.' });
  const here = ['--org', `org-${place.org.slice(0, 8)}`, '--space', `space-${place.space.slice(0, 8)}`];
  expect(await said(admin, ...here)).toMatchObject({
    ...taken,
    message: `Org '${org}' / space '${space}' has this host, with all its paths.`,
  });
  await admin.ok('delete-route', 'apps.localhost', '-n', 'causes-taken', '-f');
});

test('a push without a controller has the code controller-absent, and the next one ends well when the controller is back', async () => {
  const scale = (replicas: string) => kubectl('scale', 'deployment', 'kf-controller', '-n', 'kf-system', `--replicas=${replicas}`);
  await scale('0');
  try {
    expect((await developer.kf.run(['push', 'causes-alone', '-o', sample, '-m', '64M'])).code).not.toBe(0);
    expect(await why(auditor.kf, 'causes-alone')).toMatchObject({ state: 'failed', cause: 'controller-absent' });
  } finally {
    await scale('1');
    await kubectl('rollout', 'status', 'deployment', 'kf-controller', '-n', 'kf-system', '--timeout=120s');
  }
  await developer.kf.ok('push', 'causes-alone', '-o', sample, '-m', '64M');
  expect((await get('causes-alone.apps.localhost')).status).toBe(200);
});
