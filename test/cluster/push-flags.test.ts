// The effect of each flag of push on the app in the cluster.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mainBackends, type HttpRoute } from '../../src/lib/api/gateway.ts';
import { probe } from '../chaos/probe.ts';
import { countRequests } from '../support/audit.ts';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { currentPodsOf, podsOf, type AppPod } from '../support/pods.ts';
import { until } from '../support/until.ts';

const sample = (version: number): string => `${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:${version}`;
const apps = [
  'flags',
  'flags-random',
  'flags-chance',
  'flags-hidden',
  'flags-later',
  'flags-idle',
  'flags-built',
  'flags-again',
  'flags-bound',
  'flags-canary',
];
const ns = ringEnv('KF_TEST_SPACE_GUID');
let kf: Kf;

beforeAll(async () => {
  kf = await Kf.create();
});
afterAll(async () => {
  await Promise.all(apps.map((app) => kf.run(['delete', app, '-r', '-f'])));
  for (const service of ['flags-db', 'flags-first', 'flags-second']) await kf.run(['delete-service', service, '-f']);
  await kf.remove();
});

interface App {
  deployment: { status: string; strategy: string };
}

interface Pushed {
  guid: string;
  state: string;
  unchanged: boolean;
  routes: string[];
  processes: { running: number; instances: number }[];
}

async function pushVersion(version: number, app: string, ...flags: string[]): Promise<Pushed> {
  const { apps: pushed } = await kf.json<{ apps: [Pushed] }>('push', app, '-o', sample(version), '-m', '64M', ...flags);
  return pushed[0];
}
const push = (app: string, ...flags: string[]): Promise<Pushed> => pushVersion(1, app, ...flags);

type Container = AppPod['spec']['containers'][number];

async function containersOf({ guid }: Pushed): Promise<Container[]> {
  return (await currentPodsOf(guid)).flatMap(({ spec }) => spec.containers);
}

const probesOf = (container: Container | undefined): string[] => Object.keys(container ?? {}).filter((key) => key.endsWith('Probe'));

/** Hosts of the routes that lead to the app, as the cluster has them. */
async function hostsOf({ guid }: Pushed): Promise<string[]> {
  const { items } = await kubectlJson<{ items: { spec: { host: string; destinations?: { appRef: { name: string } }[] } }[] }>(
    ...['get', 'cfroutes', '-n', ns],
  );
  return items.filter(({ spec }) => spec.destinations?.some(({ appRef }) => appRef.name === guid)).map(({ spec }) => spec.host);
}

async function buildsOf(guid: string): Promise<unknown[]> {
  return (await kubectlJson<{ items: unknown[] }>('get', 'cfbuilds', '-n', ns, '-l', `korifi.cloudfoundry.org/app-guid=${guid}`)).items;
}

/** A Node app whose build runs the script. */
async function lookingApp(script: string): Promise<string> {
  const source = await mkdtemp(path.join(tmpdir(), 'kf-looks-'));
  await cp(path.resolve('test/fixtures/apps/node-hello'), source, { recursive: true });
  await writeFile(path.join(source, 'look.cjs'), script);
  const scripts = { build: 'node look.cjs', start: 'node server.js' };
  await writeFile(path.join(source, 'package.json'), JSON.stringify({ name: 'looks', version: '1.0.0', private: true, scripts }));
  return source;
}

