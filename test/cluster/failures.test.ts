// Wrong input and wrong places get a clear error within seconds, and nothing is lost: the cases that need a real cluster.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reportTime } from '../support/figures.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv, type Ran } from '../support/kf.ts';
import { untilQuotaHolds } from '../support/quota.ts';
import { until } from '../support/until.ts';
import { why } from '../support/why.ts';

const registry = ringEnv('KF_CLUSTER_NODE_REGISTRY');
const sample = `${registry}/kf/sample:1`;
const second = { name: 'failures-elsewhere', guid: '', org: '' };
let kf: Kf;
let elsewhere: Kf;
let folder: string;

interface Spaces {
  items: { metadata: { name: string; namespace: string }; spec: { displayName: string } }[];
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kf-failures-'));
  kf = await Kf.create();
  elsewhere = await Kf.create('admin', { KF_SPACE: second.name });
  await elsewhere.ok('create-space', second.name);
  const { items } = await kubectlJson<Spaces>('get', 'cfspaces', '-A');
  const space = items.find(({ spec }) => spec.displayName === second.name);
  Object.assign(second, { guid: space?.metadata.name ?? '', org: space?.metadata.namespace ?? '' });
  await elsewhere.ok('push', 'elsewhere', '-o', sample, '-m', '128M', '--no-start');
  await elsewhere.ok('map-route', 'elsewhere', 'apps.localhost', '-n', 'failures-taken');
});
afterAll(async () => {
  for (const app of ['failures', 'failures-taken']) await kf.run(['delete', app, '-r', '-f']);
  if (second.guid !== '') await kubectl('delete', 'cfspace', second.guid, '-n', second.org, '--wait=false');
  await Promise.all([kf.remove(), elsewhere.remove(), rm(folder, { recursive: true, force: true })]);
});

/** Exit 1, cf's FAILED as the last line of stdout, the cause on stderr. */
function expectFailure(ran: Ran, ...causes: (string | RegExp)[]): void {
  expect(ran.code, ran.stdout + ran.stderr).toBe(1);
  expect(ran.stdout).toContain('FAILED\n');
  for (const cause of causes) expect(ran.stderr).toMatch(cause);
}

/** Milliseconds from the first Event of the reason after `began` to the verdict about the app, which has whole seconds. */
async function verdictAfter(began: number, reason: string, app: string): Promise<number> {
  interface Listed<T> {
    items: T[];
  }
  const events = await kubectlJson<Listed<{ reason: string; firstTimestamp: string | null; eventTime: string | null }>>(
    'get',
    'events',
    '-n',
    second.guid,
  );
  const times = events.items
    .filter((event) => event.reason === reason)
    .map((event) => Date.parse(event.eventTime ?? event.firstTimestamp ?? ''));
  const first = Math.min(...times.filter((time) => time >= began - 1_000));
  const apps = await kubectlJson<Listed<{ spec: { displayName: string }; status: { deployment: { phase: string; since: string } } }>>(
    'get',
    'cfapps',
    '-n',
    second.guid,
  );
  const deployment = apps.items.find(({ spec }) => spec.displayName === app)?.status.deployment;
  expect(deployment?.phase).toBe('Failed');
  return Date.parse(deployment?.since ?? '') - first;
}

describe('a typing error is reported before anything is made', () => {
  test('keys of the manifest: their positions, the nearest key, the allowed keys', async () => {
    await writeFile(path.join(folder, 'typo.yml'), 'applications:\n- name: failures\n  docker: {imgae: x}\n  instances: many\n');
    const ran = await kf.run(['push', '-f', path.join(folder, 'typo.yml')]);
    expectFailure(ran, /typo\.yml:3:12: 'imgae' .*'image'/, /typo\.yml:4:14: /, /Allowed in docker: image, username/);
  });

  test('text that is not YAML', async () => {
    await writeFile(path.join(folder, 'broken.yml'), 'applications:\n- name: "failures\n');
    expectFailure(
      await kf.run(['push', '-f', path.join(folder, 'broken.yml')]),
      /Unable to push app because manifest .*broken\.yml is not valid yaml/,
    );
  });

  test('a path that does not exist or is empty', async () => {
    const missing = path.join(folder, 'missing');
    const wrong = await kf.run(['push', 'failures', '-p', missing]);
    expect(wrong).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`Incorrect Usage: The specified path '${missing}' does not exist.`) as string,
    });
    await mkdir(path.join(folder, 'empty'));
    expectFailure(await kf.run(['push', 'failures', '-p', path.join(folder, 'empty')]), /No app files found in/);
    await writeFile(path.join(folder, 'path.yml'), 'applications:\n- name: failures\n  path: nowhere\n');
    expectFailure(
      await kf.run(['push', '-f', path.join(folder, 'path.yml')]),
      /File not found locally, make sure the file exists at given path .*nowhere/,
    );
  });

  test('a context, an org and a space that do not exist', async () => {
    expectFailure(await kf.run(['apps', '--context', 'kf-tset']), /no context "kf-tset"/, /"kf-test"/);
    expectFailure(await kf.run(['apps', '--org', 'nowhere']), "Organization 'nowhere' not found.");
    expectFailure(await kf.run(['apps', '--space', 'failures-elsewere']), "Space 'failures-elsewere' not found.", /failures-elsewhere/);
  });

  test('none of these attempts made an app', async () => {
    expect((await kf.ok('apps')).stdout).not.toContain('failures');
  });
});

