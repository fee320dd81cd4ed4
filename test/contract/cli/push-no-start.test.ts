// What `push --no-start` leaves, what start, restart and restage make of it, and which package is the one that was pushed last.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import type { CFApp, CFBuild, CFPackage, Droplet } from '../../../src/lib/api/types.generated.ts';
import { bundleForTests, Cli, type CliRun } from '../../support/cli.ts';
import { ServedCluster } from '../../support/served-cluster.ts';

const bundle = bundleForTests();
const ns = 'space-guid';
let cluster: ServedCluster;
let cli: Cli;
/** What the next build makes; undefined: it goes on for ever. */
let droplet: Partial<Droplet> | 'fails' | undefined;

const web = { buildpacks: [{ name: 'kf/nodejs', version: '1' }], processTypes: [{ type: 'web', command: 'node server.js' }] };
const condition = (type: string, status: 'True' | 'False', message = '') => ({
  type,
  status,
  reason: type,
  message,
  lastTransitionTime: '',
});

function setStatus<T extends KubeObject>(type: ResourceType<T>, name: string, status: object): void {
  void cluster.memory.mergePatch(type, ns, name, { status }, { subresource: 'status' }).catch(() => undefined);
}

/** Plays the controller: names and hosts are free, builds end as `droplet` says, and each change of an app comes to its end at once. */
function reconcile(verb: string, type: ResourceType, name: string): void {
  if (verb === 'create' && type.plural === kinds.app.plural)
    setTimeout(() => setStatus(kinds.app, name, { conditions: [condition('Claimed', 'True')] }), 5);
  if (type.plural === kinds.route.plural && (verb === 'create' || verb === 'patch')) setTimeout(() => keepRoute(name), 5);
  const uploaded = { conditions: [{ ...condition('Ready', 'True'), observedGeneration: 1 }] };
  if (verb === 'create' && type.plural === kinds.package.plural) setTimeout(() => setStatus(kinds.package, name, uploaded), 5);
  if (verb === 'create' && type.plural === kinds.build.plural) {
    const outcome = droplet;
    const services = cluster.memory.all(kinds.serviceBinding).map(({ metadata }) => ({ kind: 'Secret', name: metadata.name ?? '' }));
    const spec = { buildRef: { name }, builderName: 'kf-builder', services };
    setTimeout(() => void cluster.add(kinds.buildWorkload, { metadata: { name, namespace: ns }, spec }), 2);
    setTimeout(() => endBuild(name, outcome), 5);
  }
  if (verb !== 'patch' || type.plural !== kinds.app.plural) return;
  setTimeout(() => {
    const app = cluster.memory.peek(kinds.app, ns, name);
    const id = app?.metadata.annotations?.[annotations.deployId];
    if (app === undefined || id === undefined || id === app.status?.deployment?.id) return;
    setStatus(kinds.app, name, { deployment: { id, phase: app.spec.desiredState === 'STARTED' ? 'Serving' : 'Stopped' } });
  }, 5);
}

function keepRoute(name: string): void {
  const route = cluster.memory.peek(kinds.route, ns, name);
  if (route === undefined || findCondition(route, 'Claimed')?.observedGeneration === route.metadata.generation) return;
  const conditions = ['Claimed', 'Programmed', 'Ready'].map((type) => ({
    ...condition(type, 'True'),
    observedGeneration: route.metadata.generation,
  }));
  setStatus(kinds.route, name, { conditions, uri: 'shop.apps.localhost' });
}

function endBuild(name: string, outcome: typeof droplet): void {
  const staging = [condition('Staging', 'True', 'a node')];
  if (outcome === undefined) setStatus(kinds.build, name, { state: 'STAGING', conditions: staging });
  else if (outcome === 'fails')
    setStatus(kinds.build, name, { state: 'FAILED', conditions: [condition('Succeeded', 'False', 'It broke.')] });
  else
    setStatus(kinds.build, name, {
      state: 'STAGED',
      conditions: [condition('Succeeded', 'True')],
      droplet: { registry: { image: `image-of-${name}` }, ...outcome },
    });
}

const encoded = (text: string): string => Buffer.from(text).toString('base64');

