import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test, vi } from 'vitest';
import { Informer, SharedByInformers } from '../../../src/controller/runtime/informer.ts';
import { createLogger } from '../../../src/controller/runtime/log.ts';
import { sources } from '../../../src/controller/sources.ts';
import { jobType, roleBindingType, statefulSetType, type RoleBinding } from '../../../src/lib/api/core.ts';
import { annotations, kinds, labels } from '../../../src/lib/api/group.ts';
import type { KubeObject, ResourceType } from '../../../src/lib/api/object.ts';
import { MemoryCluster } from '../../support/memory-cluster.ts';
import { asStored } from '../../support/stored.ts';

const log = createLogger('error', () => undefined);
let ended = new AbortController();
afterEach(() => {
  ended.abort();
  ended = new AbortController();
});

const foreign = 'x'.repeat(1_000);
const own = { 'kf.cloudfoundry.org/deploy-id': '1', 'serving.kf.cloudfoundry.org/p': 'h=1' };
const large = (name: string, spec: object): KubeObject =>
  ({
    metadata: {
      name,
      namespace: 'ns',
      labels: { [labels.appGuid]: 'a' },
      annotations: { ...own, 'kubectl.kubernetes.io/last-applied-configuration': foreign, 'example.com/cloudfoundry.org/x': foreign },
      managedFields: [{ manager: foreign }],
    },
    spec,
  }) as KubeObject;

/** Every source of the cache: the first list, the watch, and the results of writes. */
async function cached(type: ResourceType, spec: object): Promise<KubeObject[]> {
  const cluster = new MemoryCluster();
  const source = sources('cf').find((candidate) => candidate.type.plural === type.plural) ?? { type };
  const informer = new Informer(cluster, source, log);
  await cluster.create(type, large('listed', spec));
  void informer.run(ended.signal);
  await informer.synced();
  await cluster.create(type, large('watched', spec));
  await expect.poll(() => informer.store.get('ns', 'watched')).toBeDefined();
  const written = asStored({
    ...large('written', spec),
    metadata: { ...large('written', spec).metadata, uid: 'u', resourceVersion: '999999' },
  });
  informer.observe(written);
  expect(JSON.stringify(written)).toContain(foreign);
  return ['listed', 'watched', 'written'].map((name) => informer.store.get('ns', name) ?? { metadata: { name: `no ${name}` } });
}

test.each([
  [kinds.app, { displayName: 'a' }, { displayName: 'a' }],
  [kinds.appWorkload, { instances: 1, env: [{ name: 'A', value: foreign }] }, { instances: 1 }],
  [kinds.buildWorkload, { builderName: 'b', env: [{ name: 'A', value: foreign }] }, { builderName: 'b' }],
  [kinds.taskWorkload, { image: 'i', env: [{ name: 'A', value: foreign }] }, { image: 'i' }],
  [statefulSetType, { replicas: 1, template: { spec: { containers: [{ image: foreign }] } } }, { replicas: 1 }],
  [jobType, { suspend: false, template: { spec: { containers: [{ image: foreign }] } } }, { suspend: false }],
] as [ResourceType, object, object][])('the cache keeps only what reconcilers read of a %j', async (type, spec, kept) => {
  for (const object of await cached(type, spec)) {
    expect(JSON.stringify(object)).not.toContain(foreign);
    expect(object).toMatchObject({ kind: type.kind, spec: kept, metadata: { namespace: 'ns', annotations: own } });
    expect(Object.keys((object as { spec?: object }).spec ?? {})).toEqual(Object.keys(kept));
  }
});

test.each(
  ([kinds.build, kinds.buildWorkload, kinds.task, kinds.taskWorkload] as ResourceType[]).flatMap((type) =>
    ['failure', 'output'].map((field) => [type, field] as const),
  ),
)('the cache keeps of the end of a %j, in its %s, everything but its lines', async (type, field) => {
  const cluster = new MemoryCluster();
  const informer = new Informer(cluster, sources('cf').find((one) => one.type.plural === type.plural) ?? { type }, log);
  void informer.run(ended.signal);
  await informer.synced();
  await cluster.create(type, { metadata: { name: 'failed', namespace: 'ns' }, spec: {} } as KubeObject);
  const kept = { reason: 'BuildFailed', cause: 'build-failed', logLost: 'No.' };
  const status = { state: 'FAILED', [field]: { ...kept, logHead: [foreign], logOmitted: 3, logTail: [foreign] } };
  await cluster.mergePatch(type, 'ns', 'failed', { status }, { subresource: 'status' });
  await expect
    .poll(() => (informer.store.get('ns', 'failed') as { status?: object } | undefined)?.status)
    .toEqual({ ...status, [field]: kept });
});