describe('flags for processes', () => {
  test('-i, -k, -m, -c, -t and -u http apply to every pod', async () => {
    const pushed = await push(
      ...(['flags', '-i', '2', '-k', '128M', '-t', '45', '-u', 'http', '--endpoint', '/health'] as const),
      ...['-c', 'MARK="of the shell $$, not of \\$(PORT)" exec node server.cjs'],
    );
    const containers = await containersOf(pushed);
    expect(containers).toHaveLength(2);
    for (const container of containers) {
      expect(container.resources.limits).toEqual({ memory: '64Mi', 'ephemeral-storage': '128Mi' });
      expect(container.startupProbe).toMatchObject({ httpGet: { path: '/health' }, failureThreshold: 45 });
      expect(container.readinessProbe?.httpGet?.path).toBe('/health');
    }
    expect(JSON.parse((await get('flags.apps.localhost', '/env')).body)).toMatchObject({ MARK: 'of the shell 1, not of $(PORT)' });
  });

  test('-u process removes the probes and leaves other settings, and the same push again changes nothing', async () => {
    const containers = await containersOf(await push('flags', '-u', 'process'));
    expect(containers.map(probesOf)).toEqual([[], []]);
    expect(containers[0]?.resources.limits['ephemeral-storage']).toBe('128Mi');
    expect((await push('flags', '-u', 'process')).unchanged).toBe(true);
  });

  test('-u port and -c null restore the defaults, and -i 1 leaves one instance', async () => {
    const containers = await containersOf(await push('flags', '-u', 'port', '-c', 'null', '-i', '1'));
    expect(containers).toHaveLength(1);
    const [container] = containers;
    expect(container?.command).toBeUndefined();
    expect(container?.startupProbe).toMatchObject({ tcpSocket: { port: 8080 }, failureThreshold: 45 });
    await until('the command of the image', async () => !(await get('flags.apps.localhost', '/env')).body.includes('MARK'));
  });

  test('--strategy rolling replaces the pods without a failed request', async () => {
    const [before] = await currentPodsOf((await kf.json<Pushed>('app', 'flags')).guid);
    const user = probe('flags.apps.localhost');
    const pushed = await pushVersion(2, 'flags', '--strategy', 'rolling', '--max-in-flight', '2');
    await until('the new version', async () => (await get('flags.apps.localhost')).body.startsWith('kf sample 2'));
    const { asked, failures } = await user.end();
    expect(asked).toBeGreaterThan(20);
    expect(failures).toEqual([]);
    const [after] = await currentPodsOf(pushed.guid);
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
  });

  test('--strategy canary pauses with its share of the requests, and cancel-deployment ends a broken one', async () => {
    const host = 'flags-canary.apps.localhost';
    await push('flags-canary');
    const answers = async (): Promise<number[]> => {
      const statuses: number[] = [];
      for (let index = 0; index < 100; index += 1) statuses.push((await get(host)).status);
      return statuses;
    };
    const broken = 'require("http").createServer((_, r) => { r.statusCode = 500; r.end(); }).listen(process.env.PORT)';
    const steps = ['--strategy', 'canary', '--instance-steps', '10,50'];
    const paused = await kf.ok('push', 'flags-canary', '-o', sample(2), '-c', `exec node -e '${broken}'`, ...steps);
    expect(paused.stdout).toMatch(
      /Active deployment with status PAUSED \(since .+\)\nstrategy: +canary\nmax-in-flight: +1\ncanary-steps: +1\/2\n/,
    );
    const versions = /\ntype: +web\n[^]*\ninstances: +1\/1\n[^]*\n#0 +running[^]*\ntype: +web\n[^]*\ninstances: +1\/1\n[^]*\n#0 +running/;
    expect(paused.stdout).toMatch(versions);
    expect((await kf.ok('app', 'flags-canary')).stdout).toMatch(versions);
    const failed = (await answers()).filter((status) => status !== 200);
    expect([...new Set(failed)]).toEqual([500]);
    expect(failed.length).toBeLessThanOrEqual(20);
    await kf.ok('cancel-deployment', 'flags-canary');
    await until('the version before', async () => (await kf.json<App>('app', 'flags-canary')).deployment.status === 'CANCELED');
    expect((await kf.ok('app', 'flags-canary')).stdout.match(/^type:/gm)).toHaveLength(1);
    expect((await answers()).every((status) => status === 200)).toBe(true);
    const refused = await kf.run(['continue-deployment', 'flags-canary']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('No active deployment found for app.')]);
  });

  test('continue-deployment and --strategy recreate end with the new version alone', async () => {
    const host = 'flags-canary.apps.localhost';
    await pushVersion(2, 'flags-canary', '-c', 'null', '--strategy', 'canary');
    const { deployment } = await kf.json<App>('continue-deployment', 'flags-canary');
    expect(deployment).toMatchObject({ status: 'DEPLOYED', strategy: 'canary' });
    expect((await get(host)).body).toContain('kf sample 2');
    const pushed = await pushVersion(1, 'flags-canary', '--strategy', 'recreate');
    expect(await currentPodsOf(pushed.guid)).toHaveLength(1);
    expect((await get(host)).body).toContain('kf sample 1');
  });

  test('a canary of --instance-steps 10,50 has its next share after continue-deployment, and all requests after the last step', async () => {
    const host = 'flags-canary.apps.localhost';
    const backends = async () => {
      const { items } = await kubectlJson<{ items: HttpRoute[] }>('get', 'httproutes', '-n', ns);
      return mainBackends(items.find(({ spec }) => spec?.hostnames?.includes(host) === true));
    };
    const before = (await backends())[0]?.name;
    /** The weights of the version before, and of the canary. */
    const shares = async (): Promise<(number | undefined)[]> => {
      const all = await backends();
      return [all.find(({ name }) => name === before)?.weight, all.find(({ name }) => name !== before)?.weight];
    };
    const of = async (version: number): Promise<number> => {
      let answers = 0;
      for (let index = 0; index < 40; index += 1) if ((await get(host)).body.startsWith(`kf sample ${version},`)) answers += 1;
      return answers;
    };
    const paused = (step: number): RegExp => new RegExp(`\\ncanary-steps: +${step}/2\\n`);
    const steps = ['--strategy', 'canary', '--instance-steps', '10,50'];
    const { stdout } = await kf.ok('push', 'flags-canary', '-o', sample(2), ...steps);
    expect([stdout, await shares()]).toEqual([expect.stringMatching(paused(1)), [90, 10]]);
    const second = await kf.ok('continue-deployment', 'flags-canary');
    expect([second.stdout, await shares()]).toEqual([expect.stringMatching(paused(2)), [50, 50]]);
    const byCanary = await of(2);
    expect([byCanary > 8, byCanary < 32]).toEqual([true, true]);
    const { deployment } = await kf.json<App>('continue-deployment', 'flags-canary');
    expect(deployment).toMatchObject({ status: 'DEPLOYED', strategy: 'canary' });
    expect([await shares(), await of(2)]).toEqual([[undefined, 1], 40]);
  });

  test('--stack cannot be combined with an image', async () => {
    const ran = await kf.run(['push', 'flags', '-o', sample(1), '-s', 'kf']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('Incorrect Usage: The following arguments cannot be used together: --docker-image, -o, --stack, -s');
  });
});

