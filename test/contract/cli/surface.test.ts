// Flags and variables of cf with a small effect, which no other test sees: tools/surface/decisions names these tests.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (argv: string[], env: Record<string, string> = {}): Promise<CliRun> => scene.cli.run(argv, { env });
const pushed = async (): Promise<void> => void (await scene.ok('push', 'shop', '-p', 'app'));

it('login -o and -s choose org and space', async () => {
  const ran = await run(['login', '-o', 'example-org', '-s', 'example-space'], { KF_ORG: '', KF_SPACE: '' });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  expect(scene.cli.state()).toMatchObject({ OrganizationFields: { Name: 'example-org' }, SpaceFields: { Name: 'example-space' } });
  expect((await run(['login', '-o', 'example-org', '-s', 'nowhere'])).code).toBe(1);
});

it('apps --no-stats leaves the processes out', async () => {
  await pushed();
  expect((await run(['apps'])).stdout).toMatch(/^name +requested state +processes +routes\nshop +started +web:0\/1 +shop\./m);
  expect((await run(['apps', '--no-stats'])).stdout).toMatch(/^name +requested state +routes\nshop +started +shop\./m);
});

it('app --guid prints the GUID alone', async () => {
  await pushed();
  expect((await run(['app', 'shop', '--guid'])).stdout).toBe(`${scene.app().metadata.name}\n`);
});

it('services --no-apps leaves the bound apps out', async () => {
  await pushed();
  await scene.ok('cups', 'db', '-p', '{"a":"b"}');
  await scene.ok('bind-service', 'shop', 'db');
  expect((await run(['services'])).stdout).toMatch(/^db +user-provided +shop/m);
  const { stdout } = await run(['services', '--no-apps']);
  expect(stdout).toMatch(/^db +user-provided/m);
  expect(stdout).not.toContain('shop');
});

it('bind-service --binding-name is the name of the binding', async () => {
  await pushed();
  await scene.ok('cups', 'db', '-p', '{"a":"b"}');
  await scene.ok('bind-service', 'shop', 'db', '--binding-name', 'main', '-w');
  expect(scene.cluster.memory.all(kinds.serviceBinding).map(({ spec }) => spec.displayName)).toEqual(['main']);
});

it('map-route --app-port is the port of the destination', async () => {
  await pushed();
  await scene.ok('map-route', 'shop', 'apps.localhost', '-n', 'admin', '--app-port', '9090');
  const route = scene.cluster.memory.all(kinds.route).find(({ spec }) => spec.host === 'admin');
  expect(route?.spec.destinations?.map(({ port }) => port)).toEqual([9090]);
});

it('unmap-route --path takes the route of that path alone', async () => {
  await pushed();
  await scene.ok('map-route', 'shop', 'apps.localhost', '-n', 'shop', '--path', '/cart');
  await scene.ok('unmap-route', 'shop', 'apps.localhost', '-n', 'shop', '--path', '/cart');
  const left = scene.cluster.memory.all(kinds.route).map(({ spec }) => [spec.path ?? '', spec.destinations?.length]);
  expect(left).toEqual([
    ['', 1],
    ['/cart', 0],
  ]);
});

it('push --no-manifest pushes the app that is named and nothing of the manifest', async () => {
  writeFileSync(path.join(scene.cli.home, 'manifest.yml'), 'applications:\n- name: shop\n  env: {A: b}\n- name: other\n  path: app\n');
  await scene.ok('push', 'shop', '-p', 'app', '--no-manifest');
  expect(scene.cluster.memory.all(kinds.app).map(({ spec }) => spec.displayName)).toEqual(['shop']);
  expect(scene.builds().map((build) => scene.variablesOf(build))).toEqual([{}]);
});

it.each(['restart', 'restage'])('%s --strategy rolling never stops the app, and --no-wait ends before all run', async (verb) => {
  await pushed();
  scene.cluster.memory.writes.length = 0;
  await scene.ok(verb, 'shop', '--strategy', 'rolling', '--no-wait');
  expect(JSON.stringify(scene.cluster.memory.writes)).not.toContain('STOPPED');
});

it.each([
  ['push', ['push', 'shop', '-p', 'app']],
  ['start', ['start', 'shop']],
  ['restart', ['restart', 'shop']],
  ['restage', ['restage', 'shop']],
  ['stage-package', ['stage-package', 'shop']],
])('CF_STAGING_TIMEOUT limits the build of %s', async (_, argv) => {
  await scene.ok('push', 'shop', '-p', 'app', '--no-start');
  scene.droplet = undefined;
  const ran = await run(argv, { CF_STAGING_TIMEOUT: '0.02' });
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain('0.02 min');
});

it('CF_USERNAME is the user of auth', async () => {
  const ran = await run(['auth'], { CF_USERNAME: 'nobody' });
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain('The kubeconfig has no user "nobody".');
});

it.each([
  ['deploy', "a command of cf's plugin 'multiapps'", 'kf push -f manifest.yml'],
  ['aasp', "a command of cf's plugin 'app-autoscaler'", 'kf autoscale APP --policy FILE'],
  ['copyenv', "a command of cf's plugin 'copyenv'", 'kf env APP --json'],
  ['zero-downtime-push', "a command of cf's plugin 'autopilot'", 'kf push APP'],
  ['v3-push', 'a command of older versions of cf', 'kf push'],
  ['v3-zdt-restart', 'a command of older versions of cf', 'kf restart'],
])('%s is answered with an alternative', async (name, owner, instead) => {
  const ran = await run([name, 'x']);
  expect(ran).toMatchObject({ code: 1, stdout: 'FAILED\n' });
  expect(ran.stderr).toContain(`'${name}' is ${owner}, which kf does not have.\n\nTIP:\n   Instead: ${instead}`);
  expect(JSON.parse((await run([name, '--json'])).stdout)).toMatchObject({ error: { code: 'usage', details: { command: name } } });
});