test('the cache keeps of a role binding only what is read and copied', async () => {
  const { metadata } = large('bound', {});
  const marks = { [labels.roleGuid]: 'g' };
  const notes = { [annotations.propagateRole]: 'true' };
  const subjects = [{ kind: 'User' as const, apiGroup: 'rbac.authorization.k8s.io', name: 'alice' }];
  const binding: RoleBinding = {
    metadata: {
      ...metadata,
      labels: { ...marks, 'a.cloudfoundry.org/x': foreign },
      annotations: { ...notes, [annotations.propagateDeletion]: foreign, 'a.cloudfoundry.org/x': foreign },
    },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects,
  };
  const cluster = new MemoryCluster();
  await cluster.create(roleBindingType, binding);
  const informer = new Informer(
    cluster,
    sources('cf').find(({ type }) => type.plural === 'rolebindings') ?? { type: roleBindingType },
    log,
  );
  void informer.run(ended.signal);
  await informer.synced();
  const kept = informer.store.get('ns', 'bound');
  expect(kept).toMatchObject({ subjects, roleRef: { name: 'view' }, metadata: { labels: marks, annotations: notes } });
  expect(JSON.stringify(kept)).not.toContain(foreign);
});

/** Bytes of the heap that are in use. What other files of this worker have left goes in several rounds: finalizers and closed sockets come in between. */
async function heapInUse(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 4; round += 1) {
    collect();
    await nextTurn();
  }
  return process.memoryUsage().heapUsed;
}

const condition = {
  status: 'True',
  reason: 'AllInstancesReady',
  message: '',
  lastTransitionTime: '2026-11-26T02:50:55Z',
  observedGeneration: 1,
};

/** Its texts are new in each object, as JSON.parse makes them. */
function webProcess(index: number): KubeObject {
  const app = `0d5e1f5e-5b0a-4a3e-8c11-${String(100_000_000_000 + index)}`;
  const text = JSON.stringify({
    metadata: {
      name: `p-${app}-web`,
      namespace: '9e3c1fbb-0547-4666-9887-4abaecec141d',
      uid: app.replace('0d', '1d'),
      resourceVersion: String(100_000 + index),
      generation: 1,
      creationTimestamp: '2026-11-26T02:50:55Z',
      labels: { [labels.appGuid]: app, [labels.guid]: `p-${app}-web`, [labels.managedBy]: 'kf' },
      annotations: own,
      ownerReferences: [{ apiVersion: 'korifi.cloudfoundry.org/v1alpha1', kind: 'CFApp', name: app, uid: app.replace('0d', '2d') }],
      managedFields: [{ manager: foreign }],
    },
    spec: { appRef: { name: app }, processType: 'web' },
    status: { actualInstances: 1, conditions: ['Ready', 'Serving', 'Claimed'].map((type) => ({ ...condition, type })) },
  });
  return JSON.parse(text) as KubeObject;
}

test('a cached object takes little more than its values', async () => {
  const count = 12_000;
  const cluster = new MemoryCluster();
  vi.spyOn(cluster, 'list').mockImplementation((_type, options = {}) => {
    const keep = (options as { keep?: (item: unknown) => never }).keep ?? ((item) => item as never);
    return Promise.resolve({ items: Array.from({ length: count }, (_, index) => keep(webProcess(index))), resourceVersion: '1' });
  });
  const informer = new Informer(cluster, { type: kinds.process }, log);
  informer.store.addIndex('app', ({ metadata }) => [`${metadata.namespace ?? ''}/${metadata.labels?.[labels.appGuid] ?? ''}`]);
  const before = await heapInUse();
  void informer.run(ended.signal);
  await informer.synced();
  vi.restoreAllMocks();
  expect(((await heapInUse()) - before) / count).toBeLessThan(1_640);
  expect(informer.store.size).toBe(count);
});

test('the informers of one controller list two kinds at a time', async () => {
  const cluster = new MemoryCluster();
  const shared = new SharedByInformers();
  const list = cluster.list.bind(cluster);
  const [counts, now] = [[] as number[], { open: 0 }];
  vi.spyOn(cluster, 'list').mockImplementation(async (type, options) => {
    now.open += 1;
    counts.push(now.open);
    await new Promise((resolve) => setImmediate(resolve));
    now.open -= 1;
    return list(type, options);
  });
  const informers = Object.values(kinds).map((type) => new Informer<KubeObject>(cluster, { type }, log, {}, shared));
  for (const informer of informers) void informer.run(ended.signal);
  await Promise.all(informers.map((informer) => informer.synced()));
  vi.restoreAllMocks();
  expect(counts).toHaveLength(informers.length);
  expect(Math.max(...counts)).toBe(2);
});
