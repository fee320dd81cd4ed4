// Commands that find, between their first read and their last write, that somebody else has changed the app.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { httpRouteType, revisionRule } from '../../../src/lib/api/gateway.ts';
import { annotations, kinds, labels, reasons } from '../../../src/lib/api/group.ts';
import { changeOf } from '../../../src/lib/api/held.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { builtWeb, nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const web = () => scene.cluster.memory.all(kinds.process)[0];
const droplet = (): string | undefined => scene.app().spec.currentDropletRef?.name;

/** Somebody else acts just before the next patch of this kind. */
function beforeNextPatch<T extends KubeObject>(type: ResourceType<T>, act: () => Promise<unknown>): void {
  const { memory } = scene.cluster;
  const { intercept } = memory;
  memory.intercept = async (verb, seen, name) => {
    if (verb === 'patch' && seen.plural === type.plural) {
      memory.intercept = intercept;
      await act();
      await memory.intercept(verb, seen, name);
    } else await intercept(verb, seen, name);
  };
}

/** Gives the app another change, as the last patch of a push does. */
const change = (spec: object = {}): Promise<unknown> =>
  scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), {
    metadata: { annotations: { [annotations.deployId]: 'theirs' } },
    spec,
  });
const startCanary = (): Promise<unknown> => change({ rollout: { id: 'theirs', strategy: 'canary' } });

describe('scale to other sizes while a canary begins', () => {
  beforeEach(async () => void (await scene.ok('push', 'shop', '-p', 'app', '-m', '256M', '-i', '2')));

  const scale = ['scale', 'shop', '-m', '80M', '-i', '3', '-f'];
  const refused = {
    code: 1,
    stderr: expect.stringContaining(
      'Cannot scale this process while a deployment is in flight.\n\nTIP:\n   kf continue-deployment shop\n   kf cancel-deployment shop\n',
    ) as string,
  };

  it('is refused: the canary goes on, and the process gets its sizes and instances back', async () => {
    beforeNextPatch(kinds.process, startCanary);
    expect(await run(...scale)).toMatchObject(refused);
    expect(scene.app().metadata.annotations?.[annotations.deployId]).toBe('theirs');
    expect(scene.app().spec.rollout).toEqual({ id: 'theirs', strategy: 'canary' });
    expect(web()?.spec).toMatchObject({ memoryMB: 256, desiredInstances: 2 });
  });

  it('leaves a size alone that somebody else has set since', async () => {
    beforeNextPatch(kinds.app, async () => {
      await startCanary();
      await scene.cluster.memory.mergePatch(kinds.process, ns, nameOf(web()), { spec: { memoryMB: 512 } });
    });
    expect(await run(...scale)).toMatchObject(refused);
    expect(web()?.spec).toMatchObject({ memoryMB: 512, desiredInstances: 2 });
  });
});

describe('while the app is started again,', () => {
  const overtook = "A later change of app 'shop' (by alice) has overtaken this one.\n\nTIP:\n   kf app shop\n";
  const startAgain = (): Promise<unknown> => change({ desiredState: 'STARTED' });

  beforeEach(async () => {
    await scene.ok('push', 'shop', '-p', 'app');
    const [route] = scene.cluster.memory.all(kinds.route);
    // The gateway does not confirm this form.
    await scene.cluster.add(httpRouteType, { metadata: { name: nameOf(route), namespace: ns }, spec: { rules: [revisionRule('r2', [])] } });
  });

  it.each([
    ['stop', ['stop', 'shop']],
    ['a push that stops it', ['push', 'shop', '-p', 'app', '--no-start']],
  ])('%s ends at once, before the controller has taken it up', async (_, argv) => {
    scene.cluster.memory.intercept = () => undefined;
    const running = run(...argv);
    await expect.poll(() => scene.app().spec.desiredState).toBe('STOPPED');
    await startAgain();
    const ended = await running;
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining(overtook)]);
    expect(ended.stderr).not.toContain('gateway');
  });

  it('stop ends at once also if it waits for the gateway', async () => {
    const running = run('stop', 'shop');
    const looks = (): number => scene.cluster.server.callsOf('GET .*/httproutes/.*').length;
    await expect.poll(looks).toBeGreaterThan(1);
    await startAgain();
    const ended = await running;
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining(overtook)]);
    expect(ended.stderr).not.toContain('may still send');
  });

  it('delete deletes it at once, without a warning', async () => {
    scene.cluster.memory.intercept = () => undefined;
    const running = run('delete', 'shop', '-f');
    await expect.poll(() => scene.app().spec.desiredState).toBe('STOPPED');
    await startAgain();
    expect(await running).toMatchObject({ code: 0, stderr: '' });
    expect(scene.cluster.memory.all(kinds.app)).toEqual([]);
  });
});

