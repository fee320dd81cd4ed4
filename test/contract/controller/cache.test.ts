import { afterEach, expect, test } from 'vitest';
import { Informer } from '../../../src/controller/runtime/informer.ts';
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
