// The services in a manifest are bound before the build, and a build is reused only with the same services.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secretType } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import { sha224 } from '../../../src/lib/api/names.ts';
import { bundleForTests } from '../../support/cli.ts';
import { builtWeb, nameOf, ns, PushScene } from '../../support/push-scene.ts';

const bundle = bundleForTests();
let scene: PushScene;

beforeEach(async () => void (scene = await PushScene.start(bundle.program)));
afterEach(() => scene.stop());
afterAll(() => bundle.remove());

const push = ['push', '-f', 'manifest.yml'];
const binding = (): string => nameOf(scene.cluster.memory.all(kinds.serviceBinding)[0]);
const revision = (): string => scene.app().metadata.annotations?.[annotations.appRev] ?? '';

/** The next push names these services. */
function names(...services: string[]): void {
  writeFileSync(
    path.join(scene.cli.home, 'manifest.yml'),
    `applications: [{name: shop, path: app, memory: 64M, services: ${JSON.stringify(services)}}]`,
  );
}

async function addService(name: string): Promise<void> {
  const spec = { displayName: name, secretName: `${name}-secret`, type: 'user-provided' as const, planGuid: '' };
  await scene.cluster.add(secretType, { metadata: { name: `${name}-secret`, namespace: ns } });
  await scene.cluster.add(kinds.serviceInstance, {
    metadata: { name: `${name}-guid`, namespace: ns, labels: { [labels.displayName]: sha224(name) } },
    spec,
  });
}

async function requestsOf(...args: string[]): Promise<number> {
  const before = scene.cluster.server.calls.length;
  expect((await scene.ok(...args)).stdout).toContain('unchanged');
  return scene.cluster.server.calls.length - before;
}

/** The controller has seen other credentials. */
async function changeCredentials(): Promise<void> {
  const metadata = { annotations: { [annotations.instanceVersion]: 'another' } };
  await scene.cluster.memory.mergePatch(kinds.serviceBinding, ns, binding(), { metadata });
}

describe('a push whose manifest names a service', () => {
  beforeEach(async () => {
    await addService('db');
    names('db');
  });

  it('binds it before the first build, once, and builds nothing if it is repeated without a change', async () => {
    await scene.ok(...push);
    expect(scene.builds().map((build) => scene.servicesOf(build))).toEqual([['db-guid']]);
    expect((await scene.ok(...push)).stdout).toContain('unchanged');
    expect([scene.builds().length, scene.cluster.memory.all(kinds.serviceBinding).length]).toEqual([1, 1]);
  });

  it('builds again if another one was named or bound since, and restarts the app', async () => {
    await scene.ok(...push);
    await addService('cache');
    names('db', 'cache');
    const first = revision();
    await scene.ok(...push);
    expect(scene.servicesOf(scene.builds()[1]).toSorted()).toEqual(['cache-guid', 'db-guid']);
    const second = revision();
    await addService('queue');
    await scene.ok('bind-service', 'shop', 'queue');
    await scene.ok(...push);
    expect(scene.builds()).toHaveLength(3);
    expect(Number(second)).toBeGreaterThan(Number(first));
    expect(Number(revision())).toBeGreaterThan(Number(second));
    expect((await scene.ok(...push)).stdout).toContain('unchanged');
  });

  it('builds again if its credentials have changed', async () => {
    await scene.ok(...push);
    await changeCredentials();
    await scene.ok(...push);
    expect(scene.builds()).toHaveLength(2);
    expect((await scene.ok(...push)).stdout).toContain('unchanged');
  });

  it('keeps the binding when the build fails, and the running app unchanged', async () => {
    names();
    await scene.ok(...push);
    const { annotations: before } = scene.app().metadata;
    names('db');
    scene.droplet = 'fails';
    expect((await scene.cli.run(push)).code).toBe(1);
    expect(scene.cluster.memory.all(kinds.serviceBinding)).toHaveLength(1);
    const { annotations: after } = scene.app().metadata;
    for (const name of [annotations.deployId, annotations.appRev]) expect(after?.[name]).toBe(before?.[name]);
    // The next successful push restarts it, although the binding exists already and the image may be the same.
    scene.droplet = { ...builtWeb, registry: { image: `image-of-${nameOf(scene.builds()[0])}` } };
    await scene.ok(...push);
    expect(Number(revision())).toBeGreaterThan(Number(before?.[annotations.appRev]));
  });

  it('continues if another push bound it at the same moment', async () => {
    const { memory } = scene.cluster;
    const play = memory.intercept;
    memory.intercept = (verb, type, name) => {
      if (verb !== 'create' || type.plural !== kinds.serviceBinding.plural) return play(verb, type, name);
      memory.intercept = play;
      setTimeout(() => {
        const spec = memory.peek(kinds.serviceBinding, ns, name)?.spec;
        const labels = { 'korifi.cloudfoundry.org/app-guid': nameOf(scene.app()) };
        if (spec !== undefined) void scene.cluster.add(kinds.serviceBinding, { metadata: { name: 'faster', namespace: ns, labels }, spec });
        const claimed = { type: 'Claimed', status: 'False', reason: 'DuplicateName', message: 'Taken.', lastTransitionTime: '' };
        scene.setStatus(kinds.serviceBinding, name, { conditions: [claimed] });
      }, 5);
    };
    await scene.ok(...push);
    expect(scene.cluster.memory.all(kinds.serviceBinding).map(nameOf)).toEqual(['faster']);
    expect((await scene.ok(...push)).stdout).toContain('unchanged');
  });

  it('binds it although a binding is left that was refused its name', async () => {
    names();
    await scene.ok(...push);
    const labels = { 'korifi.cloudfoundry.org/app-guid': nameOf(scene.app()) };
    const spec = { type: 'app' as const, appRef: { name: nameOf(scene.app()) }, service: { name: 'db-guid' }, parameters: { name: '' } };
    const { memory } = scene.cluster;
    const play = memory.intercept;
    memory.intercept = () => undefined;
    await scene.cluster.add(kinds.serviceBinding, { metadata: { name: 'left', namespace: ns, labels }, spec });
    memory.intercept = play;
    const claimed = { type: 'Claimed', status: 'False', reason: 'DuplicateName', message: 'Taken.', lastTransitionTime: '' };
    scene.setStatus(kinds.serviceBinding, 'left', { conditions: [claimed] });
    names('db');
    await scene.ok(...push);
    expect(scene.cluster.memory.all(kinds.serviceBinding).filter((binding) => nameOf(binding) !== 'left')).toHaveLength(1);
  });

  it('sends two requests for it if nothing changed: the service by its name, and the bindings of the app', async () => {
    names();
    await scene.ok(...push);
    const without = await requestsOf(...push);
    names('db');
    await scene.ok(...push);
    expect((await requestsOf(...push)) - without).toBe(2);
  });
});

describe('start after push --no-start', () => {
  beforeEach(async () => {
    await addService('db');
    names('db');
    await scene.ok(...push, '--no-start');
    await scene.ok('start', 'shop');
  });

  it('builds the same as a push, so that a following push has nothing to do', async () => {
    expect((await scene.ok(...push)).stdout).toContain('unchanged');
    await scene.ok(...push, '--no-start');
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(1);
  });

  it('builds again if the credentials have changed, or the service was unbound', async () => {
    await scene.ok(...push, '--no-start');
    await changeCredentials();
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(2);
    names();
    await scene.ok(...push, '--no-start');
    await scene.ok('unbind-service', 'shop', 'db');
    await scene.ok('start', 'shop');
    expect(scene.builds()).toHaveLength(3);
  });
});
