// `apply-manifest`: the settings of a manifest, without a package, a build, a start or a restart.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { sha224 } from '../../../src/lib/api/names.ts';
import type { KubeObject } from '../../../src/lib/api/object.ts';
import type { CFProcess } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, type CliRun } from '../../support/cli.ts';
import { ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
const where = 'in org example-org / space example-space as alice';
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const apply = ['apply-manifest', '-f', 'manifest.yml'];
const run = (...argv: string[]): Promise<CliRun> => scene.cli.run(argv);
const all = (kind: 'process' | 'route' | 'serviceBinding'): KubeObject[] => scene.cluster.memory.all<KubeObject>(kinds[kind]);
const hosts = (): (string | undefined)[] => scene.cluster.memory.all(kinds.route).map(({ spec }) => spec.host);
const processOf = (type: string): CFProcess | undefined =>
  scene.cluster.memory.all(kinds.process).find(({ spec }) => spec.processType === type);
const appMarks = (): Record<string, string> => scene.app().metadata.annotations ?? {};

function manifest(text: string, name = 'manifest.yml'): void {
  writeFileSync(path.join(scene.cli.home, name), text);
}

function variables(): Record<string, string> {
  const data = scene.cluster.memory.peek(secretType, ns, scene.app().spec.envSecretName ?? '')?.data ?? {};
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]));
}

async function addService(name: string): Promise<void> {
  await scene.cluster.add(secretType, { metadata: { name: `${name}-secret`, namespace: ns } });
  await scene.cluster.add(kinds.serviceInstance, {
    metadata: { name: `${name}-guid`, namespace: ns, labels: { [labels.displayName]: sha224(name) } },
    spec: { displayName: name, secretName: `${name}-secret`, type: 'user-provided' as const, planGuid: '' },
  });
}

describe('of a new app', () => {
  const whole = `applications:
- name: shop
  path: nowhere
  buildpacks: [kf/nodejs]
  env: { COLOUR: green }
  services: [db]
  routes: [{ route: store.apps.localhost/cart }]
  metadata: { labels: { tier: web }, annotations: { contact: me } }
  processes:
  - { type: web, memory: 64M, instances: 2, health-check-type: process }
  - { type: worker, memory: 32M, command: work }
`;

  it('makes it with all its settings, stopped, and without code', async () => {
    await addService('db');
    manifest(whole);
    const applied = await run(...apply);
    expect(applied.code).toBe(0);
    expect(applied.stdout).toMatch(
      new RegExp(
        `^Applying manifest manifest.yml ${where}\\.\\.\\.\n\nUpdating with these attributes\\.\\.\\.\n  ---\n  applications:\n\\+ - name: shop\n`,
      ),
    );
    expect(applied.stdout).not.toContain('path');
    expect(applied.stdout).toMatch(/\+ {3}buildpacks:\n[^]*\+ {5}COLOUR: green\n[^]*\+ {3}- type: worker\n[^]*\nOK\n\n$/);
    expect(scene.app().spec).toMatchObject({
      displayName: 'shop',
      desiredState: 'STOPPED',
      lifecycle: { type: 'buildpack', data: { buildpacks: ['kf/nodejs'] } },
    });
    expect(scene.app().metadata).toMatchObject({ labels: { tier: 'web' }, annotations: { contact: 'me', [annotations.appRev]: '0' } });
    expect(appMarks()).not.toHaveProperty(annotations.applying);
    expect(appMarks()).not.toHaveProperty(annotations.deployId);
    expect(appMarks()).not.toHaveProperty(annotations.unstaged);
    expect(variables()).toEqual({ COLOUR: 'green' });
    expect(processOf('web')?.spec).toMatchObject({ memoryMB: 64, desiredInstances: 2, healthCheck: { type: 'process' } });
    expect(processOf('worker')?.spec).toMatchObject({ memoryMB: 32, command: 'work' });
    expect(scene.cluster.memory.all(kinds.route).map(({ spec }) => [spec.host, spec.path])).toEqual([['store', '/cart']]);
    expect(scene.cluster.memory.all(kinds.serviceBinding).map(({ spec }) => spec.service.name)).toEqual(['db-guid']);
    expect([scene.packages(), scene.builds()]).toEqual([[], []]);
  });

  it('changes nothing a second time, and a push uses the settings', async () => {
    await addService('db');
    manifest(whole);
    const first = JSON.parse((await run(...apply, '--json')).stdout) as object;
    const guid = scene.app().metadata.name;
    expect(first).toMatchObject({
      result: { manifest: path.join(scene.cli.home, 'manifest.yml'), apps: [{ name: 'shop', guid, created: true, changed: true }] },
    });
    const before = [scene.app().spec, all('process'), all('route'), all('serviceBinding')];
    expect(JSON.parse((await run(...apply, '--json')).stdout)).toMatchObject({
      result: { apps: [{ guid, created: false, changed: false }] },
    });
    expect([scene.app().spec, all('process'), all('route'), all('serviceBinding')]).toEqual(before);
    await scene.ok('push', 'shop', '-p', 'app', '--no-manifest');
    expect([scene.app().spec.desiredState, processOf('web')?.spec.memoryMB, hosts()]).toEqual(['STARTED', 64, ['store']]);
    expect(scene.variablesOf(scene.builds()[0])).toMatchObject({ COLOUR: 'green' });
  });

  it.each([
    ['', []],
    ['default-route: true', ['shop']],
    ['no-route: true', []],
  ])('with %j has these routes: %j', async (line, wanted) => {
    manifest(`applications:\n- name: shop\n  memory: 64M\n  ${line}\n`);
    await scene.ok(...apply);
    expect(hosts()).toEqual(wanted);
  });

  it('with random-route gets one route, once', async () => {
    manifest('applications: [{name: shop, random-route: true}]');
    await scene.ok(...apply);
    await scene.ok(...apply);
    expect(hosts()).toEqual([expect.stringMatching(/^shop-\w+-\w+-\w\w$/)]);
  });

  it('for images needs no image, and stays for images', async () => {
    manifest('applications: [{name: shop, docker: {image: registry.example.com/shop:1}}]');
    await scene.ok(...apply);
    expect([scene.app().spec.lifecycle.type, scene.packages()]).toEqual(['docker', []]);
    manifest('applications: [{name: shop, memory: 64M}]');
    await scene.ok(...apply);
    expect([scene.app().spec.lifecycle.type, processOf('web')?.spec.memoryMB]).toEqual(['docker', 64]);
    manifest('applications: [{name: shop, buildpacks: [kf/nodejs]}]');
    const refused = await run(...apply);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('its kind of lifecycle cannot be changed')]);
  });
});

