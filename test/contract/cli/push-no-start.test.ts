// The state that `push --no-start` leaves, what start, restart and restage do with it, and which package is the last pushed one.

import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import { bundleForTests } from '../../support/cli.ts';
import { builtWeb as web, nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', 'shop', '-p', 'app'];

/** Each of the package's names, in the order of the pushes. */
async function pushed(...contents: string[]): Promise<string[]> {
  const names: string[] = [];
  for (const content of contents) {
    scene.source(content);
    await scene.ok(...push);
    names.push(scene.packageThatRuns());
  }
  return names;
}

describe('push --no-start', () => {
  it('uploads the package and makes everything except a build', async () => {
    const run = await scene.ok(...push, '--no-start', '-i', '2');
    expect(run.stdout).not.toContain('Staging');
    expect(run.stdout).toMatch(/^requested state: +stopped$/m);
    expect([scene.packages().length, scene.builds().length]).toEqual([1, 0]);
    expect(scene.app().spec).toMatchObject({ desiredState: 'STOPPED' });
    expect(scene.app().spec.currentDropletRef).toBeUndefined();
    expect(scene.cluster.memory.all(kinds.route).map(({ spec }) => spec.host)).toEqual(['shop']);
    expect(scene.cluster.memory.all(kinds.process).map(({ spec }) => spec.desiredInstances)).toEqual([2]);
  });

  it('of a running app stops it, says so, and keeps its droplet', async () => {
    await scene.ok(...push, '-m', '32M');
    const before = scene.app().spec.currentDropletRef;
    const [process] = scene.cluster.memory.all(kinds.process);
    await scene.ok('set-env', 'shop', 'A', '1');
    const instance = { state: 'RUNNING', timestamp: '2026-08-07T10:16:20Z' };
    scene.setStatus(kinds.process, nameOf(process), { instancesStatus: { 0: instance }, actualInstances: 1 });
    scene.source('b');
    const run = await scene.ok(...push, '-m', '64M', '--no-start');
    expect(run.stdout).toMatch(
      /Uploading files\.\.\.\n[^]*Stopping Application\.\.\.\nApplication Stopped\n\nname: +shop\nrequested state: +stopped\n/,
    );
    expect(run.stdout).toMatch(/instances: +0\/1\n/);
    expect(run.stdout).not.toContain('#0');
    expect(scene.app().spec).toMatchObject({ desiredState: 'STOPPED', currentDropletRef: before });
    expect(scene.builds()).toHaveLength(1);
  });

  it('of an image makes a package of it, once', async () => {
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1', '--no-start');
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1', '--no-start');
    expect([scene.packages().length, scene.builds().length]).toEqual([1, 0]);
    scene.droplet = {};
    const run = await scene.ok('start', 'shop');
    expect(run.stdout).toContain('docker image:      registry.example.com/shop:1\n');
    expect(scene.packageThatRuns()).toBe(nameOf(scene.packages()[0]));
    // The tag may refer to another image now.
    await scene.ok('push', 'shop', '-o', 'registry.example.com/shop:1', '--no-start');
    await scene.ok('start', 'shop');
    expect([scene.builds().length, scene.packageThatRuns()]).toEqual([2, nameOf(scene.packages()[1])]);
  });

  it('is unchanged if it is repeated without a change', async () => {
    await scene.ok(...push, '--no-start');
    expect((await scene.ok(...push, '--no-start')).stdout).toContain('App shop is unchanged: nothing uploaded, built or restarted.\n');
    expect(scene.packages()).toHaveLength(1);
  });

  it('shows an app without a droplet in every view', async () => {
    await scene.ok(...push, '--no-start');
    for (const args of [['app', 'shop'], ['apps'], ['env', 'shop'], ['scale', 'shop'], ['logs', 'shop', '--recent']]) {
      await scene.ok(...args);
      if (args[0] !== 'logs') expect(JSON.parse((await scene.ok(...args, '--json')).stdout)).toMatchObject({ status: 0 });
    }
    await scene.ok('scale', 'shop', '-i', '2');
    await scene.ok('delete', 'shop', '-f');
  });
});

it('the hint after a failed push of an image names its flag, because without it the working directory would be pushed', async () => {
  scene.droplet = 'fails';
  const failed = await scene.cli.run(['push', 'img', '--docker-image', 'registry.example.com/a:1']);
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('   kf push img --docker-image registry.example.com/a:1\n')]);
});

