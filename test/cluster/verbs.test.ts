// The commands around push, on the real cluster as a space developer.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, ringEnv } from '../support/kf.ts';
import { currentPodsOf, podsOf, type AppPod } from '../support/pods.ts';
import { until } from '../support/until.ts';

const registry = process.env['KF_CLUSTER_NODE_REGISTRY'] ?? '';
let kf: Kf;
let guid = '';

beforeAll(async () => {
  kf = await Kf.create();
  await kf.ok('push', 'verbs', '-o', `${registry}/kf/sample:1`, '-m', '128M');
  guid = (await kf.ok('app', 'verbs', '--guid')).stdout.trim();
});
afterAll(async () => {
  await kf.run(['delete', 'verbs', '-r', '-f']);
  await kf.remove();
});

const envOf = async (): Promise<Record<string, string>> =>
  JSON.parse((await get('verbs.apps.localhost', '/env')).body) as Record<string, string>;

const onePod = async (): Promise<AppPod> => {
  const [pod, ...others] = await currentPodsOf(guid);
  if (pod === undefined || others.length > 0) throw new Error(`${others.length + 1} pods or none`);
  return pod;
};

/** Runs `kf logs` until `isEnough` is true for its output; `provoke` makes the app write lines. Returns the exit code after SIGINT. */
async function follow(provoke: () => Promise<unknown>, isEnough: (seen: string) => boolean): Promise<number | null> {
  const follower = kf.start(['logs', 'verbs']);
  const ended = new Promise<number | null>((resolve) => follower.on('exit', (code) => resolve(code)));
  let seen = '';
  follower.stdout?.setEncoding('utf8').on('data', (text: string) => (seen += text));
  try {
    await until('the lines', async () => {
      await provoke();
      return isEnough(seen);
    });
  } finally {
    follower.kill('SIGINT');
  }
  return ended;
}

