// `rebuild`: what it says when a droplet cannot be built again.

import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests } from '../../support/cli.ts';
import { builtWeb, nameOf, ns, PushScene } from '../../support/push-scene.ts';
import { serveRegistry } from '../../support/registry-proxy.ts';
import { ScriptedRegistry } from '../../support/registry.ts';

const bundle = bundleForTests();
const encoded = (text: string): string => Buffer.from(text).toString('base64');
const credential = { username: encoded('push.other'), password: encoded('secret') };
const notJson = 'not JSON';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

/** Pushes an app of its own source, and loses its droplet. @returns the digest of its source */
async function losesDroplet(name: string, letter: string): Promise<string> {
  scene.source(letter);
  scene.droplet = { ...builtWeb, registry: { image: `localhost:32500/space-guid/${name}-droplets@sha256:${letter.repeat(64)}` } };
  await scene.ok('push', name, '-p', 'app');
  return scene.packages().at(-1)?.spec.source?.registry.image.split('@')[1] ?? '';
}

it('says OK and ends with 0 when all is built again', async () => {
  await losesDroplet('shop', 'a');
  expect(await scene.cli.run(['rebuild'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Building the apps again whose droplets are lost.*\.\.\.\n[^]*\nOK\n\napp +org\/space .*\nshop .* built again\n/,
    ),
  });
});

it('looks at the other apps when the registry refuses one, reports all, and says no OK', async () => {
  await losesDroplet('shop', 'a');
  const refused = await losesDroplet('bag', 'b');
  await losesDroplet('till', 'c');
  scene.cluster.server.on(`GET .*/manifests/${refused}`, (call) => call.text('', 403));
  const preview = await scene.cli.run(['rebuild', '--dry-run', '--json']);
  expect([preview.code, JSON.parse(preview.stdout)]).toMatchObject([
    1,
    {
      result: {
        lost: [
          { app: 'shop', state: 'buildable' },
          { app: 'bag', state: 'failed', message: expect.stringContaining('registry') as string },
          { app: 'till', state: 'buildable' },
        ],
      },
    },
  ]);
  const run = await scene.cli.run(['rebuild']);
  expect(run).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/\.\.\.\n\napp .*\nshop .* built again\nbag .* failed: .*\ntill .* built again\n/),
  });
  expect(run.stdout).not.toContain('OK');
});

it('leaves an app stopped that was stopped while another one was built, and one alone that was deleted', async () => {
  await losesDroplet('shop', 'a');
  await losesDroplet('bag', 'b');
  await losesDroplet('till', 'c');
  const guidOf = (name: string): string => nameOf(scene.cluster.memory.all(kinds.app).find(({ spec }) => spec.displayName === name));
  const [bag, till] = [guidOf('bag'), guidOf('till')];
  let changed = false;
  const { intercept } = scene.cluster.memory;
  scene.cluster.memory.intercept = async (verb, type, name) => {
    await intercept(verb, type, name);
    if (changed || verb !== 'create' || type.plural !== kinds.build.plural) return;
    changed = true;
    await scene.cluster.memory.mergePatch(kinds.app, ns, bag, { spec: { desiredState: 'STOPPED' } });
    await scene.cluster.memory.delete(kinds.app, ns, till);
  };
  const run = await scene.cli.run(['rebuild', '--json']);
  expect([run.code, JSON.parse(run.stdout)]).toMatchObject([
    0,
    {
      result: {
        lost: [
          { app: 'shop', state: 'rebuilt' },
          { app: 'bag', state: 'rebuilt' },
        ],
      },
    },
  ]);
  expect(scene.cluster.memory.peek(kinds.app, ns, bag)?.spec.desiredState).toBe('STOPPED');
});

const lastBuilt = (): string => scene.builds().at(-1)?.spec.packageRef.name ?? '';
const packageNames = (): string[] => scene.packages().map(nameOf);

/** Pushes two versions of one app, goes back to the first one, and loses the droplets. @returns the digest of the first source */
async function losesOlderDroplet(): Promise<string> {
  const digest = await losesDroplet('shop', 'a');
  const first = nameOf(scene.builds()[0]);
  await losesDroplet('shop', 'b');
  await scene.ok('set-droplet', 'shop', first);
  await scene.ok('restart', 'shop');
  return digest;
}

it('builds the package of the lost droplet, and not the newest one', async () => {
  await losesOlderDroplet();
  const [older, newest] = packageNames();
  expect((await scene.ok('rebuild')).stdout).toMatch(/^shop .* built again$/m);
  expect([lastBuilt(), scene.packageThatRuns(), scene.builds().length]).toEqual([older, older, 3]);
  await scene.ok('restage', 'shop');
  expect(lastBuilt()).toBe(newest);
});

it.each([
  { which: 'a started', add: ['create-package', 'shop', '-p', 'app'], state: 'STARTED' },
  { which: 'a stopped', add: ['push', 'shop', '-p', 'app', '--no-start'], state: 'STOPPED' },
])('builds the package of the lost droplet of $which app, and one that waits for a start goes on waiting', async ({ add, state }) => {
  await losesDroplet('shop', 'a');
  scene.source('b');
  await scene.ok(...add);
  const [pushed, waiting] = packageNames();
  expect((await scene.ok('rebuild')).stdout).toMatch(/^shop .* built again$/m);
  expect([lastBuilt(), scene.packageThatRuns(), scene.app().spec.desiredState]).toEqual([pushed, pushed, state]);
  await scene.ok(state === 'STARTED' ? 'restart' : 'start', 'shop');
  expect([lastBuilt(), scene.packageThatRuns()]).toEqual([waiting, waiting]);
});

