// One manifest with two apps, an image and source code: its values reach the cluster, and the same push again changes nothing.

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get } from '../support/http.ts';
import { Kf, kubectl, kubectlJson, ringEnv } from '../support/kf.ts';
import { currentPodsOf } from '../support/pods.ts';
import { until } from '../support/until.ts';

const manifest = `applications:
- name: mf-image
  docker: {image: '${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:((version))'}
  memory: ((size))
  disk-quota: 200M
  instances: ((count))
  command: MARK="$COLOUR" exec node server.cjs
  health-check-type: http
  health-check-http-endpoint: /health
  timeout: 45
  routes:
  - route: ((host)).apps.localhost
  - route: mf-paths.apps.localhost/env
  env:
    COLOUR: ((colour))
    TEXT: a ((colour)) one
    RATIO: 1.10
    SWITCH: true
    LIST: [1, two]
  services: [mf-db]
- name: mf-source
  path: app
  buildpacks: [kf/procfile]
  processes:
  - type: web
    memory: 64M
    command: node server.js --title "((colour))"
  - type: worker
    instances: 2
    memory: 48M
    health-check-type: process
`;

interface Pushed {
  name: string;
  guid: string;
  unchanged: boolean;
  built: boolean;
  routes: string[];
  buildpacks: { name: string }[];
}

let kf: Kf;
let folder: string;
let pushed: Pushed[] = [];
const guidOf = (app: string): string => pushed.find(({ name }) => name === app)?.guid ?? '';
const ns = ringEnv('KF_TEST_SPACE_GUID');
const credentials = { uri: 'postgres://db.example.com/mf' };

const argv = (): string[] => {
  const variables = ['--vars-file', path.join(folder, 'vars.yml'), '--vars-file', path.join(folder, 'more.yml'), '--var', 'count=2'];
  return ['push', '-f', path.join(folder, 'manifest.yml'), ...variables];
};
const push = async (): Promise<Pushed[]> => (await kf.json<{ apps: Pushed[] }>(...argv())).apps;
const env = async (): Promise<Record<string, string>> =>
  JSON.parse((await get('mf-green.apps.localhost', '/env')).body) as Record<string, string>;

beforeAll(async () => {
  kf = await Kf.create();
  folder = await mkdtemp(path.join(tmpdir(), 'kf-manifest-'));
  // A path in a manifest is relative to its folder.
  await cp(path.resolve('test/fixtures/apps/procfile-worker'), path.join(folder, 'app'), { recursive: true });
  await writeFile(path.join(folder, 'manifest.yml'), manifest);
  await writeFile(path.join(folder, 'vars.yml'), 'version: 1\nsize: 96M\ncount: 3\ncolour: red\nhost: mf-green\n');
  await writeFile(path.join(folder, 'more.yml'), 'colour: green\n');
  await kf.ok('create-user-provided-service', 'mf-db', '-p', JSON.stringify(credentials));
});
afterAll(async () => {
  await Promise.all(['mf-image', 'mf-source', 'mf-beside'].map((app) => kf.run(['delete', app, '-r', '-f'])));
  await kf.run(['delete-service', 'mf-db', '-f']);
  await Promise.all([kf.remove(), rm(folder, { recursive: true, force: true })]);
});

