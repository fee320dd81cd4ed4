// Attacker: a developer who knows the pull reference of another space's app, and runs it as an image of their own. If a kubelet does not check
// again who may use a cached image, only the controller can prevent that.

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Kf, kubectl, kubectlJson, ringEnv } from '../../support/kf.ts';
import { TestWorld, type Member } from '../../support/members.ts';
import { until } from '../../support/until.ts';

const world = new TestWorld();
const victim = { app: 'foreign-victim', space: ringEnv('KF_TEST_SPACE_GUID') };
const api = 'korifi.cloudfoundry.org/v1alpha1';
let kf: Kf;
let attacker: Member;
let space: string;
/** `<space>/<app>-droplets@sha256:…` */
let droplet: string;
let source: string;

beforeAll(async () => {
  kf = await Kf.create();
  const place = await world.space();
  space = place.space;
  attacker = await world.member('spaceDeveloper', place);
  const folder = path.resolve('test/fixtures/apps/node-hello');
  const { apps } = await kf.json<{ apps: { guid: string }[] }>('push', victim.app, '-p', folder, '-m', '128M', '--no-route');
  const guid = apps[0]?.guid ?? '';
  const { items } = await kubectlJson<{
    items: { spec: { appRef: { name: string } }; status?: { droplet?: { registry: { image: string } } } }[];
  }>('get', 'cfbuilds', '-n', victim.space);
  const image = items.find(({ spec }) => spec.appRef.name === guid)?.status?.droplet?.registry.image ?? '';
  droplet = image.slice(image.indexOf('/') + 1);
  source = await kubectl(
    'get',
    'cfpackages',
    '-n',
    victim.space,
    '-o',
    `jsonpath={.items[?(@.spec.appRef.name=="${guid}")].spec.source.registry.image}`,
  );
});
afterAll(async () => {
  await kf.run(['delete', victim.app, '-f']);
  await world.remove();
  await kf.remove();
});

test('its droplet is refused under every name of the registry, before a pod is created', async () => {
  expect(droplet).toContain('-droplets@sha256:');
  const [repository = '', digest = ''] = droplet.split('@');
  const { host: node } = new URL(`http://${ringEnv('KF_CLUSTER_ADDRESS')}:32500`);
  const spellings = [
    `localhost:32500/${droplet}`,
    `LOCALHOST:32500/${droplet}`,
    `127.0.0.1:32500/${droplet}`,
    `${node}/${droplet}`,
    `kf-registry.kf-system.svc:5000/${droplet}`,
    `kf-registry.kf-system.svc.cluster.local:5000/${repository}:1@${digest}`,
  ];
  for (const [index, image] of spellings.entries()) {
    const ran = await attacker.kf.run(['push', `thief-${index}`, '-o', image, '-m', '64M', '--no-route']);
    expect([image, ran.code, ran.stderr.replace(/\s+/g, ' ')]).toEqual([
      image,
      1,
      expect.stringContaining('lies in the registry of this installation, but not among the images of this space'),
    ]);
  }
  // The runtime would use an image with that ID, which can be any that the node has, not only the droplet.
  const [, hex = ''] = digest.split(':');
  for (const [index, image] of [`sha256:${hex}`, `sha256:${hex.slice(0, 12)}`, 'sha256:0'].entries()) {
    const ran = await attacker.kf.run(['push', `thief-id-${index}`, '-o', image, '-m', '64M', '--no-route']);
    expect([image, ran.code, ran.stderr.replace(/\s+/g, ' ')]).toEqual([image, 1, expect.stringContaining('names an image by its ID')]);
  }
  expect(JSON.parse(await kubectl('get', 'pods,appworkloads', '-n', space, '-o', 'json'))).toMatchObject({ items: [] });
});

test('its source is refused as a package, because a builder with more rights could fetch it', async () => {
  expect(source).toContain(`/${victim.space}/`);
  await attacker.kf.run(['push', 'reader', '-p', path.resolve('test/fixtures/apps/node-hello'), '-m', '128M', '--no-route', '--no-start']);
  const app = await kubectl('get', 'cfapps', '-n', space, '-o', 'jsonpath={.items[?(@.spec.displayName=="reader")].metadata.name}');
  const name = 'stolen-source';
  const objects = [
    { kind: 'CFPackage', spec: { type: 'bits', appRef: { name: app }, source: { registry: { image: source } } } },
    {
      kind: 'CFBuild',
      spec: {
        appRef: { name: app },
        packageRef: { name },
        lifecycle: { type: 'buildpack', data: { stack: '' } },
        stagingMemoryMB: 0,
        stagingDiskMB: 0,
      },
    },
  ];
  const said = await attacker.kubectl(
    ['create', '-f', '-'],
    objects.map((object) => ({ apiVersion: api, metadata: { name, namespace: space }, ...object })),
  );
  expect(said).toMatchObject({ code: 0 });
  const message = await until('the build to fail', async () => {
    const text = await kubectl('get', 'cfbuild', name, '-n', space, '-o', 'jsonpath={.status.conditions[?(@.type=="Succeeded")]}');
    const condition = (text === '' ? {} : JSON.parse(text)) as { status?: string; message?: string };
    return condition.status === 'False' ? condition.message : undefined;
  });
  expect(message).toContain('lies in the registry of this installation, but not among the images of this space');
  expect(JSON.parse(await kubectl('get', 'buildworkloads', '-n', space, '-o', 'json'))).not.toMatchObject({
    items: expect.arrayContaining([expect.objectContaining({ metadata: expect.objectContaining({ name }) as object })]) as object,
  });
});