it('builds the package that a restage builds when that of the lost droplet is lost too', async () => {
  scene.images.delete(await losesOlderDroplet());
  const [, newest] = packageNames();
  expect((await scene.ok('rebuild')).stdout).toMatch(/^shop .* built again$/m);
  expect([lastBuilt(), scene.packageThatRuns()]).toEqual([newest, newest]);
});

/** Pushes an app whose droplet and source are both in a registry. */
async function storesBoth(registry: ScriptedRegistry): Promise<{ repository: string; config: string; layer: string }> {
  serveRegistry(scene.cluster.server, registry);
  const repository = 'space-guid/shop-droplets';
  const [config, layer] = ['config', 'layer'].map((text) => registry.putBlob(repository, Buffer.from(text))) as [string, string];
  const named = { config: { digest: config }, layers: [{ digest: layer }, { digest: layer }] };
  const droplet = registry.putManifest(repository, 'one', 'application/vnd.oci.image.manifest.v1+json', named);
  scene.droplet = { ...builtWeb, registry: { image: `localhost:32500/${repository}@${droplet}` } };
  await scene.ok('push', 'shop', '-p', 'app');
  return { repository, config, layer };
}

interface Previewed {
  intact: number;
  lost: { app: string; state: string }[];
}

async function preview(): Promise<Previewed> {
  const { intact, lost } = (JSON.parse((await scene.cli.run(['rebuild', '--dry-run', '--json'])).stdout) as { result: Previewed }).result;
  return { intact, lost: lost.map(({ app, state }) => ({ app, state })) };
}

it.each(['config', 'layer'] as const)(
  'counts a droplet or source as lost when the registry has its manifest but not its %s',
  async (part) => {
    const registry = await ScriptedRegistry.start();
    try {
      const parts = await storesBoth(registry);
      expect(await preview()).toEqual({ intact: 1, lost: [] });
      registry.blobs.delete(parts[part]);
      expect(await preview()).toEqual({ intact: 0, lost: [{ app: 'shop', state: 'buildable' }] });
      registry.blobs.clear();
      expect(await preview()).toEqual({ intact: 0, lost: [{ app: 'shop', state: 'push' }] });
    } finally {
      await registry.stop();
    }
  },
);

/** Adds a space with an app whose droplet is lost, and a Secret for the registry. */
async function addSpace(name: string, data: Record<string, string>): Promise<void> {
  const image = `localhost:32500/${name}/a-droplets@sha256:${'d'.repeat(64)}`;
  await scene.cluster.add(kinds.space, { metadata: { name, namespace: 'org-guid' }, spec: { displayName: name } });
  await scene.cluster.add(secretType, { metadata: { name: 'kf-registry-push', namespace: name }, data });
  const [app] = scene.cluster.memory.all(kinds.app);
  const [build] = scene.cluster.memory.all(kinds.build);
  if (app === undefined || build === undefined) throw new Error('nothing was pushed');
  await scene.cluster.add(kinds.app, {
    ...app,
    metadata: { name: 'app-there', namespace: name },
    spec: { ...app.spec, displayName: 'there', currentDropletRef: { name: 'build-there' } },
  });
  const made = await scene.cluster.add(kinds.build, { ...build, metadata: { name: 'build-there', namespace: name } });
  const droplet = { ...builtWeb, registry: { image } };
  await scene.cluster.memory.mergePatch(kinds.build, name, nameOf(made), { status: { droplet } }, { subresource: 'status' });
}

it.each([
  { what: 'has no credential for the registry', data: {}, message: /no credential/, answer: undefined },
  {
    what: 'has a credential that the registry refuses',
    data: credential,
    message: /^Error from registry/,
    answer: ['', 401] as [string, number],
  },
  {
    what: 'has an image whose manifest is not JSON',
    data: credential,
    message: /not valid JSON/,
    answer: [notJson, 200] as [string, number],
  },
])('looks at the other spaces when one $what, and names it', async ({ data, message, answer }) => {
  await losesDroplet('shop', 'a');
  await addSpace('other', data);
  if (answer !== undefined) {
    const image = `sha256:${createHash('sha256').update(notJson).digest('hex')}`;
    const registry = { image: `localhost:32500/other/a-droplets@${image}` };
    await scene.cluster.memory.mergePatch(
      kinds.build,
      'other',
      'build-there',
      { status: { droplet: { registry } } },
      { subresource: 'status' },
    );
    scene.cluster.server.on('(GET|HEAD) .*/v2/other/.*', (call) => call.text(...answer));
  }
  const preview = await scene.cli.run(['rebuild', '--dry-run', '--json']);
  expect([preview.code, JSON.parse(preview.stdout)]).toMatchObject([
    1,
    {
      warnings: [expect.stringContaining("Space 'example-org/other' (namespace 'other') is left out: ") as string],
      result: {
        lost: [{ app: 'shop', state: 'buildable' }],
        leftOut: [{ org: 'example-org', space: 'other', guid: 'other', message: expect.stringMatching(message) as string }],
      },
    },
  ]);
  const run = await scene.cli.run(['rebuild']);
  expect([run.code, run.stdout]).toEqual([
    1,
    expect.stringMatching(/^shop .* built again$[^]*^Not known of the apps in example-org\/other\.$/m),
  ]);
  expect(run.stdout).not.toContain('OK');
});

it('ends when the registry does not answer, and does not count that to a space', async () => {
  await losesDroplet('shop', 'a');
  scene.cluster.server.on('(GET|HEAD) .*/v2/.*', (call) => call.text('', 503));
  const run = await scene.cli.run(['rebuild', '--dry-run']);
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('does not answer')]);
  expect(run.stderr).not.toContain('left out');
}, 60_000);