describe('of an app that runs', () => {
  beforeEach(async () => void (await scene.ok('push', 'shop', '-p', 'app', '-m', '32M')));

  it('writes the settings for the next start, and restarts nothing', async () => {
    await addService('db');
    const before = { spec: scene.app().spec, rev: appMarks()[annotations.appRev], deployId: appMarks()[annotations.deployId] };
    const builds = scene.builds().length;
    manifest(
      'applications: [{name: shop, memory: 64M, instances: 3, env: {A: "1"}, services: [db], routes: [{route: other.apps.localhost}]}]',
    );
    const applied = await scene.ok(...apply);
    expect(applied.stdout).toContain('\n  - name: shop\n');
    expect(applied.stdout).toContain('\n-   memory: 32M\n+   memory: 64M\n');
    expect({ spec: scene.app().spec, rev: appMarks()[annotations.appRev], deployId: appMarks()[annotations.deployId] }).toEqual(before);
    expect(appMarks()).not.toHaveProperty(annotations.applying);
    expect(processOf('web')).toMatchObject({
      metadata: { annotations: { [annotations.held]: `${before.rev ?? ''}/${before.deployId ?? ''}` } },
      spec: { memoryMB: 64, desiredInstances: 3 },
    });
    expect([variables(), hosts(), all('serviceBinding').length]).toEqual([{ A: '1' }, ['shop', 'other'], 1]);
    expect([scene.builds().length, scene.packages().length]).toEqual([builds, 1]);
    expect(applied.stderr).toContain('Waiting for');
  });

  it('adds a process that waits for the next start, as cf does', async () => {
    manifest('applications: [{name: shop, processes: [{type: worker, command: work, instances: 2}]}]');
    await scene.ok(...apply);
    const { [annotations.appRev]: rev = '', [annotations.deployId]: deployId = '' } = appMarks();
    expect(processOf('worker')).toMatchObject({
      metadata: { annotations: { [annotations.held]: `${rev}/${deployId}` } },
      spec: { command: 'work', desiredInstances: 2 },
    });
  });

  it('ends only when the gateway has loaded its new route', async () => {
    const reconcile = scene.cluster.memory.intercept;
    scene.cluster.memory.intercept = (verb, type, name) => {
      if (type.plural !== kinds.route.plural) return reconcile?.(verb, type, name);
      const at = { lastTransitionTime: '', observedGeneration: 1, message: 'It has no listener.' };
      const claimed = { ...at, type: 'Claimed', status: 'True' as const, reason: 'Claimed' };
      const refused = { ...at, type: 'Programmed', status: 'False' as const, reason: 'NotAccepted' };
      if (verb === 'create') setTimeout(() => scene.setStatus(kinds.route, name, { conditions: [claimed, refused] }), 5);
    };
    manifest('applications: [{name: shop, routes: [{route: other.apps.localhost}]}]');
    const applied = await run(...apply);
    expect([applied.code, applied.stderr]).toEqual([
      1,
      expect.stringContaining('The gateway does not take the route other.apps.localhost: It has no listener.'),
    ]);
    expect(appMarks()).not.toHaveProperty(annotations.applying);
  });

  it('leaves a process alone whose settings do not differ', async () => {
    const held = processOf('web');
    manifest('applications: [{name: shop, memory: 32M, env: {A: "1"}}]');
    await scene.ok(...apply);
    expect(processOf('web')).toEqual(held);
    expect(variables()).toEqual({ A: '1' });
  });

  it('that is stopped needs no hold, and gets other buildpacks', async () => {
    await scene.ok('stop', 'shop');
    manifest('applications: [{name: shop, memory: 64M, buildpacks: [kf/nodejs]}]');
    await scene.ok(...apply);
    expect(processOf('web')?.metadata.annotations).not.toHaveProperty(annotations.held);
    expect(scene.app().spec).toMatchObject({ desiredState: 'STOPPED', lifecycle: { data: { buildpacks: ['kf/nodejs'] } } });
    manifest('applications: [{name: shop, buildpacks: [default]}]');
    await scene.ok(...apply);
    expect(scene.app().spec.lifecycle.data.buildpacks).toBeUndefined();
  });

  it('is refused for images, also if nothing else differs', async () => {
    manifest('applications: [{name: shop, docker: {image: registry.example.com/shop:1}}]');
    const refused = await run(...apply);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('its kind of lifecycle cannot be changed')]);
  });

  it('no-route unmaps its routes', async () => {
    manifest('applications: [{name: shop, no-route: true}]');
    await scene.ok(...apply);
    expect(scene.cluster.memory.all(kinds.route).map(({ spec }) => spec.destinations)).toEqual([[]]);
  });

  it('releases the lock when a write fails', async () => {
    scene.cluster.server.on('PATCH .*/cfprocesses/.*', (call) => call.fail(403, 'Forbidden', 'User "alice" cannot do this'));
    manifest('applications: [{name: shop, memory: 64M}]');
    const refused = JSON.parse((await run(...apply, '--json')).stdout) as object;
    expect(refused).toMatchObject({ status: 1, error: { code: 'forbidden' } });
    expect(appMarks()).not.toHaveProperty(annotations.applying);
    expect(processOf('web')?.spec.memoryMB).toBe(32);
  });
});