describe('scale that waits for its instances ends at once', () => {
  const isScaled = (instances: number): Promise<void> => expect.poll(() => web()?.spec.desiredInstances).toBe(instances);
  const overtook = "A later change of app 'shop' (by alice) has overtaken this one.\n\nTIP:\n   kf app shop\n";
  const gone = "App 'shop' was deleted meanwhile.\n\nTIP:\n   kf apps\n";

  beforeEach(async () => {
    await scene.ok('push', 'shop', '-p', 'app', '-i', '2');
    scene.setStatus(kinds.process, nameOf(web()), { instanceCounts: { running: 1, starting: 1, crashed: 0, down: 0 } });
  });

  it('when the app is stopped', async () => {
    const running = run('scale', 'shop', '-i', '3');
    await isScaled(3);
    await scene.ok('stop', 'shop');
    expect(await running).toMatchObject({ code: 1, stderr: expect.stringContaining(overtook) as string });
  });

  it.each([3, 0])('when the app and its process are deleted: -i %i', async (instances) => {
    const running = run('scale', 'shop', '-i', String(instances));
    await isScaled(instances);
    await scene.cluster.memory.delete(kinds.app, ns, nameOf(scene.app()));
    expect(await running).toMatchObject({ code: 1, stderr: expect.stringContaining(gone) as string });
  });

  it('when its process is deleted', async () => {
    const running = run('scale', 'shop', '-i', '0');
    await isScaled(0);
    await scene.cluster.memory.delete(kinds.process, ns, nameOf(web()));
    expect(await running).toMatchObject({ code: 1, stderr: expect.stringContaining(gone) as string });
  });
});

it('of two stops both succeed', async () => {
  await scene.ok('push', 'shop', '-p', 'app');
  beforeNextPatch(kinds.app, () => scene.ok('stop', 'shop'));
  expect(await run('stop', 'shop')).toMatchObject({ code: 0, stderr: '' });
});

it('of two starts both succeed, and wait for the one change', async () => {
  await scene.ok('push', 'shop', '-p', 'app');
  await scene.ok('stop', 'shop');
  let first: string | undefined;
  beforeNextPatch(kinds.app, async () => {
    await scene.ok('start', 'shop');
    first = scene.app().metadata.annotations?.[annotations.deployId];
  });
  const second = await run('start', 'shop');
  expect(second).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^requested state: +started$/m) as string });
  expect([first, scene.app().metadata.annotations?.[annotations.deployId]]).toEqual([expect.any(String), first]);
});

it('a push says that a later push or a rollback has overtaken it', async () => {
  scene.droplet = undefined;
  const running = run('push', 'shop', '-p', 'app');
  await expect.poll(() => scene.builds().length).toBe(1);
  const theirs = { [annotations.pushId]: 'theirs', [annotations.pushStarted]: '2026-08-07T10:16:20Z', [annotations.changedBy]: 'bob' };
  await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { metadata: { annotations: theirs } });
  expect(await running).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      "A later push, rollback or apply-manifest of app 'shop' (by bob, started 2026-08-07T10:16:20Z) has taken over; this one ends and has changed nothing more.\n",
    ) as string,
  });
});