describe('the hint after a build that failed', () => {
  it('of a push repeats the command line', async () => {
    scene.droplet = 'fails';
    const failed = await scene.cli.run([...push, '-m', '64M', '--no-route']);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('   kf push shop -p app -m 64M --no-route\n')]);
  });

  it.each(['start', 'restart', 'restage'])('of %s asks the user for the folder to push, which kf does not know', async (verb) => {
    await scene.ok(...push, '--no-start');
    scene.droplet = 'fails';
    const failed = await scene.cli.run([verb, 'shop']);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining("\n   In the folder of the app's source: kf push shop\n")]);
  });

  it('of a restage names the flag of an image', async () => {
    await scene.ok('push', 'img', '--docker-image', 'registry.example.com/a:1');
    scene.droplet = 'fails';
    const failed = await scene.cli.run(['restage', 'img']);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('\n   kf push img --docker-image IMAGE\n')]);
  });
});

describe('a package that was pushed with --no-start', () => {
  it.each(['start', 'restart', 'restage'])('is built by %s with the current variables', async (verb) => {
    await scene.ok(...push, '--no-start');
    await scene.ok('set-env', 'shop', 'A', 'first');
    const run = await scene.ok(verb, 'shop');
    expect(run.stdout).toMatch(
      /\.\.\.\n\nStaging app and tracing logs\.\.\.\n\nWaiting for app to start\.\.\.\n\nname: +shop\nrequested state: +started\n/,
    );
    expect(scene.builds().map((build) => scene.variablesOf(build))).toEqual([{ A: 'first' }]);
    expect(scene.app().spec).toMatchObject({ desiredState: 'STARTED', currentDropletRef: { name: nameOf(scene.builds()[0]) } });
    await scene.ok('restart', 'shop');
    expect(scene.builds()).toHaveLength(1);
  });

  it('replaces the previous droplet at the next start', async () => {
    await pushed('a');
    scene.source('b');
    await scene.ok(...push, '--no-start');
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(2);
    expect(scene.packageThatRuns()).toBe(nameOf(scene.packages()[1]));
  });

  it('is built by the next push of the same source, without a second upload', async () => {
    await scene.ok(...push, '--no-start');
    await scene.ok(...push);
    expect([scene.packages().length, scene.builds().length]).toEqual([1, 1]);
    const run = await scene.ok('restart', 'shop');
    expect([scene.builds().length, run.stdout]).toEqual([1, expect.not.stringContaining('Staging')]);
  });

  it('is built by the next start when the first one was killed in the middle', async () => {
    await scene.ok(...push, '--no-start');
    scene.droplet = undefined;
    const killed = await scene.cli.run(['start', 'shop'], { kill: { after: 'Waiting: a node', signal: 'SIGTERM' } });
    expect(killed.code).toBe(130);
    const [build] = scene.builds();
    expect(scene.app().spec).toMatchObject({ desiredState: 'STOPPED' });
    scene.droplet = web;
    setTimeout(() => scene.endBuild(nameOf(build), web), 300);
    await scene.ok('start', 'shop');
    expect([scene.builds().length, scene.app().spec.currentDropletRef?.name]).toEqual([1, nameOf(build)]);
  });

  it('is built again after a failed build, and the app stays stopped until then', async () => {
    await scene.ok(...push, '--no-start');
    scene.droplet = 'fails';
    const failed = await scene.cli.run(['start', 'shop']);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('Error staging application: It broke.')]);
    expect(scene.app().spec.desiredState).toBe('STOPPED');
    scene.droplet = web;
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(2);
  });

  it('is built again with --force, and after a service was bound', async () => {
    await pushed('a');
    await scene.ok(...push, '--no-start');
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(1);
    await scene.ok(...push, '--no-start', '--force');
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(2);
    await scene.ok(...push, '--no-start');
    const labels = { 'korifi.cloudfoundry.org/app-guid': nameOf(scene.app()) };
    const spec = { type: 'app' as const, appRef: { name: nameOf(scene.app()) }, service: { kind: 'CFServiceInstance', name: 'db' } };
    await scene.cluster.add(kinds.serviceBinding, { metadata: { name: 'binding', namespace: ns, labels }, spec } as never);
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(3);
  });

  it('is replaced by a later push, also if that build failed', async () => {
    await scene.ok(...push, '--no-start');
    scene.droplet = 'fails';
    scene.source('b');
    expect((await scene.cli.run(push)).code).toBe(1);
    scene.droplet = web;
    await scene.ok('start', 'shop');
    expect(scene.packageThatRuns()).toBe(nameOf(scene.packages()[1]));
    expect(scene.packages()).toHaveLength(2);
  });

  it('starts no web instance if the build finds none, and says so', async () => {
    await scene.ok(...push, '--no-start', '-m', '64M');
    scene.droplet = { ...web, processTypes: [{ type: 'worker', command: 'work' }] };
    const run = await scene.ok('start', 'shop');
    expect(run.stderr).toContain("The build found no process 'web', only: worker.");
    expect(scene.cluster.memory.all(kinds.process).map(({ spec }) => spec.desiredInstances)).toEqual([0]);
  });

  it('is ignored if a tenant named it and it is not a package of this app', async () => {
    await scene.ok(...push, '--no-start');
    const [own] = scene.packages();
    const other = { type: 'bits' as const, appRef: { name: 'other-app' }, source: { registry: { image: 'other' } } };
    await scene.cluster.add(kinds.package, {
      metadata: { name: 'others', namespace: ns, labels: own?.metadata.labels ?? {} },
      spec: other,
    });
    const mark = { [annotations.package]: 'others/others' };
    await scene.cluster.memory.mergePatch(kinds.app, ns, nameOf(scene.app()), { metadata: { annotations: mark } });
    await scene.ok('start', 'shop');
    expect(scene.packageThatRuns()).toBe(nameOf(own));
  });

  it('is not used if another push came in between', async () => {
    await scene.ok(...push, '--no-start');
    scene.droplet = undefined;
    const running = scene.cli.run(['start', 'shop']);
    await expect.poll(() => scene.builds().length, { timeout: 5000 }).toBe(1);
    scene.droplet = web;
    scene.source('b');
    await scene.ok(...push);
    const runs = scene.packageThatRuns();
    scene.endBuild(nameOf(scene.builds()[0]), web);
    const run = await running;
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("App 'shop' was pushed or built again by alice meanwhile")]);
    expect(scene.packageThatRuns()).toBe(runs);
  });
});