describe('of several apps', () => {
  const two = 'applications:\n- {name: shop, memory: ((size))}\n- {name: blog, memory: 32M}\n';

  it('applies each, in one list of attributes', async () => {
    manifest(two);
    manifest('size: 48M\n', 'vars.yml');
    const applied = await scene.ok(...apply, '--vars-file', 'vars.yml');
    expect(applied.stdout.match(/applications:/g)).toHaveLength(1);
    expect(applied.stdout).toContain('+ - name: shop\n+   memory: 48M\n+ - name: blog\n+   memory: 32M\nOK\n');
    const sizes = scene.cluster.memory.all(kinds.process).map(({ spec }) => spec.memoryMB);
    expect([
      scene.cluster.memory
        .all(kinds.app)
        .map(({ spec }) => spec.displayName)
        .toSorted(),
      sizes.toSorted(),
    ]).toEqual([
      ['blog', 'shop'],
      [32, 48],
    ]);
    const again = JSON.parse((await run(...apply, '--var', 'size=64M', '--json')).stdout) as object;
    expect(again).toMatchObject({
      result: {
        apps: [
          { name: 'shop', changed: true },
          { name: 'blog', changed: false },
        ],
      },
    });
  });

  it('of which one cannot be applied changes none', async () => {
    manifest('applications:\n- {name: shop, services: [nothing]}\n- {name: blog, routes: [{route: blog.example.org}]}\n- {name: good}\n');
    const refused = await run(...apply);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("For application 'shop': Service instance 'nothing' not found");
    expect(refused.stderr).toContain("For application 'blog': No domains exist for route blog.example.org");
    expect(scene.cluster.memory.all(kinds.app)).toEqual([]);
  });
});

