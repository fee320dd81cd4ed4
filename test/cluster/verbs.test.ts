// The verbs around push, on the real cluster as a space developer.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { until } from '../support/until.ts';

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
let kf: Kf;

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', 'verbs', '-o', `${registry}/kf/sample:1`, '-m', '128M');
});
afterAll(async () => {
  await kf.run(['delete', 'verbs', '-r', '-f']);
  await kf.remove();
});

const envOf = async (): Promise<Record<string, string>> =>
  JSON.parse((await get('verbs.apps.localhost', '/env')).body) as Record<string, string>;

describe('environment and services', () => {
  test('the app sees what cf promises', async () => {
    const env = await envOf();
    expect(env['PORT']).toBe('8080');
    expect(env['MEMORY_LIMIT']).toMatch(/^128[mM]$/);
    expect(env['CF_INSTANCE_INDEX']).toBe('0');
    const application = JSON.parse(env['VCAP_APPLICATION'] ?? '{}') as Record<string, unknown>;
    expect(application).toMatchObject({ application_name: 'verbs', instance_index: 0 });
  });

  test('set-env reaches the app at its next restart and not before, also when the container or the pod dies', async () => {
    const ns = ringEnv('KF_TEST_SPACE_GUID');
    await kf.ok('set-env', 'verbs', 'COLOUR', 'green');
    expect((await envOf())['COLOUR']).toBeUndefined();
    const { guid } = await kf.json<{ guid: string }>('app', 'verbs', '--guid');
    const pod = (
      await kubectlJson<{ items: { metadata: { name: string } }[] }>(
        'get',
        'pods',
        '-n',
        ns,
        '-l',
        `korifi.cloudfoundry.org/app-guid=${guid}`,
      )
    ).items[0];
    await kubectl('delete', 'pod', '-n', ns, pod?.metadata.name ?? '');
    await until('the app to answer again', async () => (await get('verbs.apps.localhost')).status === 200);
    expect((await envOf())['COLOUR']).toBeUndefined();
    await kf.ok('restart', 'verbs');
    await until('the new value', async () => (await envOf())['COLOUR'] === 'green');
    await kf.ok('unset-env', 'verbs', 'COLOUR');
  });

  test('a bound service is in VCAP_SERVICES and as files after a restart, and gone after unbind', async () => {
    await kf.ok('create-user-provided-service', 'verbs-db', '-p', '{"uri":"postgres://db.example.com/x"}');
    await kf.ok('bind-service', 'verbs', 'verbs-db');
    await kf.ok('restart', 'verbs');
    await until('the binding', async () => ((await envOf())['VCAP_SERVICES'] ?? '').includes('postgres://db.example.com/x'));
    expect((await envOf())['SERVICE_BINDING_ROOT']).toBeDefined();
    const services = await kf.ok('services');
    expect(services.stdout).toMatch(/verbs-db\s+user-provided/);
    await kf.ok('unbind-service', 'verbs', 'verbs-db');
    await kf.ok('delete-service', 'verbs-db', '-f');
    await kf.ok('restart', 'verbs');
    await until('no binding', async () => !((await envOf())['VCAP_SERVICES'] ?? '').includes('postgres://'));
  });

  test('env shows what is set', async () => {
    await kf.ok('set-env', 'verbs', 'SHOWN', 'yes');
    const { stdout } = await kf.ok('env', 'verbs');
    expect(stdout).toMatch(/User-Provided:\nSHOWN: +yes/);
    await kf.ok('unset-env', 'verbs', 'SHOWN');
  });
});

describe('life cycle and routes', () => {
  test('stop takes it off its URL, start brings it back, both say when it is so already', async () => {
    await kf.ok('stop', 'verbs');
    await until('no answer', async () => (await get('verbs.apps.localhost')).status !== 200);
    expect((await kf.ok('stop', 'verbs')).stdout).toContain('is already stopped');
    await kf.ok('start', 'verbs');
    expect((await get('verbs.apps.localhost')).status).toBe(200);
    expect((await kf.ok('start', 'verbs')).stdout).toContain('is already started');
  });

  test('a mapped route answers, an unmapped one does not', async () => {
    await kf.ok('map-route', 'verbs', 'apps.localhost', '-n', 'verbs-too');
    await until('the second URL', async () => (await get('verbs-too.apps.localhost')).status === 200);
    expect((await kf.ok('routes')).stdout).toMatch(/verbs-too\s+apps\.localhost/);
    await kf.ok('unmap-route', 'verbs', 'apps.localhost', '-n', 'verbs-too');
    await until('the second URL to go', async () => (await get('verbs-too.apps.localhost')).status === 404);
  });

  test('apps lists it with its instances and URL', async () => {
    expect((await kf.ok('apps')).stdout).toMatch(/verbs\s+started\s+web:1\/1\s+verbs\.apps\.localhost/);
  });

  test('an unknown app: the nearest name is offered', async () => {
    const ran = await kf.run(['app', 'verps']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("App 'verps' not found.");
    expect(ran.stderr).toContain("'verbs'");
    expect(ran.stdout.trimEnd().endsWith('FAILED')).toBe(true);
  });

  test('logs --recent shows its lines, logs follows new ones and ends on SIGINT with 0', async () => {
    await get('verbs.apps.localhost', '/for-the-log');
    await until('the line in the recent log', async () => (await kf.ok('logs', 'verbs', '--recent')).stdout.includes('/for-the-log'));
    const follower = kf.start(['logs', 'verbs']);
    let seen = '';
    follower.stdout?.setEncoding('utf8').on('data', (text: string) => (seen += text));
    await until('the stream', async () => {
      await get('verbs.apps.localhost', '/while-following');
      return seen.includes('/while-following');
    });
    const ended = new Promise<number | null>((resolve) => follower.on('exit', (code) => resolve(code)));
    follower.kill('SIGINT');
    expect(await ended).toBe(0);
  });

  test('an auditor reads and may not change: the missing right is named', async () => {
    const auditor = await Kf.create('auditor');
    for (const read of [['apps'], ['app', 'verbs'], ['routes'], ['services'], ['spaces'], ['orgs'], ['domains']]) await auditor.ok(...read);
    const ran = await auditor.run(['stop', 'verbs']);
    await auditor.remove();
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/patch/);
    expect(ran.stderr).toMatch(/cfapps/);
  });
});
