// Settings of processes and the last patch of a push, which starts them together with the source.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { changeOf } from '../../../src/lib/api/held.ts';
import type { CFProcess } from '../../../src/lib/api/types.generated.ts';
import { KubeError } from '../../../src/lib/kube/errors.ts';
import { bundleForTests } from '../../support/cli.ts';
import { ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app'];
const processOf = (type: string): CFProcess | undefined =>
  scene.cluster.memory.all(kinds.process).find(({ spec }) => spec.processType === type);
const heldOf = (type: string): string | undefined => processOf(type)?.metadata.annotations?.[annotations.held];
const marks = (): Record<string, string> => scene.app().metadata.annotations ?? {};

it('a command waits for the switch: the source of before never runs with it', async () => {
  await scene.ok(...push, '-c', 'serve first');
  expect(heldOf('web')).toBeUndefined();
  const { [annotations.appRev]: rev = '', [annotations.deployId]: before = '' } = marks();
  scene.source('b');
  await scene.ok(...push, '-c', 'serve second');
  expect([processOf('web')?.spec.command, heldOf('web')]).toEqual(['serve second', `${rev}/${before}`]);
  expect(marks()[annotations.deployId]).not.toBe(before);
});

it('settings that wait for a start are started by a push, although nothing else differs', async () => {
  await scene.ok(...push, '-m', '32M');
  await scene.ok('set-health-check', 'shop', 'http', '--endpoint', '/health');
  const { [annotations.deployId]: before } = marks();
  const pushed = await scene.ok(...push);
  expect(pushed.stdout).not.toContain('is unchanged');
  expect(marks()[annotations.deployId]).not.toBe(before);
  expect((await scene.ok(...push)).stdout).toContain('is unchanged');
});

it.each([[[...push, '-m', '32M']], [['set-env', 'shop', 'SIZE', '1']]])(
  'a Secret of variables that is gone is made again with one warning: %j',
  async (command) => {
    await scene.ok(...push);
    expect((await scene.ok('set-env', 'shop', 'COLOUR', 'red')).stderr).not.toContain('was gone');
    await scene.cluster.memory.delete(secretType, ns, scene.app().spec.envSecretName ?? '');
    const { stderr } = await scene.ok(...command);
    expect(stderr.match(/variables of app 'shop' was gone, .* 'kf rollback shop' brings back/g)).toHaveLength(1);
    expect((await scene.ok(...command)).stderr).not.toContain('was gone');
  },
);

/** The route of the next push is refused, after `meanwhile`. */
async function withRefusedRoute(meanwhile: () => Promise<unknown>, command: string[]): Promise<void> {
  const { memory } = scene.cluster;
  const { intercept } = memory;
  memory.intercept = async (verb, type, name) => {
    if (verb !== 'create' || type.plural !== kinds.route.plural) return intercept(verb, type, name);
    memory.intercept = intercept;
    await meanwhile();
    throw new KubeError('failed', `refused: '${name}'`, { status: 422, reason: 'Invalid' });
  };
  expect(await scene.cli.run(command)).toMatchObject({ code: 1, stderr: expect.stringContaining('refused: ') });
  memory.intercept = intercept;
}

function manifest(attributes: object): string[] {
  writeFileSync(path.join(scene.cli.home, 'wanted.yml'), JSON.stringify({ applications: [{ name: 'shop', path: 'app', ...attributes }] }));
  return ['push', '-f', 'wanted.yml'];
}

const routes = [{ route: 'other.apps.localhost' }];

it('a restart during a push that fails does not hide what the push has written', async () => {
  await scene.ok(...push);
  const wanted = manifest({ env: { COLOUR: 'red' }, routes });
  const restart = () => scene.cluster.memory.mergePatch(kinds.app, ns, scene.app().metadata.name ?? '', { metadata: { annotations: { [annotations.deployId]: 'restart' } } }); // prettier-ignore
  await withRefusedRoute(restart, wanted);
  const { [annotations.appRev]: rev } = marks();
  await scene.ok(...wanted);
  expect(marks()).toMatchObject({ [annotations.appRev]: String(Number(rev) + 1) });
});

it('a push that failed, and had nothing to write that only a restart gives to instances, makes the next one restart nothing', async () => {
  await scene.ok(...push);
  const { [annotations.appRev]: rev } = marks();
  await withRefusedRoute(() => Promise.resolve(), manifest({ routes }));
  await scene.ok(...push);
  expect(marks()).toMatchObject({ [annotations.appRev]: rev });
  expect(marks()).not.toHaveProperty(annotations.unapplied);
});

it.each([[[]], [[['apply-manifest', '-f', 'labels.yml']]]])(
  'what a failed push has written is in the instances after the next push: %j in between',
  async (between) => {
    const { memory } = scene.cluster;
    const { intercept } = memory;
    writeFileSync(path.join(scene.cli.home, 'labels.yml'), 'applications: [{name: shop, metadata: {labels: {team: blue}}}]');
    const wanted = { name: 'shop', path: 'app', env: { COLOUR: 'red' }, routes: [{ route: 'other.apps.localhost' }] };
    writeFileSync(path.join(scene.cli.home, 'wanted.yml'), JSON.stringify({ applications: [wanted] }));
    await scene.ok(...push);
    const { [annotations.appRev]: rev } = marks();
    // The variables are written, and the route cannot be.
    memory.intercept = (verb, type, name) => {
      if (verb === 'create' && type.plural === kinds.route.plural)
        throw new KubeError('failed', `refused: '${name}'`, { status: 422, reason: 'Invalid' });
      return intercept(verb, type, name);
    };
    expect(await scene.cli.run(['push', '-f', 'wanted.yml'])).toMatchObject({ code: 1, stderr: expect.stringContaining('refused: ') });
    memory.intercept = intercept;
    for (const command of between) await scene.ok(...command);
    expect(marks()).toMatchObject({ [annotations.appRev]: rev });
    await scene.ok('push', '-f', 'wanted.yml');
    expect(marks()).toMatchObject({ [annotations.appRev]: String(Number(rev) + 1) });
    expect(marks()).not.toHaveProperty(annotations.unapplied);
    expect((await scene.ok('push', '-f', 'wanted.yml')).stdout).toContain('is unchanged');
  },
);

const image = ['push', 'shop', '-o', 'registry.example.com/shop:1'];
const droplet = { registry: { image: 'registry.example.com/shop@sha256:1' } };

it.each([
  ['set-env', push, [['set-env', 'shop', 'COLOUR', 'blue']]],
  ['set-env', image, [['set-env', 'shop', 'COLOUR', 'blue']]],
  ['unset-env', image, [['unset-env', 'shop', 'SIZE']]],
  ['bind-service', image, [['bind-service', 'shop', 'other']]],
  ['unbind-service', image, [['unbind-service', 'shop', 'store']]],
  ['delete-service', image, [['delete-service', 'store', '-f']]],
  ['update-user-provided-service', image, [['update-user-provided-service', 'store', '-t', 'sql']]],
  [
    'set-env and scale',
    [...image, '-k', '1G'],
    [
      ['set-env', 'shop', 'COLOUR', 'blue'],
      ['scale', 'shop', '-m', '512M', '-f'],
    ],
  ],
  ['apply-manifest', image, [['apply-manifest', '-f', 'env.yml']]],
] as const)('a push after %s starts the app again: %j', async (_, command, between) => {
  if (command !== push) scene.droplet = droplet;
  writeFileSync(path.join(scene.cli.home, 'env.yml'), 'applications: [{name: shop, env: {COLOUR: blue}}]');
  for (const name of ['store', 'other']) await scene.ok('create-user-provided-service', name, '-p', '{"a":"b"}');
  await scene.ok(...command);
  await scene.ok('set-env', 'shop', 'SIZE', '1');
  if (command !== push) await scene.ok('bind-service', 'shop', 'store');
  await scene.ok('restart', 'shop');
  for (const words of between) await scene.ok(...words);
  const { [annotations.appRev]: rev } = marks();
  await scene.ok(...command);
  expect(marks()).toMatchObject({ [annotations.appRev]: String(Number(rev) + 1) });
  expect(marks()).not.toHaveProperty(annotations.unapplied);
  expect((await scene.ok(...command)).stdout).toContain('is unchanged');
});

it('variables that are set to what they are, or set before a restart, leave the next push unchanged', async () => {
  scene.droplet = droplet;
  await scene.ok(...image);
  await scene.ok('set-env', 'shop', 'SIZE', '1');
  await scene.ok('restart', 'shop');
  await scene.ok('set-env', 'shop', 'SIZE', '1');
  await scene.ok('create-user-provided-service', 'store', '-p', '{"a":"b"}');
  await scene.ok('bind-service', 'shop', 'store');
  await scene.ok('restart', 'shop');
  await scene.ok('update-user-provided-service', 'store', '-p', '{"a":"b"}');
  expect((await scene.ok(...image)).stdout).toContain('is unchanged');
});

it('a push beside set-env starts the app with the variable', async () => {
  scene.droplet = droplet;
  await scene.ok(...image);
  const { [annotations.appRev]: rev } = marks();
  const { memory } = scene.cluster;
  const { intercept } = memory;
  const setEnv = { metadata: { annotations: { [annotations.unapplied]: '' } } };
  memory.intercept = async (verb, type, name) => {
    await intercept(verb, type, name);
    if (verb !== 'create' || type.plural !== kinds.route.plural) return;
    memory.intercept = intercept;
    setEnv.metadata.annotations[annotations.unapplied] = changeOf(scene.app());
    await memory.mergePatch(kinds.app, ns, scene.app().metadata.name ?? '', setEnv);
  };
  await scene.ok(...manifest({ path: undefined, docker: { image: 'registry.example.com/shop:1' }, routes }));
  expect(marks()).toMatchObject({ [annotations.appRev]: String(Number(rev) + 1) });
  expect(marks()).not.toHaveProperty(annotations.unapplied);
});

it('another droplet is started with the variables of now, also when its image is that of a version before', async () => {
  await scene.ok(...push);
  const { [annotations.appRev]: rev } = marks();
  scene.source('b');
  await scene.ok(...push);
  expect(marks()).toMatchObject({ [annotations.appRev]: String(Number(rev) + 1) });
});

describe('a sidecar that the manifest no longer gives to a process', () => {
  const proxy = (...types: string[]) => ({ name: 'proxy', process_types: types, command: './proxy' });
  const other = { name: 'other', process_types: ['worker'], command: './other' };
  const sidecarsOf = (type: string): string[] => (processOf(type)?.spec.sidecars ?? []).map(({ name }) => name);

  it('leaves it, and the manifest shows that', async () => {
    await scene.ok(...manifest({ sidecars: [proxy('web', 'worker')] }));
    expect([sidecarsOf('web'), sidecarsOf('worker')]).toEqual([['proxy'], ['proxy']]);
    const wanted = manifest({ sidecars: [proxy('web')] });
    expect((await scene.ok(...wanted)).stdout).toContain(
      ['    sidecars:', '    - name: proxy', '      process_types:', '-     - worker', '      - web', '      command: ./proxy'].join('\n'),
    );
    expect([sidecarsOf('web'), processOf('worker')?.spec]).toEqual([
      ['proxy'],
      expect.not.objectContaining({ sidecars: expect.anything() }),
    ]);
    expect((await scene.ok(...wanted)).stdout).toContain('is unchanged');
  });

  it('leaves its other sidecars, and a process that gets it instead has it', async () => {
    await scene.ok(...manifest({ sidecars: [proxy('worker'), other] }));
    const run = await scene.ok(...manifest({ sidecars: [proxy('web')], processes: [{ type: 'worker', memory: '32M' }] }));
    expect(run.stdout).toContain(['    - name: proxy', '      process_types:', '-     - worker', '+     - web'].join('\n'));
    expect([sidecarsOf('web'), sidecarsOf('worker')]).toEqual([['proxy'], ['other']]);
  });

  it('keeps it when the manifest names no sidecar of this name', async () => {
    await scene.ok(...manifest({ sidecars: [proxy('web', 'worker')] }));
    await scene.ok(...manifest({ sidecars: [other] }));
    expect([sidecarsOf('web'), sidecarsOf('worker')]).toEqual([['proxy'], ['proxy', 'other']]);
  });
});
