// Deletions name finalizers of others, and a package gets its owner in either order of creation.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { namespaceType } from '../../../src/lib/api/core.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { CFPackage } from '../../../src/lib/api/types.generated.ts';
import { app, startScene, type BuildScene } from './build-scene.ts';

const api = 'korifi.cloudfoundry.org/v1alpha1';
const hold = ['example.org/hold'];
let scene: BuildScene;

beforeEach(async () => {
  scene = await startScene();
  const org = { apiVersion: api, kind: 'CFOrg', metadata: { name: 'o-1', namespace: 'cf' }, spec: { displayName: 'o' } };
  const space = { apiVersion: api, kind: 'CFSpace', metadata: { name: 's-1', namespace: 'o-1' }, spec: { displayName: 's' } };
  await scene.cluster.create(kinds.org, org);
  await scene.cluster.create(kinds.space, space);
  await scene.until(() => expect(scene.condition(kinds.space, 'o-1', 's-1', 'Ready')?.status).toBe('True'));
});
afterEach(() => scene.stop());

const message = (type: typeof kinds.org | typeof kinds.space, ns: string, name: string): string =>
  scene.condition(type, ns, name, 'Ready')?.message ?? '';

test('a finalizer of others on the org itself is named, and the org is deleted when it is removed', async () => {
  const finalizers = [...(scene.cluster.peek(kinds.org, 'cf', 'o-1')?.metadata.finalizers ?? []), ...hold];
  await scene.cluster.mergePatch(kinds.org, 'cf', 'o-1', { metadata: { finalizers } });
  await scene.cluster.delete(kinds.org, 'cf', 'o-1');
  await scene.until(() =>
    expect(message(kinds.org, 'cf', 'o-1')).toBe("CFOrg 'o-1' has the finalizer 'example.org/hold'. Whoever set it must take it away."),
  );
  expect(scene.condition(kinds.org, 'cf', 'o-1', 'Ready')).toMatchObject({ status: 'False', reason: 'Deleting' });
  await scene.cluster.mergePatch(kinds.org, 'cf', 'o-1', { metadata: { finalizers: null } });
  await scene.until(() => expect(scene.cluster.peek(kinds.org, 'cf', 'o-1')).toBeUndefined());
});

test('a finalizer on a space is named by the space and by its org', async () => {
  const finalizers = [...(scene.cluster.peek(kinds.space, 'o-1', 's-1')?.metadata.finalizers ?? []), ...hold];
  await scene.cluster.mergePatch(kinds.space, 'o-1', 's-1', { metadata: { finalizers } });
  await scene.cluster.delete(kinds.org, 'cf', 'o-1');
  const said = "CFSpace 's-1' has the finalizer 'example.org/hold'. Whoever set it must take it away.";
  await scene.until(() => expect(message(kinds.space, 'o-1', 's-1')).toBe(said));
  await scene.until(() => expect(message(kinds.org, 'cf', 'o-1')).toBe(`These spaces are not gone yet: 's' (${said}).`));
  expect(scene.cluster.peek(namespaceType, undefined, 's-1')).toBeUndefined();
});

test('finalizers on the namespace and on objects in it are named with their objects', async () => {
  const made = app('a-1');
  await scene.cluster.create(kinds.app, { ...made, metadata: { ...made.metadata, finalizers: hold } });
  await scene.cluster.mergePatch(namespaceType, undefined, 's-1', { metadata: { finalizers: ['example.org/keep'] } });
  await scene.cluster.delete(kinds.app, 's-1', 'a-1');
  await scene.cluster.delete(kinds.space, 'o-1', 's-1');
  await scene.until(() =>
    expect(message(kinds.space, 'o-1', 's-1')).toBe(
      "The namespace s-1 is being deleted: Namespace 's-1' has the finalizer 'example.org/keep'. CFApp 'a-1' has the finalizer 'example.org/hold'.",
    ),
  );
});

test('a package that was applied before its app belongs to the app as soon as it exists', async () => {
  const made = {
    apiVersion: api,
    kind: 'CFPackage',
    metadata: { name: 'p-1', namespace: 's-1' },
    spec: { type: 'bits', appRef: { name: 'a-1' } },
  };
  await scene.cluster.create(kinds.package, made as CFPackage);
  await scene.until(() => expect(scene.condition(kinds.package, 's-1', 'p-1', 'Initialized')?.status).toBe('True'));
  const { metadata } = await scene.cluster.create(kinds.app, app('a-1'));
  await scene.until(() => expect(scene.cluster.peek(kinds.package, 's-1', 'p-1')?.metadata.ownerReferences?.[0]?.uid).toBe(metadata.uid));
});
