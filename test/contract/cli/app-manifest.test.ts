// `create-app-manifest`: the settings of an app as a manifest that a push reads.

import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const inHome = (name: string): string => path.join(scene.cli.home, name);
const text = (name: string): string => readFileSync(inHome(name), 'utf8');

async function fullApp(): Promise<void> {
  await scene.ok('create-app', 'shop', '-b', 'kf/nodejs');
  await scene.ok('set-env', 'shop', 'PORTS', '0755');
  await scene.ok('set-env', 'shop', 'COLOUR', 'light: blue');
  await scene.ok('cups', 'db', '-p', '{"a":"b"}');
  await scene.ok('cups', 'cache', '-p', '{"a":"b"}');
  await scene.ok('bind-service', 'shop', 'db');
  await scene.ok('bind-service', 'shop', 'cache', '--binding-name', 'fast', '-w');
  await scene.ok('set-health-check', 'shop', 'http', '--endpoint', '/health', '--invocation-timeout', '3');
  await scene.ok('scale', 'shop', '-m', '1536M', '-f');
  await scene.ok('push', 'shop', '-p', 'app');
  const labels = { team: 'blue' };
  await scene.cluster.memory.mergePatch(kinds.app, ns, scene.app().metadata.name ?? '', { metadata: { labels } });
}

it('has the keys of cf in their order, and a push of it changes nothing', async () => {
  await fullApp();
  const made = await run('create-app-manifest', 'shop');
  const file = inHome('shop_manifest.yml');
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(made.stdout).toBe(
    'Creating an app manifest from current settings of app shop in org example-org / space example-space as alice...\n' +
      `Manifest file created successfully at ${file}\nOK\n\n`,
  );
  expect(text('shop_manifest.yml')).toBe(
    [
      '---',
      'applications:',
      '  - name: shop',
      '    env:',
      '      COLOUR: "light: blue"',
      '      PORTS: "0755"',
      '    lifecycle: buildpack',
      '    buildpacks:',
      '      - kf/nodejs',
      '    services:',
      '      - name: cache',
      '        binding_name: fast',
      '      - db',
      '    routes:',
      '      - route: shop.apps.localhost',
      '        protocol: http1',
      '    metadata:',
      '      labels:',
      '        team: blue',
      '    processes:',
      '      - type: web',
      '        instances: 1',
      '        memory: 1536M',
      '        disk_quota: 1G',
      '        timeout: 60',
      '        health-check-type: http',
      '        health-check-http-endpoint: /health',
      '        health-check-invocation-timeout: 3',
      '',
    ].join('\n'),
  );
  const pushed = await scene.ok('push', '-f', 'shop_manifest.yml', '-p', 'app');
  expect(pushed.stdout).toContain('App shop is unchanged');
});

it('quotes what is no text in the YAML of cf', async () => {
  await scene.ok('create-app', 'shop');
  const values = ['yes', 'off', 'y', '012', '1_000', '1:30', '2026-11-25', 'null'];
  for (const [at, value] of values.entries()) await scene.ok('set-env', 'shop', `V${at}`, value);
  await scene.ok('set-label', 'app', 'shop', 'public=no');
  await scene.ok('create-app-manifest', 'shop');
  const written = text('shop_manifest.yml');
  expect([...written.matchAll(/^ {6}V\d: (.*)$/gm)].map(([, value]) => value)).toEqual(values.map((value) => `"${value}"`));
  expect(written).toContain('        public: "no"\n');
});

it('has bindings and routes that no controller has made ready', async () => {
  await scene.ok('create-app', 'shop');
  await scene.ok('cups', 'db', '-p', '{"a":"b"}');
  const app = scene.app().metadata.name ?? '';
  const [instance] = scene.cluster.memory.all(kinds.serviceInstance);
  const service = { name: instance?.metadata.name ?? '' };
  const labels = { 'korifi.cloudfoundry.org/app-guid': app };
  scene.cluster.memory.intercept = () => undefined;
  const claimed = { type: 'Claimed', status: 'False' as const, reason: 'DuplicateName', message: '', lastTransitionTime: '' };
  for (const name of ['waits', 'refused'])
    await scene.cluster.add(kinds.serviceBinding, {
      metadata: { name, namespace: ns, labels },
      spec: { type: 'app', appRef: { name: app }, service, parameters: { name: '' }, displayName: name },
    });
  await scene.cluster.memory.mergePatch(
    kinds.serviceBinding,
    ns,
    'refused',
    { status: { conditions: [claimed] } },
    { subresource: 'status' },
  );
  const domain = scene.cluster.memory.all(kinds.domain)[0]?.metadata.name ?? '';
  await scene.cluster.add(kinds.route, {
    metadata: { name: 'route', namespace: ns },
    spec: {
      host: 'Shop',
      path: '/a',
      domainRef: { name: domain, namespace: 'cf' },
      destinations: [{ guid: 'd', appRef: { name: app }, processType: 'web' }],
    },
  });
  expect([scene.app().status?.serviceBindings, scene.cluster.memory.peek(kinds.route, ns, 'route')?.status]).toEqual([
    undefined,
    undefined,
  ]);
  expect(await run('create-app-manifest', 'shop')).toMatchObject({ code: 0, stderr: '' });
  expect(text('shop_manifest.yml')).toContain('    services:\n      - name: db\n        binding_name: waits\n    routes:\n');
  expect(text('shop_manifest.yml')).toContain('    routes:\n      - route: shop.apps.localhost/a\n        protocol: http1\n');
});

it('-p names the file, which only its owner may read', async () => {
  await scene.ok('create-app', 'shop');
  const made = await run('create-app-manifest', 'shop', '-p', 'other.yml', '--json');
  expect(JSON.parse(made.stdout)).toMatchObject({ result: { app: 'shop', path: 'other.yml' } });
  expect(statSync(inHome('other.yml')).mode & 0o777).toBe(0o600);
});

it('of a docker app has the image as it was pushed', async () => {
  await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1');
  await scene.ok('create-app-manifest', 'shop');
  expect(text('shop_manifest.yml')).toContain('    lifecycle: docker\n    docker:\n      image: registry.example.com/shop:1\n');
});

it('of an unknown app, in a place that cannot be written, and without the right to see variables writes nothing', async () => {
  await scene.ok('create-app', 'shop');
  expect((await run('create-app-manifest', 'chop')).stderr).toContain("App 'chop' not found.");
  expect((await run('create-app-manifest')).stderr).toContain('the required argument `APP_NAME` was not provided');
  const refused = await run('create-app-manifest', 'shop', '-p', 'nowhere/manifest.yml');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^Error creating file: ENOENT/m)]);
  scene.cluster.server.on(`GET .*/${secretType.plural}/.*`, (call) => call.fail(403, 'Forbidden', 'User "alice" cannot get secrets'));
  expect(JSON.parse((await run('create-app-manifest', 'shop', '--json')).stdout)).toMatchObject({ error: { code: 'forbidden' } });
  expect(() => text('shop_manifest.yml')).toThrow('ENOENT');
});
