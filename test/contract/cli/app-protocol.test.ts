// What the gateway speaks to an app: `map-route --app-protocol`, `update-destination`, the manifest's `protocol`, and where it is shown.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1');
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const address = ['apps.localhost', '-n', 'grpc', '--path', '/echo'];
const place = 'in org example-org / space example-space as alice...';
const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const update = (...argv: string[]): Promise<CliRun> => run('update-destination', 'shop', ...address, ...argv);
const writes = (): number => scene.cluster.server.callsOf('(POST|PATCH|PUT|DELETE) .*cfroutes.*').length;

function routeOf(host: string): Stored<CFRoute> {
  const found = scene.cluster.memory.all(kinds.route).find(({ spec }) => spec.host === host);
  if (found === undefined) throw new Error(`there is no route with host ${host}`);
  return found;
}
const protocols = (host: string): (string | undefined)[] => (routeOf(host).spec.destinations ?? []).map(({ protocol }) => protocol);

describe('map-route --app-protocol', () => {
  it('makes a destination of that protocol, which every view shows', async () => {
    const { stdout } = await scene.ok('map-route', 'shop', ...address, '--app-protocol', 'http2');
    expect(stdout).toContain(`Mapping route grpc.apps.localhost/echo to app shop with protocol http2 ${place}\nOK\n`);
    expect(protocols('grpc')).toEqual(['http2']);
    expect((await run('routes')).stdout).toMatch(/grpc +apps\.localhost +\/echo +http +http2 +shop/);
    expect((await run('route', ...address)).stdout).toMatch(/\n\tshop +web +\d* +http2\n/);
    const curl = await run('curl', `/v3/routes/${routeOf('grpc').metadata.name}/destinations`);
    expect(JSON.parse(curl.stdout)).toMatchObject({ destinations: [{ protocol: 'http2' }] });
    const json = JSON.parse((await run('routes', '--json')).stdout) as { result: { host: string; appProtocols: string[] }[] };
    expect(json.result.map(({ host, appProtocols }) => [host, appProtocols])).toEqual([
      ['grpc', ['http2']],
      ['shop', ['http1']],
    ]);
  });

  it('changes no present destination, as in cf, and names the command that does', async () => {
    const ran = await run('map-route', 'shop', 'apps.localhost', '-n', 'shop', '--app-protocol', 'http2');
    expect(ran.stdout).toContain("App 'shop' is already mapped to route 'shop.apps.localhost'. Nothing has been updated.\nOK\n");
    expect(ran.stderr).toContain(`The gateway speaks http1 to app 'shop' on this route; 'kf update-destination' changes it.`);
    expect([ran.code, protocols('shop')]).toEqual([0, ['http1']]);
  });
});

describe('update-destination', () => {
  beforeEach(() => scene.ok('map-route', 'shop', ...address));

  it('changes the destination of the app and no other, and says so as cf does', async () => {
    const other = { guid: 'd-other', appRef: { name: 'other' }, processType: 'web', protocol: 'http1' as const };
    const { metadata, spec } = routeOf('grpc');
    const destinations = [other, ...(spec.destinations ?? [])];
    await scene.cluster.memory.mergePatch(kinds.route, metadata.namespace, metadata.name, { spec: { destinations } });
    const ran = await update('--app-protocol', 'http2');
    const text = `Updating destination protocol from http1 to http2 for route grpc.apps.localhost/echo ${place}\nOK\n\n`;
    expect(ran).toMatchObject({ code: 0, stdout: text });
    expect(routeOf('grpc').spec.destinations).toEqual([other, { ...spec.destinations?.[0], protocol: 'http2' }]);
    expect(protocols('shop')).toEqual(['http1']);
    expect(JSON.parse((await update('--json')).stdout)).toMatchObject({
      result: { app: 'shop', url: 'grpc.apps.localhost/echo', protocol: 'http1', updated: true },
    });
    expect(protocols('grpc')).toEqual(['http1', 'http1']);
  });

  it('of the protocol that it has writes nothing', async () => {
    const before = writes();
    const ran = await update();
    expect([ran.code, ran.stdout]).toEqual([0, " App 'shop' is already using 'http1'. Nothing has been updated\nOK\n\n"]);
    expect(writes()).toBe(before);
  });

  it.each<[string, string[], string, string]>([
    ['without a domain', ['shop'], 'the required argument', ''],
    ['of an unknown app', ['nobody', ...address], "App 'nobody' not found", 'kf apps'],
    ['of an unknown domain', ['shop', 'nowhere.example.com'], "Domain 'nowhere.example.com' not found", 'kf domains'],
    [
      'of an unknown route',
      ['shop', 'apps.localhost', '-n', 'none'],
      "Route with host 'none' and domain 'apps.localhost' not found",
      'kf routes',
    ],
    ['with an unknown protocol', ['shop', ...address, '--app-protocol', 'tcp'], '--app-protocol must be "http1" or "http2"', ''],
  ])('%s fails', async (_what, argv, message, hint) => {
    const before = writes();
    const ran = await run('update-destination', ...argv);
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(ran.stderr).toContain(hint);
    expect(writes()).toBe(before);
  });

  it('of a route that does not lead to the app names the command that maps it', async () => {
    await scene.ok('unmap-route', 'shop', ...address);
    const ran = await update('--app-protocol', 'http2');
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain("Route 'grpc.apps.localhost/echo' does not lead to app 'shop'.");
    expect(ran.stderr).toContain('kf map-route shop apps.localhost -n grpc --path /echo --app-protocol http2');
  });
});

describe('a manifest', () => {
  const push = (...routes: string[]): Promise<unknown> => {
    const entries = routes.map((route) => `  - {route: ${route}}\n`).join('');
    const text = `applications:\n- name: shop\n  docker: {image: 'registry.example.com/shop:1'}\n  routes:\n${entries}`;
    writeFileSync(path.join(scene.cli.home, 'manifest.yml'), text);
    return scene.ok('push');
  };

  it('with a protocol sets it, one without leaves it as it is, and create-app-manifest writes it', async () => {
    await push('grpc.apps.localhost, protocol: http2', 'shop.apps.localhost, protocol: http2');
    expect([protocols('grpc'), protocols('shop')]).toEqual([['http2'], ['http2']]);
    await push('grpc.apps.localhost', 'shop.apps.localhost, protocol: http1');
    expect([protocols('grpc'), protocols('shop')]).toEqual([['http2'], ['http1']]);
    await scene.ok('create-app-manifest', 'shop', '-p', 'written.yml');
    const written = readFileSync(path.join(scene.cli.home, 'written.yml'), 'utf8');
    expect(written.match(/protocol: \w+/g)?.toSorted()).toEqual(['protocol: http1', 'protocol: http2']);
  });
});