it('a restart of an app without a waiting package reads neither packages nor builds, only the droplet', async () => {
  await pushed('a');
  scene.cluster.server.calls.length = 0;
  await scene.ok('restart', 'shop');
  expect(
    scene.cluster.server.callsOf('.*/(cfpackages|cfbuilds|buildworkloads)(/.*)?').map(({ method, path: url }) => `${method} ${url}`),
  ).toEqual([`GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/${ns}/cfbuilds/${nameOf(scene.builds()[0])}`]);
});

describe('restage builds what was pushed last:', () => {
  const restaged = async (): Promise<string> => {
    await scene.ok('restage', 'shop');
    return scene.packageThatRuns();
  };

  it('the newest package', async () => {
    const [, b] = await pushed('a', 'b');
    expect(await restaged()).toBe(b);
  });

  it('an older package, if its source was pushed again and nothing had to be built', async () => {
    const [a, b, again] = await pushed('a', 'b', 'a');
    expect([a !== b, again]).toEqual([true, a]);
    expect([await restaged(), await restaged()]).toEqual([a, a]);
    const [c] = await pushed('c');
    expect(await restaged()).toBe(c);
  });

  it('the running one, if it was pushed again after one whose build failed', async () => {
    const [a] = await pushed('a');
    scene.droplet = 'fails';
    scene.source('b');
    expect((await scene.cli.run(push)).code).toBe(1);
    scene.droplet = web;
    scene.source('a');
    expect((await scene.ok(...push)).stdout).toContain('unchanged');
    expect(await restaged()).toBe(a);
  });

  it('an image that was pushed again and that runs', async () => {
    const image = (version: number): string[] => ['push', 'shop', '-o', `registry.example.com/shop:${version}`];
    scene.droplet = { registry: { image: 'registry.example.com/shop@sha256:1' } };
    await scene.ok(...image(1));
    const one = scene.packageThatRuns();
    scene.droplet = 'fails';
    expect((await scene.cli.run(image(2))).code).toBe(1);
    scene.droplet = { registry: { image: 'registry.example.com/shop@sha256:1' } };
    for (let time = 1; time <= 2; time += 1) expect((await scene.ok(...image(1))).stdout).toContain('unchanged');
    expect(await restaged()).toBe(one);
    await scene.ok(...image(3), '--no-start');
    await scene.ok(...image(1));
    expect((await scene.ok(...image(1))).stdout).toContain('unchanged');
    expect(await restaged()).toBe(one);
  });

  it('one whose build failed, after the missing setting was added', async () => {
    const [a, b, again] = await pushed('a', 'b', 'a');
    expect([b === a, again]).toEqual([false, a]);
    scene.droplet = 'fails';
    scene.source('c');
    expect((await scene.cli.run(push)).code).toBe(1);
    scene.droplet = web;
    expect([a, b]).not.toContain(await restaged());
  });
});