describe('apply-manifest during a push', () => {
  const same = 'applications: [{name: shop, memory: 64M}]';
  const other = 'applications: [{name: shop, memory: 96M}]';
  const push = ['push', 'shop', '-p', 'app', '-m', '64M'];
  const deployId = (): string | undefined => scene.app().metadata.annotations?.[annotations.deployId];

  beforeEach(async () => void (await scene.ok(...push)));

  /** Begins the push of another source. @param reached it is where it waits */
  async function pushUntil(reached: () => boolean): Promise<{ running: Promise<CliRun> }> {
    scene.source('b');
    const running = run(...push);
    await expect.poll(reached).toBe(true);
    return { running };
  }

  async function apply(text: string): Promise<void> {
    writeFileSync(path.join(scene.cli.home, 'manifest.yml'), text);
    await scene.ok('apply-manifest', '-f', 'manifest.yml');
  }

  it('leaves one that builds alone where nothing differs', async () => {
    scene.droplet = undefined;
    const { running } = await pushUntil(() => scene.builds().length === 2);
    await apply(same);
    for (const build of scene.builds().filter(({ status }) => status?.state !== 'STAGED')) scene.endBuild(nameOf(build), builtWeb);
    expect(await running).toMatchObject({ code: 0 });
    expect(scene.packageThatRuns()).toBe(nameOf(scene.packages()[1]));
  });

  it('ends one that builds where something differs, and the push names it', async () => {
    scene.droplet = undefined;
    const { running } = await pushUntil(() => scene.builds().length === 2);
    await apply(other);
    const ended = await running;
    expect([ended.code, ended.stderr]).toEqual([
      1,
      expect.stringContaining("A later push, rollback or apply-manifest of app 'shop' (by alice, started "),
    ]);
  });

  it('leaves one alone whose new version starts already', async () => {
    const before = deployId();
    scene.isStarting = true;
    const { running } = await pushUntil(() => deployId() !== before);
    await apply(other);
    expect(web()?.spec.memoryMB).toBe(96);
    scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { id: deployId(), phase: 'Serving' } });
    expect(await running).toMatchObject({ code: 0 });
  });
});

describe('a push that a later one overtakes', () => {
  const theirs = { metadata: { annotations: { [annotations.pushId]: 'theirs', [annotations.changedBy]: 'bob' } } };
  const blobs = '/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy/v2/.*/blobs/.*';

  beforeEach(async () => void (await scene.ok('push', 'shop', '-p', 'app')));

  it('while it uploads ends at once without a package, and a restage builds the later one', async () => {
    const { server } = scene.cluster;
    // The registry does not answer the earlier push.
    server.on(`HEAD ${blobs}`, () => undefined);
    const before = server.callsOf(`HEAD ${blobs}`).length;
    scene.source('b');
    const running = run('push', 'shop', '-p', 'app');
    await expect.poll(() => server.callsOf(`HEAD ${blobs}`).length).toBeGreaterThan(before);
    server.on(`HEAD ${blobs}`, (call) => call.text(''));
    scene.source('c');
    await scene.ok('push', 'shop', '-p', 'app');
    const later = scene.packageThatRuns();
    expect(await running).toMatchObject({ code: 1, stderr: expect.stringContaining('has taken over; this one ends') as string });
    expect(scene.packages()).toHaveLength(2);
    await scene.ok('restage', 'shop');
    expect(scene.packageThatRuns()).toBe(later);
  });

  it.each([
    ['source', ['-p', 'app'], ['-p', 'app', '--no-start']],
    ['an image', ['-o', 'registry.example.com/shop:1'], ['-o', 'registry.example.com/shop:2']],
  ])('while it creates the package of %s leaves none', async (_, first, again) => {
    await scene.ok('delete', 'shop', '-f');
    await scene.ok('push', 'shop', ...first);
    const before = scene.packages().map(nameOf);
    const { memory } = scene.cluster;
    const { intercept } = memory;
    // Of two packages of the same moment the one with the lower name counts as the older one.
    const marks = { [labels.appGuid]: nameOf(scene.app()) };
    const later = { name: '0-later', namespace: ns, labels: marks, annotations: { [annotations.pushId]: 'theirs' } };
    const [{ spec } = {}] = scene.packages();
    // The later push takes the app over, and has made its package when this one arrives.
    memory.intercept = async (verb, type, name) => {
      if (verb === 'create' && type.plural === kinds.package.plural && name !== '0-later') {
        await memory.mergePatch(kinds.app, ns, nameOf(scene.app()), theirs);
        await scene.cluster.add(kinds.package, { metadata: later, spec: { type: 'bits', ...spec, appRef: { name: nameOf(scene.app()) } } });
      }
      await intercept(verb, type, name);
    };
    scene.source('b');
    expect(await run('push', 'shop', ...again)).toMatchObject({ code: 1, stderr: expect.stringContaining('has taken over') as string });
    expect(scene.packages().map(nameOf)).toEqual([...before, '0-later']);
  });

  it('while it creates its package leaves it to one that has none, and may build it', async () => {
    const { memory } = scene.cluster;
    const { intercept } = memory;
    memory.intercept = async (verb, type, name) => {
      if (verb === 'create' && type.plural === kinds.package.plural) await memory.mergePatch(kinds.app, ns, nameOf(scene.app()), theirs);
      await intercept(verb, type, name);
    };
    scene.source('b');
    expect(await run('push', 'shop', '-p', 'app')).toMatchObject({ code: 1 });
    expect(scene.packages()).toHaveLength(2);
  });
});