describe('environment and services', () => {
  test('set-env applies at the next restart of the app and not before, also when the container or the pod dies', async () => {
    await kf.ok('set-env', 'verbs', 'COLOUR', 'green');
    expect((await envOf())['COLOUR']).toBeUndefined();
    const before = await onePod();
    const restarts = ({ status }: AppPod): number => status.containerStatuses?.[0]?.restartCount ?? 0;
    await get('verbs.apps.localhost', '/exit?code=3');
    await until('the container to be started again', async () => restarts(await onePod()) === restarts(before) + 1);
    await until('the container to answer again', async () => (await get('verbs.apps.localhost')).status === 200);
    expect((await envOf())['COLOUR']).toBeUndefined();
    expect((await onePod()).metadata.uid).toBe(before.metadata.uid);
    await kubectl('delete', 'pod', '-n', ringEnv('KF_TEST_SPACE_GUID'), before.metadata.name);
    await until('another pod', async () => (await onePod()).metadata.uid !== before.metadata.uid);
    await until('the app to answer again', async () => (await get('verbs.apps.localhost')).status === 200);
    expect((await envOf())['COLOUR']).toBeUndefined();
    await kf.ok('restart', 'verbs');
    await until('the new value', async () => (await envOf())['COLOUR'] === 'green');
    await kf.ok('unset-env', 'verbs', 'COLOUR');
  });

  test('a bound service is in VCAP_SERVICES and in files after a restart, and gone after unbind-service', async () => {
    await kf.ok('create-user-provided-service', 'verbs-db', '-p', '{"uri":"postgres://db.example.com/x"}');
    await kf.ok('bind-service', 'verbs', 'verbs-db');
    await kf.ok('restart', 'verbs');
    const bound = await until('the binding', async () => {
      const env = await envOf();
      return (env['VCAP_SERVICES'] ?? '').includes('postgres://db.example.com/x') ? env : undefined;
    });
    expect(bound).toMatchObject({ SERVICE_BINDING_ROOT: '/bindings', DATABASE_URL: 'postgres://db.example.com/x' });
    const files = JSON.parse((await get('verbs.apps.localhost', '/bindings')).body) as Record<string, unknown>;
    expect(files).toEqual({ 'verbs-db': { type: 'user-provided', uri: 'postgres://db.example.com/x' } });
    const services = await kf.ok('services');
    expect(services.stdout).toMatch(/verbs-db\s+user-provided/);
    await kf.ok('run-task', 'verbs', '-c', 'echo "migrates $DATABASE_URL"', '--wait');
    const log = async () => (await kf.ok('logs', 'verbs', '--recent')).stdout;
    await until('the line of the task', async () => ((await log()).includes('migrates postgres://db.example.com/x') ? true : undefined));
    await kf.ok('unbind-service', 'verbs', 'verbs-db');
    await kf.ok('delete-service', 'verbs-db', '-f');
    await kf.ok('restart', 'verbs');
    const unbound = await until('no binding', async () => {
      const env = await envOf();
      return env['VCAP_SERVICES'] === '{}' ? env : undefined;
    });
    expect(unbound['SERVICE_BINDING_ROOT']).toBeUndefined();
    expect((await get('verbs.apps.localhost', '/bindings')).body).toBe('{}\n');
  });

  test('a service follows a Secret that a database operator maintains, and the app has its new password after a restart', async () => {
    const ns = ringEnv('KF_TEST_SPACE_GUID');
    await kubectl('create', 'secret', 'generic', 'operator', '-n', ns, '--from-literal=uri=postgres://old', '--from-literal=password=old');
    await kf.ok('cups', 'verbs-store', '--from-secret', 'operator');
    await kf.ok('bind-service', 'verbs', 'verbs-store');
    await kubectl('patch', 'secret', 'operator', '-n', ns, '-p', '{"stringData":{"password":"new"}}');
    const binding = async () => {
      const [name = ''] = (await kubectl('get', 'cfservicebindings', '-n', ns, '-o', 'name')).trim().split('\n');
      return kubectl('get', 'secret', '-n', ns, name.replace(/.*\//, ''), '-o', 'jsonpath={.data.password}');
    };
    await until('the new password', async () => (await binding()) === Buffer.from('new').toString('base64'));
    await kf.ok('restart', 'verbs');
    const files = JSON.parse((await get('verbs.apps.localhost', '/bindings')).body) as Record<string, unknown>;
    expect(files).toEqual({ 'verbs-store': { type: 'user-provided', uri: 'postgres://old', password: 'new' } });
    const env = await envOf();
    expect([env['VCAP_SERVICES'], env['DATABASE_URL']]).toEqual([expect.stringContaining('"password":"new"'), 'postgres://old']);
    await kf.ok('unbind-service', 'verbs', 'verbs-store');
    await kf.ok('delete-service', 'verbs-store', '-f');
    expect(await kubectl('get', 'secret', 'operator', '-n', ns, '-o', 'name')).toBe('secret/operator\n');
    await kubectl('delete', 'secret', 'operator', '-n', ns);
    await kf.ok('restart', 'verbs');
  });

  test('env shows the variables that are set', async () => {
    await kf.ok('set-env', 'verbs', 'SHOWN', 'yes');
    const { stdout } = await kf.ok('env', 'verbs');
    expect(stdout).toMatch(/User-Provided:\nSHOWN: +yes/);
    await kf.ok('unset-env', 'verbs', 'SHOWN');
  });
});

describe('life cycle and routes', () => {
  test('stop makes the URL stop answering, start makes it answer again, and both say if nothing was to do', async () => {
    await kf.ok('stop', 'verbs');
    await until('no answer', async () => (await get('verbs.apps.localhost')).status !== 200);
    expect((await kf.ok('stop', 'verbs')).stdout).toContain('is already stopped');
    await kf.ok('start', 'verbs');
    expect((await get('verbs.apps.localhost')).status).toBe(200);
    expect((await kf.ok('start', 'verbs')).stdout).toContain('is already started');
  });

  test('rename gives the app another name while it keeps serving', async () => {
    const before = await onePod();
    await kf.ok('rename', 'verbs', 'verbs-renamed');
    expect((await get('verbs.apps.localhost')).status).toBe(200);
    expect((await kf.ok('apps')).stdout).toMatch(/^verbs-renamed\s+started\s+web:1\/1\s+verbs\.apps\.localhost/m);
    expect((await kf.ok('app', 'verbs-renamed', '--guid')).stdout.trim()).toBe(guid);
    await kf.ok('create-app', 'verbs');
    const taken = await kf.run(['rename', 'verbs-renamed', 'verbs']);
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining("App with the name 'verbs' already exists.")]);
    await kf.ok('delete', 'verbs', '-f');
    await kf.ok('rename', 'verbs-renamed', 'verbs');
    expect((await onePod()).metadata.uid).toBe(before.metadata.uid);
  });

  test('set-health-check takes effect with the next restart and not before', async () => {
    const probeOf = async (): Promise<string | undefined> => (await onePod()).spec.containers[0]?.livenessProbe?.httpGet?.path;
    const before = await onePod();
    expect(await probeOf()).toBeUndefined();
    await kf.ok('set-health-check', 'verbs', 'http', '--endpoint', '/env');
    expect((await kf.ok('get-health-check', 'verbs')).stdout).toMatch(/^web +http +\/env +1$/m);
    // Its reconcile has seen the new settings: the controller has counted this instance since.
    await kf.ok('scale', 'verbs', '-i', '2');
    const pods = await currentPodsOf(guid);
    expect(pods.map(({ metadata }) => metadata.uid)).toContain(before.metadata.uid);
    expect(new Set(pods.map(({ metadata }) => metadata.labels['kf.cloudfoundry.org/generation'])).size).toBe(1);
    await kf.ok('scale', 'verbs', '-i', '1');
    await until('one pod', async () => (await podsOf(guid)).length === 1);
    await kf.ok('restart', 'verbs');
    await until('the new check', async () => (await probeOf()) === '/env');
    await kf.ok('set-health-check', 'verbs', 'port');
    await kf.ok('restart', 'verbs');
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

  test('an unknown app is answered with the nearest name', async () => {
    const ran = await kf.run(['app', 'verps']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("App 'verps' not found.");
    expect(ran.stderr).toContain("'verbs'");
    expect(ran.stdout.trimEnd().endsWith('FAILED')).toBe(true);
  });

  test('logs --recent shows its lines, logs follows new ones and ends on SIGINT with 0', async () => {
    await get('verbs.apps.localhost', '/for-the-log');
    await until('the line in the recent log', async () => (await kf.ok('logs', 'verbs', '--recent')).stdout.includes('/for-the-log'));
    const ask = () => get('verbs.apps.localhost', '/while-following');
    expect(await follow(ask, (seen) => seen.includes('/while-following'))).toBe(0);
  });

  test('events shows the starts and stops of the app, newest first', async () => {
    const { stdout } = await kf.ok('events', 'verbs');
    const lines = stdout.split('\n').slice(3, -1);
    const times = lines.map((text) => Date.parse(text.split(' ')[0] ?? ''));
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect(stdout).toMatch(/^\S+ +audit\.app\.process\.ready +kf-controller +The app serves\.$/m);
    expect(stdout).toMatch(/^\S+ +audit\.app\.stop +system:serviceaccount:\S+ +state: STOPPED$/m);
    expect(stdout).toMatch(/^\S+ +app\.crash +web +index: 0, reason: CRASHED, .* Exited with status 3, exit_status: 3$/m);
  });

  test('events outlive the Events of Kubernetes, and their objects', async () => {
    const ns = ringEnv('KF_TEST_SPACE_GUID');
    const recorded = async (): Promise<string> => kubectl('get', 'configmap', '-n', ns, `${guid}-events`, '-o', 'jsonpath={.data}');
    await until('the record of the crash', async () => (await recorded()).includes('exit_status: 3'));
    await kubectl('delete', 'events', '-n', ns, '--field-selector', `involvedObject.name=${guid}`);
    const { stdout } = await kf.ok('events', 'verbs');
    for (const type of ['audit.app.create', 'audit.app.stop', 'audit.app.process.ready', 'app.crash'])
      expect(stdout).toContain(` ${type} `);
    const answer = JSON.parse((await kf.ok('curl', `/v3/audit_events?target_guids=${guid}&types=app.crash`)).stdout) as {
      resources: object[];
    };
    expect(answer.resources[0]).toMatchObject({ actor: { name: 'web', type: 'process' }, target: { guid } });
  });

  test('an auditor can read but not change, and the missing right is named', async () => {
    const auditor = await Kf.create('auditor');
    for (const read of [['apps'], ['app', 'verbs'], ['events', 'verbs'], ['routes'], ['services'], ['spaces'], ['orgs'], ['domains']])
      await auditor.ok(...read);
    const ran = await auditor.run(['stop', 'verbs']);
    await auditor.remove();
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/patch/);
    expect(ran.stderr).toMatch(/cfapps/);
  });
});

describe('an app with three instances', () => {
  let pods: AppPod[];
  const said = (index: number): RegExp => new RegExp(`\\[APP/PROC/WEB/${index}\\] OUT GET /env 200$`, 'm');

  beforeAll(async () => {
    await kf.ok('scale', 'verbs', '-i', '3');
    pods = await currentPodsOf(guid);
  });

  test('gives each instance what cf promises, with its own index and addresses', async () => {
    const seen = new Map<string, Record<string, string>>();
    await until('an answer of each', async () => {
      const env = await envOf();
      seen.set(env['CF_INSTANCE_INDEX'] ?? '', env);
      return seen.size === 3;
    });
    expect([...seen.keys()].sort()).toEqual(['0', '1', '2']);
    for (const [index, env] of seen) {
      const pod = pods.find(({ metadata }) => metadata.labels['apps.kubernetes.io/pod-index'] === index);
      const { hostIP = '', podIP = '' } = pod?.status ?? {};
      expect(env).toMatchObject({
        PORT: '8080',
        HOME: '/home/vcap',
        TMPDIR: '/tmp',
        MEMORY_LIMIT: '128m',
        CF_INSTANCE_GUID: pod?.metadata.uid,
        CF_INSTANCE_IP: hostIP,
        CF_INSTANCE_PORT: '8080',
        CF_INSTANCE_ADDR: `${hostIP}:8080`,
        CF_INSTANCE_INTERNAL_IP: podIP,
      });
      expect(JSON.parse(env['VCAP_APPLICATION'] ?? '{}')).toMatchObject({
        application_name: 'verbs',
        application_uris: ['verbs.apps.localhost'],
        instance_id: pod?.metadata.uid,
        instance_index: Number(index),
        limits: { mem: 128 },
        port: 8080,
      });
    }
  });

  test('has all of them in followed logs', async () => {
    expect(await follow(envOf, (seen) => [0, 1, 2].every((index) => said(index).test(seen)))).toBe(0);
  });

  test('has all of them in logs --recent', async () => {
    const { stdout } = await kf.ok('logs', 'verbs', '--recent');
    for (const index of [0, 1, 2]) expect(stdout).toMatch(said(index));
  });

  test('restart-app-instance replaces the pod of that index and no other', async () => {
    const uids = async (): Promise<Map<string, string>> =>
      new Map((await currentPodsOf(guid)).map(({ metadata }) => [metadata.labels['apps.kubernetes.io/pod-index'] ?? '', metadata.uid]));
    const before = await uids();
    await kf.ok('restart-app-instance', 'verbs', '1');
    const after = await until('another pod of index 1', async () => {
      const seen = await uids();
      return seen.has('1') && seen.get('1') !== before.get('1') ? seen : undefined;
    });
    expect([after.get('0'), after.get('2')]).toEqual([before.get('0'), before.get('2')]);
  });

  test('has none after a stop', async () => {
    await kf.ok('stop', 'verbs');
    await until('no pod', async () => (await podsOf(guid)).length === 0);
  });
});