it('start builds the last pushed package also if its first build failed', async () => {
  scene.droplet = 'fails';
  expect((await scene.cli.run(push)).code).toBe(1);
  scene.droplet = web;
  await scene.ok('set-env', 'shop', 'A', 'needed');
  await scene.ok('start', 'shop');
  expect(scene.builds().map((build) => scene.variablesOf(build))).toEqual([{}, { A: 'needed' }]);
});

it.each(['start', 'restart', 'restage'])(
  '%s makes the Secret of the variables that a first push with a failed build did not write',
  async (verb) => {
    scene.droplet = 'fails';
    expect((await scene.cli.run(push)).code).toBe(1);
    const { envSecretName = '' } = scene.app().spec;
    expect(scene.cluster.memory.peek(secretType, ns, envSecretName)).toBeUndefined();
    scene.droplet = web;
    const { stderr } = await scene.ok(verb, 'shop');
    expect(scene.cluster.memory.peek(secretType, ns, envSecretName)).toBeDefined();
    expect(stderr).not.toContain('was gone');
  },
);

it('start does not make a Secret of variables again that is lost', async () => {
  await scene.ok(...push, '--no-start');
  const { envSecretName = '' } = scene.app().spec;
  await scene.cluster.memory.delete(secretType, ns, envSecretName);
  await scene.ok('start', 'shop');
  expect(scene.cluster.memory.peek(secretType, ns, envSecretName)).toBeUndefined();
});

it('start uses the Secret of variables that another command makes at the same moment', async () => {
  scene.droplet = 'fails';
  expect((await scene.cli.run(push)).code).toBe(1);
  const { envSecretName = '' } = scene.app().spec;
  scene.droplet = web;
  const { memory } = scene.cluster;
  const reconcile = memory.intercept;
  let made = 0;
  memory.intercept = async (verb, type, name) => {
    const isFirst = verb === 'create' && type.plural === secretType.plural && name === envSecretName && ++made === 1;
    if (isFirst) await scene.cluster.add(secretType, { metadata: { name, namespace: ns }, data: {} });
    return reconcile(verb, type, name);
  };
  await scene.ok('start', 'shop');
  expect(made).toBe(2);
});