beforeEach(async () => {
  droplet = web;
  cluster = await (await ServedCluster.start()).installed();
  const registry = '/api/v1/namespaces/kf-system/services/http:kf-registry:5000/proxy/v2/.*';
  cluster.server.on(`HEAD ${registry}`, (call) => call.text('', call.path.includes('/blobs/') ? 200 : 404));
  cluster.server.on(`PUT ${registry}`, (call) => call.text('', 201));
  await cluster.add(secretType, {
    metadata: { name: 'kf-registry-push', namespace: ns },
    data: { username: encoded('push.space-guid'), password: encoded('secret') },
  });
  const at = { creationTimestamp: '2026-08-07T10:16:20Z', updatedTimestamp: '2026-08-07T10:16:20Z' };
  await cluster.add(kinds.builderInfo, { metadata: { name: 'kf-builder', namespace: 'cf' }, spec: {} });
  const status = {
    stacks: [{ name: 'kf', description: '', ...at }],
    buildpacks: [{ name: 'kf/nodejs', stack: 'kf', version: '1.0.0', ...at }],
  };
  await cluster.memory.mergePatch(kinds.builderInfo, 'cf', 'kf-builder', { status }, { subresource: 'status' });
  cluster.memory.intercept = reconcile;
  cli = new Cli(bundle.program, { KUBECONFIG: cluster.server.kubeconfig(), KF_ORG: 'example-org', KF_SPACE: 'example-space' });
  mkdirSync(path.join(cli.home, 'app'));
  source('a');
});

afterEach(async () => {
  await cluster.stop();
  cli.remove();
});

afterAll(() => bundle.remove());

/** What is pushed next. */
function source(content: string): void {
  writeFileSync(path.join(cli.home, 'app', 'server.js'), content);
}

const push = ['push', 'shop', '-p', 'app'];

async function ok(...args: string[]): Promise<CliRun> {
  const run = await cli.run(args);
  if (run.code !== 0) throw new Error(`${args.join(' ')}: ${run.stdout}${run.stderr}`);
  return run;
}

const builds = (): CFBuild[] => cluster.memory.all(kinds.build);
const packages = (): CFPackage[] => cluster.memory.all(kinds.package);
const nameOf = (object: KubeObject | undefined): string => object?.metadata.name ?? '';

function app(): CFApp {
  const [found] = cluster.memory.all(kinds.app);
  if (found === undefined) throw new Error('there is no app');
  return found;
}

function variablesOf(build: CFBuild | undefined): Record<string, string> {
  const secret = cluster.memory.peek(secretType, ns, build?.metadata.annotations?.[annotations.envSecret] ?? '');
  const entries = Object.entries(secret?.data ?? {}).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** The package that the app's droplet was made of. */
const packageThatRuns = (): string =>
  builds().find((build) => nameOf(build) === app().spec.currentDropletRef?.name)?.spec.packageRef.name ?? '';

/** Each of the package's names, as they were pushed one after the other. */
async function pushed(...contents: string[]): Promise<string[]> {
  const names: string[] = [];
  for (const content of contents) {
    source(content);
    await ok(...push);
    names.push(packageThatRuns());
  }
  return names;
}

describe('push --no-start', () => {
  it('uploads the package and makes everything but a build', async () => {
    const run = await ok(...push, '--no-start', '-i', '2');
    expect(run.stdout).not.toContain('Staging');
    expect(run.stdout).toMatch(/^requested state: +stopped$/m);
    expect([packages().length, builds().length]).toEqual([1, 0]);
    expect(app().spec).toMatchObject({ desiredState: 'STOPPED' });
    expect(app().spec.currentDropletRef).toBeUndefined();
    expect(cluster.memory.all(kinds.route).map(({ spec }) => spec.host)).toEqual(['shop']);
    expect(cluster.memory.all(kinds.process).map(({ spec }) => spec.desiredInstances)).toEqual([2]);
  });

  it('of an app that runs stops it, says so, and leaves its droplet', async () => {
    await ok(...push, '-m', '32M');
    const before = app().spec.currentDropletRef;
    const [process] = cluster.memory.all(kinds.process);
    await ok('set-env', 'shop', 'A', '1');
    const instance = { state: 'RUNNING', timestamp: '2026-08-07T10:16:20Z' };
    setStatus(kinds.process, nameOf(process), { instancesStatus: { 0: instance }, actualInstances: 1 });
    source('b');
    const run = await ok(...push, '-m', '64M', '--no-start');
    expect(run.stdout).toMatch(
      /Uploading files\.\.\.\n[^]*Stopping Application\.\.\.\nApplication Stopped\n\nname: +shop\nrequested state: +stopped\n/,
    );
    expect(run.stdout).toMatch(/instances: +0\/1\n/);
    expect(run.stdout).not.toContain('#0');
    expect(app().spec).toMatchObject({ desiredState: 'STOPPED', currentDropletRef: before });
    expect(builds()).toHaveLength(1);
  });

  it('of an image makes a package of it, once', async () => {
    await ok('push', 'shop', '-o', 'registry.example.com/shop:1', '--no-start');
    await ok('push', 'shop', '-o', 'registry.example.com/shop:1', '--no-start');
    expect([packages().length, builds().length]).toEqual([1, 0]);
    droplet = {};
    const run = await ok('start', 'shop');
    expect(run.stdout).toContain('docker image:      registry.example.com/shop:1\n');
    expect(packageThatRuns()).toBe(nameOf(packages()[0]));
    // The tag may have moved since.
    await ok('push', 'shop', '-o', 'registry.example.com/shop:1', '--no-start');
    await ok('start', 'shop');
    expect([builds().length, packageThatRuns()]).toEqual([2, nameOf(packages()[1])]);
  });

  it('again without a change is unchanged', async () => {
    await ok(...push, '--no-start');
    expect((await ok(...push, '--no-start')).stdout).toContain('App shop is unchanged: nothing uploaded, built or restarted.\n');
    expect(packages()).toHaveLength(1);
  });

  it('shows an app without a droplet in every view', async () => {
    await ok(...push, '--no-start');
    for (const args of [['app', 'shop'], ['apps'], ['env', 'shop'], ['scale', 'shop'], ['logs', 'shop', '--recent']]) {
      await ok(...args);
      if (args[0] !== 'logs') expect(JSON.parse((await ok(...args, '--json')).stdout)).toMatchObject({ status: 0 });
    }
    await ok('scale', 'shop', '-i', '2');
    await ok('delete', 'shop', '-f');
  });
});

it('a push of an image that fails names the flag in its way out: without it the working directory would be pushed', async () => {
  droplet = 'fails';
  const failed = await cli.run(['push', 'img', '--docker-image', 'registry.example.com/a:1']);
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('   kf push img --docker-image IMAGE\n')]);
});