describe('flags for routes', () => {
  test('--random-route gives each app its own host that answers, and the same host in every later push', async () => {
    const [one, other] = await Promise.all([push('flags-random', '--random-route'), push('flags-chance', '--random-route')]);
    const [[first = ''], [second = '']] = await Promise.all([hostsOf(one), hostsOf(other)]);
    expect(first).toMatch(/^flags-random-[a-z]+-[a-z]+-[a-z]{2}$/);
    expect(second).toMatch(/^flags-chance-[a-z]+-[a-z]+-[a-z]{2}$/);
    for (const host of [first, second]) expect([host, (await get(`${host}.apps.localhost`)).status]).toEqual([host, 200]);
    expect(await push('flags-random', '--random-route')).toMatchObject({ unchanged: true, routes: [`${first}.apps.localhost`] });
  });

  test('--no-route makes no route and unmaps existing routes, and the push shows it', async () => {
    const ran = await kf.ok('push', 'flags-hidden', '-o', sample(1), '-m', '64M', '--no-route');
    expect(ran.stdout).toMatch(/^routes: +$/m);
    const hidden = await kf.json<Pushed>('app', 'flags-hidden');
    expect([hidden.processes[0]?.running, await hostsOf(hidden)]).toEqual([1, []]);
    expect((await get('flags-hidden.apps.localhost')).status).toBe(404);
    const had = await push('flags-chance', '--no-route');
    expect([had.routes, await hostsOf(had)]).toEqual([[], []]);
  });
});

