// How kf's builder follows a build: when it looks again, and what it does while the registry does not answer.

import { beforeEach, describe, expect, test } from 'vitest';
import { buildWorkloadReconciler } from '../../../src/controller/builds/workload.ts';
import { Memory } from '../../../src/controller/runtime/memory.ts';
import type { Outcome } from '../../../src/controller/runtime/outside.ts';
import type { Context, Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { findCondition } from '../../../src/lib/api/conditions.ts';
import { jobType, nodeType, secretType, type Node } from '../../../src/lib/api/core.ts';
import { kinds, labels } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';
import { podType, type Pod } from '../../../src/lib/api/pod-kind.ts';
import type { BuildWorkload } from '../../../src/lib/api/types.generated.ts';
import { RegistryError } from '../../../src/lib/oci/errors.ts';
import { ownerReference } from '../../../src/templates/metadata.ts';
import { buildRegistrySecret } from '../../../src/templates/registry-secret.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';

const ns = 's-1';
const start = Date.parse('2030-01-01T00:00:00Z');
const digest = `sha256:${'e'.repeat(64)}`;
const info = {
  root: 'cf',
  registry: {
    namespace: 'kf-system',
    service: 'kf-registry',
    port: 5000,
    pushHost: 'kf-registry.kf-system.svc:5000',
    pullPrefix: 'localhost:32500/',
  },
  builder: { name: 'kf-builder', image: 'builder:1', runImage: 'run:1' },
  staging: { memoryMB: 1024, diskMB: 4096 },
};
const label = JSON.stringify({
  processes: [
    { type: 'web', command: ['w'], direct: true },
    { type: 'worker', command: ['x'], direct: true },
  ],
});
const noAnswer = new RegistryError('reading', { status: 503, entries: [], fromRegistry: true }, 'the registry answers 503');
const refused = new RegistryError('reading', { status: 403, entries: [], fromRegistry: true }, 'the registry answers 403');

/** Finds objects by an index only: an installation has many times as many builds as an app. */
class IndexedStore extends Store<KubeObject> {
  override list(): never {
    throw new Error('All objects were listed.');
  }
}

let cluster: MemoryCluster;
let memory: Memory;
let now: number;
/** Since when every change of an object has been seen. */
let steadySince: number;
let outcome: Outcome<unknown> | undefined;

beforeEach(async () => {
  cluster = new MemoryCluster();
  memory = new Memory();
  now = start;
  steadySince = 0;
  outcome = undefined;
  await cluster.create(kinds.buildWorkload, {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'BuildWorkload',
    metadata: { name: 'b-1', namespace: ns, labels: { [labels.appGuid]: 'a-1' } },
    spec: { buildRef: { name: 'b-1' }, builderName: 'kf-builder' },
  });
  await cluster.create(jobType, { metadata: { name: 'b-1', namespace: ns } });
});

const workload = (): Stored<BuildWorkload> => cluster.peek(kinds.buildWorkload, ns, 'b-1') as Stored<BuildWorkload>;
const succeeded = () => findCondition(workload(), 'Succeeded');

/** Reconciles the build with stores that have what the cluster has. */
async function reconcile() {
  const reconciler = buildWorkloadReconciler({ keys: { read: () => Promise.resolve(Buffer.alloc(32)) }, fetchProgram: '' });
  const stores = new Map<string, Store<KubeObject>>();
  const of = (type: ResourceType): Store<KubeObject> => {
    const known = stores.get(type.kind);
    if (known !== undefined) return known;
    const store = type === kinds.build ? new IndexedStore() : new Store<KubeObject>();
    for (const index of reconciler.indexes ?? []) if (index.type.kind === type.kind) store.addIndex(index.name, index.of);
    for (const object of cluster.all(type)) store.put(object);
    store.steadySince = steadySince;
    stores.set(type.kind, store);
    return store;
  };
  const context = {
    cluster,
    stores: { of: of as Stores['of'], has: () => true },
    memory,
    log: { info: () => undefined, warn: () => undefined },
    info: () => info,
    event: () => undefined,
    outside: () => outcome,
    now: () => now,
  } as unknown as Context;
  return reconciler.reconcile(`${ns}/b-1`, context);
}

test('a build uses the layers of the newest droplet of its app, and reads the builds of no other', async () => {
  await cluster.delete(jobType, ns, 'b-1');
  const create = async <T extends KubeObject>(type: ResourceType<T>, object: object, status: object): Promise<void> => {
    const { metadata } = await cluster.create(type, object as T);
    const { resourceVersion } = metadata;
    await cluster.mergePatch(type, metadata.namespace, metadata.name, { metadata: { resourceVersion }, status }, { subresource: 'status' });
  };
  const builder = { image: 'builder:1', runImage: 'run:1', digest: 'sha256:1', uid: 1001, gid: 1002 };
  await create(kinds.builderInfo, { metadata: { name: 'kf-builder', namespace: 'cf' } }, { stacks: [], buildpacks: [], builder });
  const add = (name: string, app: string, state = 'STAGED') =>
    create(
      kinds.build,
      { metadata: { name, namespace: ns }, spec: { appRef: { name: app } } },
      { state, droplet: { registry: { image: `localhost:32500/s-1/${app}-droplets@sha256:${name}` } } },
    );
  for (const name of ['1', '2']) await add(name, 'a-1');
  await add('3', 'a-1', 'FAILED');
  await add('4', 'a-2');
  await reconcile();
  expect(JSON.stringify(cluster.peek(jobType, ns, 'b-1'))).toContain(
    '-previous-image=kf-registry.kf-system.svc:5000/s-1/a-1-droplets@sha256:2 ',
  );
});

describe('a build without a pod', () => {
  test.each([
    [1, 2],
    [60, 6],
    [6 * 3600, 30],
  ])('is checked again, %i s after its start, after %i s', async (age, pause) => {
    now = Date.parse(cluster.peek(jobType, ns, 'b-1')?.metadata.creationTimestamp ?? '') + age * 1_000;
    expect(await reconcile()).toEqual({ requeueAfterMs: pause * 1_000 });
  });
});

describe('a build whose pod has waited for the builder image for a minute', () => {
  const unread = { reason: 'CreateContainerConfigError', message: 'failed to sync secret cache: timed out waiting for the condition' };
  const blip = { reason: 'ErrImagePull', message: 'connection reset by peer' };
  const startTime = new Date(start).toISOString();
  beforeEach(async () => {
    const metadata = { name: 'b-1-x', namespace: ns, labels: { [labels.buildWorkloadName]: 'b-1' } };
    await cluster.create(podType, { metadata, spec: { containers: [] } });
    now += 60_000;
  });

  /** Reconciles the build, the last of whose containers waits for that. */
  async function waitFor(waiting: { reason: string; message: string }, lane = 'build') {
    const states = { source: { running: {} }, registry: { running: {} }, build: { running: {} }, [lane]: { waiting } };
    const containerStatuses = Object.entries(states).map(([name, state]) => ({ name, image: `img-of-${name}`, state }));
    await cluster.mergePatch(
      podType,
      ns,
      'b-1-x',
      { status: { phase: 'Pending', startTime, containerStatuses } },
      { subresource: 'status' },
    );
    return reconcile();
  }

  test.each([
    ['a Secret that its kubelet cannot read', unread, 45, 'BuildFailed'],
    ['an image of a registry that stumbles', blip, 30, 'BuilderNotFound'],
  ])('gets the whole time for %s, and fails after it', async (_, waiting, patience, reason) => {
    expect(await waitFor(waiting)).toEqual({ requeueAfterMs: 2_000 });
    now += patience * 1_000;
    await waitFor(waiting);
    expect(succeeded()?.status).toBe('Unknown');
    expect(succeeded()?.message).toContain(waiting.message);
    now += 1;
    await waitFor(waiting);
    expect(succeeded()).toMatchObject({ status: 'False', reason });
  });

  test('gets it again for the image of its next container', async () => {
    await waitFor(blip, 'source');
    now += 31_000;
    await waitFor(blip);
    expect(succeeded()?.status).toBe('Unknown');
  });

  test('does not fail for the time that passed until kubelets have reported what happened while the API server was away', async () => {
    await waitFor(blip);
    now += 60_000;
    steadySince = now - 11_000;
    await waitFor(blip);
    expect(succeeded()?.status).toBe('Unknown');
    now += 1_000;
    await waitFor(blip);
    expect(succeeded()).toMatchObject({ status: 'False', reason: 'BuilderNotFound' });
  });
});

describe('a build on a node that does not answer', () => {
  const since = new Date(start).toISOString();
  const ready = (status: string) => ({ status: { conditions: [{ type: 'Ready', status, lastTransitionTime: since }] } });
  const image = { name: 'build', state: { waiting: { reason: 'ErrImagePull', message: 'connection reset by peer' } } };
  const fresh = { name: 'build', state: { waiting: { reason: 'ContainerCreating' } } };

  async function give(container: object, more: { deletionTimestamp?: string } = {}): Promise<void> {
    const metadata = { ...more, name: 'b-1-x', namespace: ns, labels: { [labels.buildWorkloadName]: 'b-1' } };
    const status = { phase: 'Pending', containerStatuses: [container] };
    await cluster.create(podType, { metadata, spec: { containers: [], nodeName: 'n-1' }, status } as unknown as Pod);
    await cluster.create(nodeType, { metadata: { name: 'n-1' }, ...ready('Unknown') } as Node);
  }

  test('does not fail for what its pod waited for before, and waits for it anew when the node answers', async () => {
    await give(image);
    for (let looks = 0; looks < 2; looks += 1) {
      await reconcile();
      expect(succeeded()).toMatchObject({ status: 'Unknown', reason: 'BuildRunning', message: "Node 'n-1' does not answer." });
      now += 60_000;
    }
    await cluster.mergePatch(nodeType, undefined, 'n-1', ready('True'), { subresource: 'status' });
    expect(await reconcile()).toEqual({ requeueAfterMs: 2_000 });
    now += 31_000;
    await reconcile();
    expect(succeeded()).toMatchObject({ status: 'False', reason: 'BuilderNotFound' });
  });

  test.each([
    ['for an image', image],
    ['for its start', fresh],
  ])('fails with its node as the reason when its pod, which waited %s, should be gone', async (_, container) => {
    await give(container, { deletionTimestamp: since });
    now += 60_000;
    await reconcile();
    expect(succeeded()).toMatchObject({ status: 'False', reason: 'NodeLost', message: "Node 'n-1' does not answer; the build ran there." });
  });
});

describe('the data of a droplet that did not fit into the report', () => {
  beforeEach(async () => {
    const ended = (message: string) => ({ terminated: { exitCode: 0, message, finishedAt: new Date(start).toISOString() } });
    const messages = { source: '', build: '', registry: `digest=${digest}\n` };
    const containerStatuses = Object.entries(messages).map(([name, message]) => ({ name, state: ended(message) }));
    const metadata = { name: 'b-1-x', namespace: ns, labels: { [labels.buildWorkloadName]: 'b-1' } };
    await cluster.create(podType, { metadata, status: { phase: 'Succeeded', containerStatuses } } as unknown as Pod);
    const where = { ns, name: 'b-1-registry', owner: ownerReference(kinds.buildWorkload, workload()) };
    await cluster.create(secretType, buildRegistrySecret(where, info.registry.pushHost, { username: 'u', password: 'p' }));
  });

  test('are read from the registry again until it answers', async () => {
    outcome = { ok: false, error: noAnswer };
    expect(await reconcile()).toEqual({ requeueAfterMs: 2_000 });
    expect(succeeded()).toMatchObject({ status: 'Unknown', reason: 'BuildRunning' });
    expect(succeeded()?.message).toMatch(/^The build is done, but its droplet cannot be read yet: .*503/);
    now += 4 * 60_000;
    expect(await reconcile()).toEqual({ requeueAfterMs: 24_000 });
    outcome = { ok: true, value: { buildMetadata: label } };
    await reconcile();
    expect(succeeded()?.status).toBe('True');
    expect(workload().status?.droplet?.processTypes).toEqual([
      { type: 'web', command: 'w' },
      { type: 'worker', command: 'x' },
    ]);
  });

  test.each([
    ['does not answer for five minutes', noAnswer, 5 * 60_000 + 1],
    ['refuses to show them', refused, 0],
  ])('fail the build if the registry %s: a droplet without its processes would stop them', async (_, error, later) => {
    outcome = { ok: false, error };
    now += later;
    await reconcile();
    expect(succeeded()).toMatchObject({ status: 'False', reason: 'RegistryRefused' });
    expect(succeeded()?.message).toContain(`the registry answers`);
    expect(workload().status?.droplet).toBeUndefined();
  });

  test('fail the build if its credential is missing, instead of asking the registry without one', async () => {
    const name = 'b-1-registry';
    await cluster.delete(secretType, ns, name, { uid: cluster.peek(secretType, ns, name)?.metadata.uid ?? '' });
    outcome = { ok: true, value: { buildMetadata: label } };
    await reconcile();
    expect(succeeded()).toMatchObject({ status: 'False', reason: 'RegistryRefused' });
    expect(succeeded()?.message).toBe("The processes of the droplet cannot be read: the Secret 'b-1-registry' has no credential.");
  });

  test('are none if the image has none', async () => {
    outcome = { ok: true, value: { buildMetadata: '' } };
    await reconcile();
    expect(succeeded()?.status).toBe('True');
    expect(workload().status?.droplet?.processTypes).toEqual([]);
  });
});