describe('a missing right is reported with its name and the user', () => {
  test.each([
    [
      'push in a space without a role',
      ['push', 'failures', '-o', sample, '--space', second.name],
      /may not read apps in org '.+' \/ space '.+'\./,
    ],
    ['a space', ['create-space', 'failures-third'], /may not create spaces in org '.+'\./],
    ['an org', ['create-org', 'failures-org'], /may not create orgs\./],
  ])('%s', async (_what, args, right) => {
    expectFailure(await kf.run(args), /the user "system:serviceaccount:kf-test-users:spacedeveloper-\w+"/, right, /kubectl auth can-i/);
  });
});

describe('a host that another space has', () => {
  test('is refused by push and map-route, which name the app that has it', async () => {
    const ran = await kf.run(['push', 'failures-taken', '-o', sample, '-m', '128M']);
    expectFailure(
      ran,
      "Route already exists with host 'failures-taken' for domain 'apps.localhost'.",
      new RegExp(`space '${second.name}' has this host`),
    );
    expect((await kf.ok('apps')).stdout).not.toContain('failures-taken');
    await kf.ok('push', 'failures-taken', '-o', sample, '-m', '128M', '--no-route', '--no-start');
    const mapped = await kf.run(['map-route', 'failures-taken', 'apps.localhost', '-n', 'failures-taken']);
    expectFailure(mapped, /Route already exists/);
    const routes = await kubectlJson<{ items: { spec: { host: string } }[] }>('get', 'cfroutes', '-n', ringEnv('KF_TEST_SPACE_GUID'));
    expect(routes.items.filter(({ spec }) => spec.host === 'failures-taken')).toEqual([]);
  });

  test('does not keep the same app from starting with a host of its own', async () => {
    await writeFile(
      path.join(folder, 'own.yml'),
      `applications:\n- name: failures-taken\n  docker: {image: '${sample}'}\n  memory: 128M\n  routes: [{route: failures-own.apps.localhost}]\n`,
    );
    await kf.ok('push', '-f', path.join(folder, 'own.yml'));
    expect((await get('failures-own.apps.localhost')).status).toBe(200);
  });
});

describe('an app that does not start', () => {
  test('because the registry of its image is not reachable: the image and the error of the node are named', async () => {
    const ran = await kf.run(['push', 'failures', '-o', 'localhost:1/kf/none:1', '-m', '128M']);
    expectFailure(ran, /The image localhost:1\/kf\/none:1 cannot be pulled: .*connection refused/);
    reportTime('a registry that nobody reaches is named', ran.milliseconds);
    expect(await why(kf, 'failures')).toMatchObject({ state: 'failed', cause: 'registry-unreachable' });
  });

  test('because its image runs as root: the image is named', async () => {
    expectFailure(await kf.run(['push', 'failures', '-o', `${registry}/kf/root:1`]), /runs as root, which is not allowed here/);
    expect(await why(kf, 'failures')).toMatchObject({ kind: 'build', cause: 'image-user' });
  });

  test('because it never listens: the port, the last check and its own last line are shown', async () => {
    const ran = await kf.run(['push', 'failures', '-o', `${registry}/kf/silent:1`, '-m', '128M', '-t', '5']);
    expectFailure(ran, /did not answer on port 8080 within 5 s/, /busy with something else/);
    reportTime('an app that never listens is given up after 5 s', ran.milliseconds);
    expect(await why(kf, 'failures')).toMatchObject({ cause: 'not-listening', log: { tail: [expect.stringContaining('busy')] } });
  });

  test('is replaced by a good image afterwards', async () => {
    await kf.ok('push', 'failures', '-o', sample, '-m', '128M', '-t', '30');
    expect((await get('failures.apps.localhost')).status).toBe(200);
  });
});

describe('an instance that no node has room for', () => {
  test('ends a push within 10 s, says what the nodes lack, and the old instance continues', async () => {
    await elsewhere.ok('start', 'elsewhere');
    const limits = { spec: { hard: { 'requests.memory': '4Ti' } } };
    await kubectl('patch', 'quota', 'kf-limits', '-n', second.guid, '--type=merge', '-p', JSON.stringify(limits));
    await untilQuotaHolds(second.guid, 'kf-limits');
    const began = Date.now();
    const ran = await elsewhere.run(['push', 'elsewhere', '-o', sample, '-m', '1T']);
    expectFailure(ran, /No node can run the instance: .*Insufficient memory/);
    expect(await verdictAfter(began, 'FailedScheduling', 'elsewhere')).toBeLessThanOrEqual(10_000);
    expect(await why(elsewhere, 'elsewhere')).toMatchObject({ cause: 'no-room' });
    expect((await get('failures-taken.apps.localhost')).status).toBe(200);
    await elsewhere.ok('push', 'elsewhere', '-o', sample, '-m', '128M');
  });
});