describe('the manifest', () => {
  it('is the default one of the folder, or that of the folder that -f names', async () => {
    const none = await run('apply-manifest');
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining(`Could not find 'manifest.yml' file in ${scene.cli.home}`)]);
    mkdirSync(path.join(scene.cli.home, 'deploy'));
    manifest('applications: [{name: shop}]', 'deploy/manifest.yml');
    const found = path.join(scene.cli.home, 'deploy/manifest.yml');
    expect((await scene.ok('apply-manifest', '-f', 'deploy')).stdout).toContain(`Applying manifest ${found} ${where}...`);
    manifest('applications: [{name: shop}]');
    const byDefault = path.join(scene.cli.home, 'manifest.yml');
    expect((await scene.ok('apply-manifest')).stdout).toContain(`Applying manifest ${byDefault} ${where}...`);
  });

  it('gives processes their sidecars, replaces those of the same name, and keeps others', async () => {
    const sidecar = (name: string, command: string, types: string) => `{name: ${name}, command: ${command}, process_types: [${types}]}`;
    manifest(`applications: [{name: shop, sidecars: [${sidecar('a', 'one', 'web, worker')}, ${sidecar('b', 'two', 'web')}]}]`);
    expect((await scene.ok(...apply)).stdout).toContain(
      '+   sidecars:\n+   - name: a\n+     process_types:\n+     - web\n+     - worker\n',
    );
    manifest(`applications: [{name: shop, sidecars: [${sidecar('a', 'other', 'web')}]}]`);
    expect((await scene.ok(...apply)).stdout).toContain('-     command: one\n+     command: other\n');
    const found = scene.cluster.memory.all(kinds.process).map(({ spec }) => [spec.processType, spec.sidecars]);
    expect(Object.fromEntries(found)).toEqual({
      web: [
        { name: 'b', command: 'two' },
        { name: 'a', command: 'other' },
      ],
      // The manifest gives `a` to web only; in cf that takes it from worker.
      worker: undefined,
    });
  });

  it('--redact-env hides the values of variables', async () => {
    manifest('applications: [{name: shop, env: {SECRET: hidden}}]');
    expect((await scene.ok(...apply, '--redact-env')).stdout).toContain('SECRET: <redacted>');
    expect(variables()).toEqual({ SECRET: 'hidden' });
  });

  it.each([
    ['applications:\n- name: shop\n  memory: lots\n', [], /^manifest\.yml:3:11: /],
    ['applications:\n- name: shop\n  sidecars: [{name: a, command: b}]\n', [], /^manifest\.yml:3:14: A sidecar needs 'process_types'/],
    [
      'applications:\n- name: shop\n  memory: 64M\n  sidecars: [{name: a, command: b, process_types: [web], memory: 64M}]\n',
      [],
      /The sidecars of process 'web' take 64M of its 64M of memory, which leaves nothing for the app\./,
    ],
    ['applications:\n- memory: 64M\n', [], /^manifest\.yml:2:3: Found an application with no name specified\./],
    ['applications:\n- name: shop\n- memory: 64M\n', [], /^manifest\.yml:3:3: Found an application with no name specified\./],
    ['applications: []\n', [], /Manifest must have at least one application\./],
    ['applications:\n- name: ((name))\n', [], /^Expected to find variables: name\n/],
    ['applications: [{name: shop}]\n', ['-f', 'nowhere.yml'], /The specified path 'nowhere.yml' does not exist\./],
    ['applications: [{name: shop}]\n', ['--vars-file', 'nowhere.yml'], /The specified path 'nowhere.yml' does not exist\./],
    ['applications: [{name: shop}]\n', ['--var', 'x'], /Incorrect Usage/],
    ['applications: [{name: shop}]\n', ['shop'], /Incorrect Usage: unexpected argument/],
    ['applications: [{name: shop, buildpacks: [ruby]}]\n', [], /The builder has no buildpack 'ruby'/],
  ])('%j with %j is refused before anything is written', async (text, flags, why) => {
    manifest(text);
    const refused = await run('apply-manifest', ...(flags.includes('-f') ? [] : ['-f', 'manifest.yml']), ...flags);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(why)]);
    expect(scene.cluster.server.callsOf('(POST|PATCH) .*cf(apps|processes|routes).*')).toEqual([]);
  });

  it('warns of what has no effect, and a missing target or right is named', async () => {
    manifest('applications:\n- name: shop\n  colour: green\n');
    const warned = await scene.ok(...apply);
    expect(warned.stderr).toContain('manifest.yml:3:3');
    const untargeted = await scene.cli.run(apply, { env: { KF_ORG: '', KF_SPACE: '' } });
    expect([untargeted.code, untargeted.stderr]).toEqual([1, expect.stringContaining('No org targeted')]);
    scene.cluster.server.on('POST .*/selfsubjectaccessreviews', (call) => call.json({ status: { allowed: false } }, 201));
    manifest('applications: [{name: other}]');
    expect(JSON.parse((await run(...apply, '--json')).stdout)).toMatchObject({ error: { code: 'forbidden' } });
  });
});