describe('what was pushed with --no-start', () => {
  it.each(['start', 'restart', 'restage'])('is built by %s with the variables that are set by then', async (verb) => {
    await ok(...push, '--no-start');
    await ok('set-env', 'shop', 'A', 'first');
    const run = await ok(verb, 'shop');
    expect(run.stdout).toMatch(
      /\.\.\.\n\nStaging app and tracing logs\.\.\.\n\nWaiting for app to start\.\.\.\n\nname: +shop\nrequested state: +started\n/,
    );
    expect(builds().map(variablesOf)).toEqual([{ A: 'first' }]);
    expect(app().spec).toMatchObject({ desiredState: 'STARTED', currentDropletRef: { name: nameOf(builds()[0]) } });
    await ok('restart', 'shop');
    expect(builds()).toHaveLength(1);
  });

  it('takes the place of the droplet of before at the next start', async () => {
    await pushed('a');
    source('b');
    await ok(...push, '--no-start');
    await ok('start', 'shop');
    expect(builds()).toHaveLength(2);
    expect(packageThatRuns()).toBe(nameOf(packages()[1]));
  });

  it('is built by the next push of the same source, without a second upload', async () => {
    await ok(...push, '--no-start');
    await ok(...push);
    expect([packages().length, builds().length]).toEqual([1, 1]);
    const run = await ok('restart', 'shop');
    expect([builds().length, run.stdout]).toEqual([1, expect.not.stringContaining('Staging')]);
  });

  it('is built by the next start when the first one was killed in the middle', async () => {
    await ok(...push, '--no-start');
    droplet = undefined;
    const killed = await cli.run(['start', 'shop'], { kill: { after: 'Waiting: a node', signal: 'SIGTERM' } });
    expect(killed.code).toBe(130);
    const [build] = builds();
    expect(app().spec).toMatchObject({ desiredState: 'STOPPED' });
    droplet = web;
    setTimeout(() => endBuild(nameOf(build), web), 300);
    await ok('start', 'shop');
    expect([builds().length, app().spec.currentDropletRef?.name]).toEqual([1, nameOf(build)]);
  });

  it('is built anew when the build failed, and the app stays stopped until then', async () => {
    await ok(...push, '--no-start');
    droplet = 'fails';
    const failed = await cli.run(['start', 'shop']);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('Error staging application: It broke.')]);
    expect(app().spec.desiredState).toBe('STOPPED');
    droplet = web;
    await ok('start', 'shop');
    expect(builds()).toHaveLength(2);
  });

  it('is built anew with --force, and when a service was bound since', async () => {
    await pushed('a');
    await ok(...push, '--no-start');
    await ok('start', 'shop');
    expect(builds()).toHaveLength(1);
    await ok(...push, '--no-start', '--force');
    await ok('start', 'shop');
    expect(builds()).toHaveLength(2);
    await ok(...push, '--no-start');
    const labels = { 'korifi.cloudfoundry.org/app-guid': nameOf(app()) };
    const spec = { type: 'app' as const, appRef: { name: nameOf(app()) }, service: { kind: 'CFServiceInstance', name: 'db' } };
    await cluster.add(kinds.serviceBinding, { metadata: { name: 'binding', namespace: ns, labels }, spec } as never);
    await ok('start', 'shop');
    expect(builds()).toHaveLength(3);
  });

  it('starts no web instance when the build finds none, and says so', async () => {
    await ok(...push, '--no-start', '-m', '64M');
    droplet = { ...web, processTypes: [{ type: 'worker', command: 'work' }] };
    const run = await ok('start', 'shop');
    expect(run.stderr).toContain("The build found no process 'web', only: worker.");
    expect(cluster.memory.all(kinds.process).map(({ spec }) => spec.desiredInstances)).toEqual([0]);
  });

  it('is what a tenant names only when it is a package of this app', async () => {
    await ok(...push, '--no-start');
    const [own] = packages();
    const other = { type: 'bits' as const, appRef: { name: 'other-app' }, source: { registry: { image: 'other' } } };
    await cluster.add(kinds.package, { metadata: { name: 'others', namespace: ns, labels: own?.metadata.labels ?? {} }, spec: other });
    const mark = { [annotations.package]: 'others/others' };
    await cluster.memory.mergePatch(kinds.app, ns, nameOf(app()), { metadata: { annotations: mark } });
    await ok('start', 'shop');
    expect(packageThatRuns()).toBe(nameOf(own));
  });

  it('is not run when a push has come between', async () => {
    await ok(...push, '--no-start');
    droplet = undefined;
    const running = cli.run(['start', 'shop']);
    await expect.poll(() => builds().length, { timeout: 5000 }).toBe(1);
    droplet = web;
    source('b');
    await ok(...push);
    const runs = packageThatRuns();
    endBuild(nameOf(builds()[0]), web);
    const run = await running;
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining("App 'shop' was pushed or built anew by alice meanwhile")]);
    expect(packageThatRuns()).toBe(runs);
  });
});