describe('a space with a quota', () => {
  beforeAll(async () => {
    await elsewhere.ok('push', 'failures-quota', '-o', sample, '-m', '64M', '--no-route', '--no-start');
    await elsewhere.ok('push', 'failures-build', '-p', path.resolve('test/fixtures/apps/node-hello'), '--no-route', '--no-start');
    await kubectl('create', 'quota', 'failures', '-n', second.guid, '--hard=limits.memory=200Mi,pods=1');
    await untilQuotaHolds(second.guid, 'failures');
  });
  afterAll(() => kubectl('delete', 'quota', 'failures', '-n', second.guid));

  test('refuses a new app that needs more, before the app is made', async () => {
    const ran = await elsewhere.run(['push', 'failures-new', '-o', sample, '-m', '512M', '--no-route']);
    expectFailure(ran, /App 'failures-new' exceeds a quota of space '.*': 1 instance takes 512M of memory, and the quota 'failures' has /);
    expect((await elsewhere.ok('apps')).stdout).not.toContain('failures-new');
  });

  test('refuses a push that needs more, and names the quota', async () => {
    const ran = await elsewhere.run(['push', 'failures-quota', '-o', sample, '-m', '512M', '--no-route']);
    expectFailure(ran, /The quota of the space is used up: .*exceeded quota: failures, requested: limits\.memory=512Mi/);
    reportTime('a push beyond the quota is refused', ran.milliseconds);
    expect(await why(elsewhere, 'failures-quota')).toMatchObject({ cause: 'quota' });
  });

  test('ends a scale with the name of the quota, and running instances continue', async () => {
    await elsewhere.ok('start', 'elsewhere');
    const ran = await elsewhere.run(['scale', 'elsewhere', '-i', '3']);
    expectFailure(ran, /App 'elsewhere' cannot have 3 instances of 'web' in space '.*': .*, and the quota 'failures' has /);
    reportTime('a scale beyond the quota is refused', ran.milliseconds);
    expect((await get('failures-taken.apps.localhost')).status).toBe(200);
    await elsewhere.ok('scale', 'elsewhere', '-i', '1');
  });

  test('says before the build that an update has no room, and with both ways out the app is updated', async () => {
    const update = ['push', 'elsewhere', '-o', sample, '-m', '64M'];
    const ran = await elsewhere.run(update);
    expectFailure(
      ran,
      /App 'elsewhere' cannot be updated without a gap in space '.*': during the update it takes 1 more pod, and the quota 'failures' has 0 of 1 left \(pods\)/,
      `kf push elsewhere --docker-image ${sample} -m 64M --strategy recreate`,
      'kf scale elsewhere -i NUMBER',
    );
    expect((await get('failures-taken.apps.localhost')).status).toBe(200);
    await elsewhere.ok(...update, '--strategy', 'recreate');
    await kubectl('patch', 'quota', 'failures', '-n', second.guid, '--type=merge', '-p', '{"spec":{"hard":{"pods":"2"}}}');
    await untilQuotaHolds(second.guid, 'failures');
    await elsewhere.ok('push', 'elsewhere', '-o', sample, '-m', '128M');
    await until(
      'the old instance to end',
      async () => (await kubectlJson<{ items: object[] }>('get', 'pods', '-n', second.guid)).items.length === 1,
    );
    await kubectl('patch', 'quota', 'failures', '-n', second.guid, '--type=merge', '-p', '{"spec":{"hard":{"pods":"1"}}}');
    await untilQuotaHolds(second.guid, 'failures');
    expect((await get('failures-taken.apps.localhost')).status).toBe(200);
  });

  test('ends a restart within 10 s when the new instance may not be made, and the old one continues', async () => {
    const began = Date.now();
    const ran = await elsewhere.run(['restart', 'elsewhere']);
    expectFailure(ran, /The quota of the space is used up: .*exceeded quota: failures/, 'kf restart elsewhere --strategy recreate');
    expect(await verdictAfter(began, 'FailedCreate', 'elsewhere')).toBeLessThanOrEqual(10_000);
    expect(await why(elsewhere, 'elsewhere')).toMatchObject({ cause: 'quota' });
    const scaled = await elsewhere.run(['scale', 'elsewhere', '-i', '2']);
    expectFailure(scaled, /App 'elsewhere' cannot have 2 instances of 'web' in space '.*': .*, and the quota 'failures' has /);
    reportTime('a scale beyond the quota after a failed update is refused', scaled.milliseconds);
    await elsewhere.ok('scale', 'elsewhere', '-i', '1');
    expect((await get('failures-taken.apps.localhost')).status).toBe(200);
  });

  test('refuses a build, and reports it at once', async () => {
    const ran = await elsewhere.run([
      'push',
      'failures-build',
      '-p',
      path.resolve('test/fixtures/apps/node-hello'),
      '--no-route',
      '--force',
    ]);
    expectFailure(ran, /Error staging application: .*exceeded quota: failures/);
    reportTime('a build beyond the quota is refused', ran.milliseconds);
    expect(await why(elsewhere, 'failures-build')).toMatchObject({ kind: 'build', cause: 'quota' });
  });
});