describe('flags for the start', () => {
  test('--no-wait ends with the first new instance that serves; the others follow', async () => {
    const command = 'until [ "$CF_INSTANCE_INDEX" = 0 ] || [ -e /tmp/go ]; do sleep 0.1; done; exec node server.cjs';
    const pushed = await push('flags-later', '-i', '3', '--no-wait', '-c', command);
    expect(pushed).toMatchObject({ state: 'started', processes: [{ running: 1, instances: 3 }] });
    expect((await get('flags-later.apps.localhost')).status).toBe(200);
    await until('the other containers', async () => {
      for (const { metadata } of await podsOf(pushed.guid)) await kubectl('exec', '-n', ns, metadata.name, '--', 'touch', '/tmp/go');
      return true;
    });
    await until('all instances', async () => (await kf.json<Pushed>('app', 'flags-later')).processes[0]?.running === 3);
    for (const argv of [
      ['push', 'flags-later', '-o', sample(2), '-c', 'null'],
      ['restart', 'flags-later'],
      ['restage', 'flags-later'],
    ]) {
      const { stdout } = await kf.ok(...argv, '--no-wait');
      expect(stdout).toMatch(/^name: +flags-later$/m);
      expect(stdout).toMatch(/^Waiting for app (flags-later )?to start\.\.\.$/m);
    }
    const crashed = await kf.run(['push', 'flags-later', '--no-wait', '-o', sample(2), '-c', 'exit 7']);
    expect(crashed.code).toBe(1);
    expect(crashed.stderr).toContain('Start unsuccessful: The app ended with exit code 7.');
    expect((await get('flags-later.apps.localhost')).status).toBe(200);
  });

  test('--no-start makes the app and its route but no pod, and start then runs it', async () => {
    const pushed = await push('flags-idle', '--no-start');
    expect(pushed.state).toBe('stopped');
    expect([await hostsOf(pushed), await podsOf(pushed.guid)]).toEqual([['flags-idle'], []]);
    await kf.ok('start', 'flags-idle');
    expect((await get('flags-idle.apps.localhost')).body).toBe('kf sample 1, instance 0\n');
  });

  test('--no-start stops a running app, and its new settings apply to the next start', async () => {
    const { stdout } = await kf.ok('push', 'flags-idle', '-o', sample(1), '-m', '64M', '--no-start', '-k', '150M');
    expect(stdout).toMatch(/Stopping Application\.\.\.\nApplication Stopped\n\nname: +flags-idle\nrequested state: +stopped\n/);
    expect(stdout).toMatch(/instances: +0\/1\n[^]*There are no running instances of this process\.\n/);
    const pushed = await kf.json<Pushed>('app', 'flags-idle');
    await until('no pod', async () => (await podsOf(pushed.guid)).length === 0);
    await until('no answer', async () => (await get('flags-idle.apps.localhost')).status !== 200);
    await kf.ok('start', 'flags-idle');
    expect((await containersOf(pushed))[0]?.resources.limits['ephemeral-storage']).toBe('150Mi');
  });

  test('the build sees variables and services that were set between push --no-start and start', async () => {
    const seen =
      "console.log('BUILD SEES', process.env.A, Object.values(JSON.parse(process.env.VCAP_SERVICES)).flat().map((s) => s.name).join())";
    const source = await lookingApp(seen);
    const pushOnly = ['push', 'flags-built', '-p', source, '-m', '64M', '--no-start'];
    const pushed = await kf.ok(...pushOnly);
    expect(pushed.stdout).not.toContain('Staging');
    const guid = (await kf.ok('app', 'flags-built', '--guid')).stdout.trim();
    expect(await buildsOf(guid)).toEqual([]);
    await kf.ok('set-env', 'flags-built', 'A', 'first');
    await kf.ok('create-user-provided-service', 'flags-db', '-p', '{"password":"x"}');
    await kf.ok('bind-service', 'flags-built', 'flags-db');
    const started = await kf.ok('start', 'flags-built');
    expect(started.stdout).toMatch(
      /\nStaging app and tracing logs\.\.\.\n[^]* {3,}BUILD SEES first flags-db\n[^]*\nWaiting for app to start\.\.\.\n/,
    );
    expect((await get('flags-built.apps.localhost')).status).toBe(200);
    // The same again: without a change nothing is built, with another variable it is.
    await kf.ok(...pushOnly);
    expect((await kf.ok('start', 'flags-built')).stdout).not.toContain('Staging');
    await kf.ok(...pushOnly);
    await kf.ok('unbind-service', 'flags-built', 'flags-db');
    await kf.ok('set-env', 'flags-built', 'A', 'second');
    expect((await kf.ok('restart', 'flags-built')).stdout).toMatch(/ {3,}BUILD SEES second \n/);
    expect(await buildsOf(guid)).toHaveLength(2);
    await rm(source, { recursive: true });
  });

  test('a build sees the services of the manifest, and runs again only for a new service or for other credentials', async () => {
    const look = (end = ''): string => `
      const services = Object.values(JSON.parse(process.env.VCAP_SERVICES)).flat();
      console.log('BUILD SEES', services.map((s) => s.name + '=' + s.credentials.password).sort().join());${end}`;
    const source = await lookingApp(look());
    const manifest = path.join(source, '..', `${path.basename(source)}.yml`);
    const push = ['push', '-f', manifest];
    const naming = (...services: string[]): Promise<void> =>
      writeFile(manifest, JSON.stringify({ applications: [{ name: 'flags-bound', path: source, memory: '64M', services }] }));
    const seenByApp = async (): Promise<string> => (await get('flags-bound.apps.localhost', '/env')).body;
    await kf.ok('create-user-provided-service', 'flags-first', '-p', '{"password":"one"}');
    await naming('flags-first');
    expect((await kf.ok(...push)).stdout).toMatch(/ {3,}BUILD SEES flags-first=one\n/);
    const { result, requests } = await countRequests(() => kf.json<{ apps: Pushed[] }>(...push));
    expect(result.apps[0]?.unchanged).toBe(true);
    expect(requests.api).toBeLessThanOrEqual(13);
    const guid = result.apps[0]?.guid ?? '';

    const instances = await kubectlJson<{ items: { spec: { displayName: string; secretName: string } }[] }>(
      ...['get', 'cfserviceinstances', '-n', ns],
    );
    const secret = instances.items.find(({ spec }) => spec.displayName === 'flags-first')?.spec.secretName ?? '';
    const bindings = async (): Promise<string> =>
      kubectl('get', 'cfservicebindings', '-n', ns, '-l', `korifi.cloudfoundry.org/app-guid=${guid}`, '-o', 'jsonpath={..annotations}');
    const before = await bindings();
    await kubectl('patch', 'secret', secret, '-n', ns, '--type=merge', '-p', '{"stringData":{"credentials":"{\\"password\\":\\"two\\"}"}}');
    await until('the new credentials', async () => (await bindings()) !== before);
    expect((await kf.ok(...push)).stdout).toMatch(/ {3,}BUILD SEES flags-first=two\n/);
    expect(await seenByApp()).toContain('two');

    // A failed build leaves the binding, and does not change the running version.
    await kf.ok('create-user-provided-service', 'flags-second', '-p', '{"password":"new"}');
    await naming('flags-first', 'flags-second');
    await writeFile(path.join(source, 'look.cjs'), look(' process.exit(1);'));
    const [pod] = await currentPodsOf(guid);
    const failed = await kf.run(push);
    expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('BUILD SEES flags-first=two,flags-second=new')]);
    expect((await currentPodsOf(guid)).map(({ metadata }) => metadata.uid)).toEqual([pod?.metadata.uid]);
    expect(await seenByApp()).not.toContain('flags-second');
    // The source that runs, again: it is built again, because it sees another service now.
    await writeFile(path.join(source, 'look.cjs'), look());
    expect((await kf.ok(...push)).stdout).toMatch(/ {3,}BUILD SEES flags-first=two,flags-second=new\n/);
    expect(await seenByApp()).toContain('flags-second');
    expect(await buildsOf(guid)).toHaveLength(4);
    await Promise.all([source, manifest].map((at) => rm(at, { recursive: true })));
  });

  test('restage builds the package that was pushed last, even if it was built before', async () => {
    const source = await mkdtemp(path.join(tmpdir(), 'kf-again-'));
    await cp(path.resolve('test/fixtures/apps/static-site'), source, { recursive: true });
    for (const text of ['version A', 'version B', 'version A']) {
      await writeFile(path.join(source, 'docs', 'index.html'), text);
      await kf.ok('push', 'flags-again', '-p', source, '-m', '64M');
    }
    await kf.ok('restage', 'flags-again');
    expect((await get('flags-again.apps.localhost')).body).toBe('version A');
    await rm(source, { recursive: true });
  });
});