it('rename says that the app was renamed to another name meanwhile', async () => {
  await scene.ok('create-app', 'shop');
  beforeNextPatch(kinds.app, () => {
    const rename = (): Promise<unknown> =>
      scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { spec: { displayName: 'theirs' } });
    setTimeout(() => void rename(), 50);
    return Promise.resolve();
  });
  expect(await run('rename', 'shop', 'mine')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("The app was renamed again meanwhile: its name is 'theirs'.\n\nTIP:\n   kf app theirs\n") as string,
  });
  expect(scene.app().spec.displayName).toBe('theirs');
});

describe('set-droplet during a change', () => {
  let first = '';
  let second = '';

  beforeEach(async () => {
    await scene.ok('push', 'shop', '-p', 'app');
    scene.source('b');
    await scene.ok('push', 'shop', '-p', 'app');
    [first = '', second = ''] = scene.builds().map(nameOf);
  });

  it('waits until all processes have taken up the change, which keeps its droplet', async () => {
    const { memory, server } = scene.cluster;
    memory.intercept = () => undefined;
    await change();
    const running = run('set-droplet', 'shop', first);
    const watched = (): number => server.callsOf('GET .*/cfapps').filter(({ query }) => query.has('watch')).length;
    const before = watched();
    await expect.poll(watched).toBeGreaterThan(before);
    const of = (process: string, state: string): object => ({ process, hash: 'x', state, instances: 1, ready: 1 });
    // First the versions of before, as they were; then a process is hindered as long as it has only those.
    for (const [reason, generations] of [
      ['Reconciling', [of('web', 'Current')]],
      ['BindingNotReady', [of('web', 'Old')]],
      ['BindingNotReady', [of('worker', 'Current'), of('web', 'Old')]],
    ] as const) {
      scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { id: 'theirs', phase: 'Pending', reason, generations } });
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(droplet()).toBe(second);
    }
    scene.setStatus(kinds.app, nameOf(scene.app()), { deployment: { id: 'theirs', phase: 'Starting', reason: null } });
    expect(await running).toMatchObject({ code: 0, stdout: expect.stringContaining('\nOK\n') as string });
    expect([droplet(), scene.app().metadata.annotations?.[annotations.held]]).toEqual([first, changeOf(scene.app())]);
  });

  it('does not wait for one that waits for a droplet, nor for one that it replaces', async () => {
    scene.cluster.memory.intercept = () => undefined;
    await change();
    const guid = nameOf(scene.app());
    scene.setStatus(kinds.app, guid, { deployment: { id: 'theirs', phase: 'Pending', reason: reasons.cannotResolveDroplet } });
    await scene.ok('set-droplet', 'shop', first);
    expect(droplet()).toBe(first);
    scene.setStatus(kinds.app, guid, { deployment: { id: 'before', phase: 'Serving' } });
    const body = { relationships: { app: { data: { guid } } }, droplet: { guid: second } };
    await scene.ok('curl', '/v3/deployments', '-X', 'POST', '-d', JSON.stringify(body), '--fail');
    expect(droplet()).toBe(second);
  });

  it('that began after it had read the app is refused, and changes nothing', async () => {
    beforeNextPatch(kinds.app, async () => {
      scene.cluster.memory.intercept = () => undefined;
      await change();
    });
    expect(await run('set-droplet', 'shop', first)).toMatchObject({
      code: 1,
      stderr:
        "App 'shop' is being changed, and the controller has not taken this up yet: the droplet would become part of it.\n\nTIP:\n   kf why shop\n   kf stop shop\n",
    });
    expect(droplet()).toBe(second);
  });
});
