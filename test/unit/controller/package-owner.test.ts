import { expect, test } from 'vitest';
import { packageReconciler } from '../../../src/controller/builds/package.ts';
import { packagesByApp } from '../../../src/controller/relations.ts';
import type { Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import { kinds } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { CFApp, CFPackage } from '../../../src/lib/api/types.generated.ts';

function packageOf(name: string, app: string, ownerUid?: string): Stored<CFPackage> {
  const ownerReferences = ownerUid === undefined ? [] : [{ apiVersion: 'v1', kind: 'CFApp', name: app, uid: ownerUid }];
  return {
    apiVersion: 'korifi.cloudfoundry.org/v1alpha1',
    kind: 'CFPackage',
    metadata: { name, namespace: 's', uid: name, resourceVersion: '1', ownerReferences },
    spec: { type: 'bits', appRef: { name: app } },
  };
}

test('a new app queues its packages that have no owner yet, so a package does not ask for its app again and again', () => {
  const store = new Store<CFPackage>();
  store.addIndex(packagesByApp.name, packagesByApp.of);
  for (const one of [packageOf('p-1', 'a'), packageOf('p-2', 'a', 'uid-of-a'), packageOf('p-3', 'b')]) store.put(one);
  const stores = { of: () => store } as unknown as Stores;
  const app = { metadata: { name: 'a', namespace: 's', uid: 'uid-of-a', resourceVersion: '1' } } as Stored<CFApp>;
  const ofApps = packageReconciler.watches.find(({ type }) => type.plural === kinds.app.plural);
  expect(ofApps?.keys(app, stores)).toEqual(['s/p-1']);
});
