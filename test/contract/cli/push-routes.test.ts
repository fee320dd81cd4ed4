// An app's own route counts as mapped only while it leads to the app: one that was refused, or that is being deleted, does not.

import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { leaseType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, reasons } from '../../../src/lib/api/group.ts';
import { nameClaims } from '../../../src/lib/api/names.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFRoute } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests } from '../../support/cli.ts';
import { ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const fqdn = 'shop.apps.localhost';
const push = ['push', 'shop', '-o', 'registry.example.com/shop:1'];
let scene: PushScene;

beforeEach(async () => {
  scene = await PushScene.start(bundle.program);
  await scene.ok(...push);
});
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

function route(): Stored<CFRoute> {
  const [found] = scene.cluster.memory.all(kinds.route);
  if (found === undefined) throw new Error('there is no route');
  return found;
}

/** The controller's refusal of the route: another route has the host. */
function refuse({ metadata }: Stored<CFRoute>): void {
  const message = `Route already exists with host 'shop' for domain 'apps.localhost'.`;
  const claimed = { type: 'Claimed', status: 'False', reason: reasons.duplicateName, message, lastTransitionTime: '' };
  scene.setStatus(kinds.route, metadata.name, { conditions: [{ ...claimed, observedGeneration: metadata.generation }], uri: null });
}

/** The Lease of the host, as the controller makes it. */
const claimHost = (space: string, address = fqdn) =>
  scene.cluster.add(leaseType, {
    metadata: {
      name: nameClaims.routeHost(address).leaseName,
      namespace: 'cf',
      annotations: { [annotations.leaseOwnerNamespace]: space },
    },
    spec: { holderIdentity: 'none' },
  });

/** Resolves when the command begins to wait for a change of a route. */
function routesWatched(): Promise<void> {
  const { memory } = scene.cluster;
  const { intercept } = memory;
  return new Promise((resolve) => {
    memory.intercept = (verb, type, name) => {
      if (verb === 'watch' && type.plural === kinds.route.plural) resolve();
      return intercept(verb, type, name);
    };
  });
}

it('a push whose own route was refused fails when another space has the host', async () => {
  refuse(route());
  await claimHost('another-space');
  const run = await scene.cli.run(push);
  expect(run.stderr).toContain("Route already exists with host 'shop' for domain 'apps.localhost'. Another space has this host");
  expect(run.code).toBe(1);
});

it('a push whose own route was refused makes it again when the host is free', async () => {
  const refused = route();
  refuse(refused);
  await scene.ok(...push);
  expect(scene.cluster.memory.all(kinds.route)).toHaveLength(1);
  expect(route()).toMatchObject({ spec: { host: 'shop' }, status: { conditions: [{ type: 'Claimed', status: 'True' }, {}, {}] } });
  expect(route().metadata.uid).not.toBe(refused.metadata.uid);
});

it.each([[push], [['map-route', 'shop', 'apps.localhost', '-n', 'shop']]])(
  '%j waits for the end of a route, and makes it again',
  async (args) => {
    const { memory } = scene.cluster;
    const going = route();
    const { name } = going.metadata;
    await memory.mergePatch(kinds.route, ns, name, { metadata: { finalizers: ['example.com/slow'] } });
    await memory.delete(kinds.route, ns, name);
    const watched = routesWatched();
    const running = scene.cli.run(args);
    await Promise.race([watched, running]);
    expect(memory.all(kinds.route)).toHaveLength(1);
    await memory.mergePatch(kinds.route, ns, name, { metadata: { finalizers: null } });
    const run = await running;
    expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining("Waiting: 'shop.apps.localhost' is being deleted") });
    expect(memory.all(kinds.route)).toHaveLength(1);
    expect(route().metadata.uid).not.toBe(going.metadata.uid);
  },
);