describe('a manifest with two apps', () => {
  test('pushes both apps, each with the routes that the manifest names or else with its own name', async () => {
    pushed = await push();
    expect(pushed.map(({ name, built, unchanged }) => [name, built, unchanged])).toEqual([
      ['mf-image', true, false],
      ['mf-source', true, false],
    ]);
    expect(pushed[0]?.routes.toSorted()).toEqual(['mf-green.apps.localhost', 'mf-paths.apps.localhost/env']);
    expect(pushed[1]?.routes).toEqual(['mf-source.apps.localhost']);
    for (const [host, at, status] of [
      ['mf-green', '/', 200],
      ['mf-paths', '/env', 200],
      ['mf-paths', '/', 404],
      ['mf-source', '/', 200],
      ['mf-image', '/', 404],
    ] as const)
      expect([host, at, (await get(`${host}.apps.localhost`, at)).status]).toEqual([host, at, status]);
  });

  test('gets its variables filled in: --var before files, later files before earlier ones, numbers as numbers', async () => {
    const seen = await env();
    expect(seen).toMatchObject({ COLOUR: 'green', TEXT: 'a green one', SAMPLE_VERSION: '1' });
    expect(await currentPodsOf(guidOf('mf-image'))).toHaveLength(2);
  });

  test('sets the environment as text, the service and the command', async () => {
    const seen = await env();
    expect(seen).toMatchObject({ RATIO: '1.10', SWITCH: 'true', LIST: '[1,"two"]', MARK: 'green', MEMORY_LIMIT: '96m' });
    const services = JSON.parse(seen['VCAP_SERVICES'] ?? '{}') as Record<string, unknown>;
    expect(services).toEqual({ 'user-provided': [expect.objectContaining({ name: 'mf-db', label: 'user-provided', credentials })] });
    expect(JSON.parse((await get('mf-green.apps.localhost', '/bindings')).body)).toMatchObject({ 'mf-db': credentials });
  });

  test('sets memory, disk and the health check of the pods', async () => {
    for (const { spec } of await currentPodsOf(guidOf('mf-image'))) {
      const [container] = spec.containers;
      expect(container?.resources.limits).toEqual({ memory: '96Mi', 'ephemeral-storage': '200Mi' });
      expect(container?.startupProbe).toMatchObject({ httpGet: { path: '/health' }, failureThreshold: 45 });
      expect(container?.livenessProbe?.httpGet?.path).toBe('/health');
    }
    const [web] = await currentPodsOf(guidOf('mf-source'));
    expect(web?.spec.containers[0]?.startupProbe).toMatchObject({ tcpSocket: { port: 8080 }, failureThreshold: 60 });
  });

  test('builds with exactly the buildpacks that it names, and starts web with its command', async () => {
    expect(pushed[1]?.buildpacks.map(({ name }) => name)).toEqual(['kf/procfile']);
    expect((await get('mf-source.apps.localhost')).body).toBe('web green\n');
  });

  test('runs the worker beside web, with its own memory and number of instances, without probes, Service and route', async () => {
    const guid = guidOf('mf-source');
    const [webs, workers] = await Promise.all([currentPodsOf(guid), currentPodsOf(guid, 'worker')]);
    expect(webs.map(({ spec }) => spec.containers[0]?.resources.limits['memory'])).toEqual(['64Mi']);
    expect(workers.map(({ status, spec }) => [status.phase, spec.containers[0]?.resources.limits['memory']])).toEqual([
      ['Running', '48Mi'],
      ['Running', '48Mi'],
    ]);
    expect(Object.keys(workers[0]?.spec.containers[0] ?? {}).filter((key) => key.endsWith('Probe'))).toEqual([]);
    await until('its first words', async () =>
      (await kubectl('logs', '-n', ns, workers[0]?.metadata.name ?? '')).includes('worker started'),
    );
    const { items: services } = await kubectlJson<{ items: { spec: { selector: Record<string, string> } }[] }>(
      ...['get', 'services', '-n', ns, '-l', `korifi.cloudfoundry.org/app-guid=${guid}`],
    );
    expect(services).toHaveLength(1);
    const { 'korifi.cloudfoundry.org/guid': behind } = services[0]?.spec.selector ?? {};
    expect(behind).toBe(webs[0]?.metadata.labels['korifi.cloudfoundry.org/guid']);
  });

  test('is unchanged when it is pushed again: no build, no new pod', async () => {
    const uids = async (): Promise<string[]> => {
      const pods = await Promise.all([
        currentPodsOf(guidOf('mf-image')),
        currentPodsOf(guidOf('mf-source')),
        currentPodsOf(guidOf('mf-source'), 'worker'),
      ]);
      return pods
        .flat()
        .map(({ metadata }) => metadata.uid)
        .sort();
    };
    const before = await uids();
    const again = await push();
    expect(again.map(({ name, built, unchanged }) => [name, built, unchanged])).toEqual([
      ['mf-image', false, true],
      ['mf-source', false, true],
    ]);
    expect(await uids()).toEqual(before);
  });

  test('runs a sidecar beside the app: with its part of the memory, and with log lines of its own', async () => {
    const beat = `node -e 'setInterval(() => console.log("beat"), 200)'`;
    const manifestOfSidecar = `applications:
- name: mf-beside
  docker: {image: '${ringEnv('KF_CLUSTER_NODE_REGISTRY')}/kf/sample:1'}
  memory: 128M
  sidecars:
  - {name: Beat, command: ${JSON.stringify(beat)}, process_types: [web], memory: 64M}
`;
    await writeFile(path.join(folder, 'beside.yml'), manifestOfSidecar);
    const [app] = (await kf.json<{ apps: Pushed[] }>('push', '-f', path.join(folder, 'beside.yml'))).apps;
    expect((await kf.ok('app', 'mf-beside')).stdout).toContain('sidecars:       Beat\n');
    const [pod] = await currentPodsOf(app?.guid ?? '');
    expect(pod?.spec.containers[0]?.resources.limits['memory']).toBe('64Mi');
    expect(pod?.spec.initContainers?.map(({ name, resources }) => [name, resources.limits['memory']])).toEqual([
      ['sidecar-0-beat-s', '64Mi'],
    ]);
    expect((await get('mf-beside.apps.localhost')).status).toBe(200);
    await until('a line of the sidecar', async () =>
      (await kf.ok('logs', 'mf-beside', '--recent')).stdout.includes('[APP/PROC/WEB/SIDECAR/BEAT/0] OUT beat'),
    );
  });

  test('shows no difference from the existing apps', async () => {
    const { stdout } = await kf.ok(...argv());
    expect(stdout.match(/^Manifest applied$/gm)).toHaveLength(2);
    expect(stdout).toMatch(/^ {2}- name: mf-image\n {4}docker:\n {6}image: \S+\/kf\/sample:1\n/m);
    expect(stdout).toMatch(/^ {4}- type: worker\n {6}instances: 2\n {6}memory: 48M\n {6}health-check-type: process$/m);
    expect(stdout.match(/^[-+] .*$/gm)).toBeNull();
  });
});