it('a restart of an app that waits for no build asks neither for packages nor for builds, but for its droplet', async () => {
  await pushed('a');
  cluster.server.calls.length = 0;
  await ok('restart', 'shop');
  expect(
    cluster.server.callsOf('.*/(cfpackages|cfbuilds|buildworkloads)(/.*)?').map(({ method, path: url }) => `${method} ${url}`),
  ).toEqual([`GET /apis/korifi.cloudfoundry.org/v1alpha1/namespaces/${ns}/cfbuilds/${nameOf(builds()[0])}`]);
});

describe('restage builds what was pushed last:', () => {
  const restaged = async (): Promise<string> => {
    await ok('restage', 'shop');
    return packageThatRuns();
  };

  it('the newest package', async () => {
    const [, b] = await pushed('a', 'b');
    expect(await restaged()).toBe(b);
  });

  it('an older one, when its source was pushed again and nothing had to be built', async () => {
    const [a, b, again] = await pushed('a', 'b', 'a');
    expect([a !== b, again]).toEqual([true, a]);
    expect([await restaged(), await restaged()]).toEqual([a, a]);
    const [c] = await pushed('c');
    expect(await restaged()).toBe(c);
  });

  it('the one that runs, when it was pushed again after one whose build failed', async () => {
    const [a] = await pushed('a');
    droplet = 'fails';
    source('b');
    expect((await cli.run(push)).code).toBe(1);
    droplet = web;
    source('a');
    expect((await ok(...push)).stdout).toContain('unchanged');
    expect(await restaged()).toBe(a);
  });

  it('an image that was pushed again and is the one that runs', async () => {
    const image = (version: number): string[] => ['push', 'shop', '-o', `registry.example.com/shop:${version}`];
    droplet = { registry: { image: 'one' } };
    await ok(...image(1));
    const one = packageThatRuns();
    droplet = 'fails';
    expect((await cli.run(image(2))).code).toBe(1);
    droplet = { registry: { image: 'one' } };
    for (let time = 1; time <= 2; time += 1) expect((await ok(...image(1))).stdout).toContain('unchanged');
    expect(await restaged()).toBe(one);
    await ok(...image(3), '--no-start');
    await ok(...image(1));
    expect((await ok(...image(1))).stdout).toContain('unchanged');
    expect(await restaged()).toBe(one);
  });

  it('one whose build failed, after what it needed was set', async () => {
    const [a, b, again] = await pushed('a', 'b', 'a');
    expect([b === a, again]).toEqual([false, a]);
    droplet = 'fails';
    source('c');
    expect((await cli.run(push)).code).toBe(1);
    droplet = web;
    expect([a, b]).not.toContain(await restaged());
  });
});

it('start builds what was pushed last also when its first build failed', async () => {
  droplet = 'fails';
  expect((await cli.run(push)).code).toBe(1);
  droplet = web;
  await ok('set-env', 'shop', 'A', 'needed');
  await ok('start', 'shop');
  expect(builds().map(variablesOf)).toEqual([{}, { A: 'needed' }]);
});