it('a push to a route that leads to 14 other apps fails before anything is written', async () => {
  const destinations = Array.from({ length: 14 }, (_, at) => ({ guid: `d-${at}`, appRef: { name: `a-${at}` }, processType: 'web' }));
  await scene.cluster.memory.mergePatch(kinds.route, ns, route().metadata.name, { spec: { destinations } }, {});
  await claimHost(ns);
  const applications = [{ name: 'other', docker: { image: 'registry.example.com/shop:1' }, routes: [{ route: fqdn }] }];
  await writeFile(path.join(scene.cli.home, 'manifest.yml'), JSON.stringify({ applications }));
  const writes = (): unknown[] => scene.cluster.server.callsOf('(POST|PATCH|PUT) .*/namespaces/.*');
  const before = writes();
  const run = await scene.cli.run(['push']);
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`Route ${fqdn} leads to 14 apps already`)]);
  expect(writes()).toEqual(before);
});

describe('a default route that is not the name of its app', () => {
  const image = 'registry.example.com/shop:1';
  const address = 'my-app.apps.localhost';
  const writes = (): unknown[] => scene.cluster.server.callsOf('(POST|PATCH|PUT) .*/namespaces/.*');

  it.each([
    ['my-app', 'my_app'],
    ['my_app', 'my-app'],
  ])('when app %s has the route, a push of %s fails before anything is written', async (first, second) => {
    await scene.ok('push', first, '-o', image);
    await claimHost(ns, address);
    const before = writes();
    const run = await scene.cli.run(['push', second, '-o', image]);
    expect([run.code, run.stderr]).toEqual([
      1,
      `The default route of app '${second}' is ${address}, which is a route of app '${first}'.\n\nTIP:\n` +
        `   kf push ${second} --docker-image ${image} --random-route\n   kf push ${second} --docker-image ${image} --no-route\n`,
    ]);
    expect(writes()).toEqual(before);
  });

  it('it may lead to the app that it is made for, and to an app that is gone', async () => {
    await scene.ok('push', 'my_app', '-o', image);
    await scene.ok('push', 'my_app', '-o', image);
    await scene.ok('delete', '-f', 'my_app');
    expect(scene.cluster.memory.all(kinds.route).map(({ spec }) => spec.host)).toContain('my-app');
    await scene.ok('push', 'my_app', '-o', image);
  });

  it('it may lead to the app before too, which was renamed and goes when the new one serves', async () => {
    await scene.ok('push', 'my_app', '-o', image);
    const before = scene.cluster.memory.all(kinds.app).find(({ spec }) => spec.displayName === 'my_app');
    await scene.cluster.memory.mergePatch(kinds.app, ns, before?.metadata.name ?? '', { spec: { displayName: 'my_app-old' } });
    await claimHost(ns, address);
    await scene.ok('push', 'my_app', '-o', image);
    const routes = scene.cluster.memory.all(kinds.route).filter(({ spec }) => spec.host === 'my-app');
    expect(routes.map(({ spec }) => spec.destinations)).toEqual([[expect.anything(), expect.anything()]]);
  });

  it('it may be one that the manifest gives to another app too', async () => {
    const old = { name: 'my_app-old', docker: { image }, routes: [{ route: address }] };
    const applications = [{ name: 'my_app', docker: { image }, 'default-route': true }, old];
    await writeFile(path.join(scene.cli.home, 'manifest.yml'), JSON.stringify({ applications }));
    await scene.ok('apply-manifest', '-f', 'manifest.yml');
  });

  it.each([['push'], ['apply-manifest']])('two apps of a manifest have no default route in common: %s', async (command) => {
    const applications = ['my-app', 'my_app'].map((name) => ({ name, docker: { image }, 'default-route': true }));
    await writeFile(path.join(scene.cli.home, 'manifest.yml'), JSON.stringify({ applications }));
    const before = writes();
    const run = await scene.cli.run([command, '-f', 'manifest.yml']);
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining(`The default route of app 'my_app' is ${address}, which is a route of app 'my-app'.`),
    ]);
    expect(writes()).toEqual(before);
  });
});
