// The caches of the controller, filled by a test.

import { appIndexes } from '../../../src/controller/relations.ts';
import type { Stores } from '../../../src/controller/runtime/reconciler.ts';
import { Store } from '../../../src/controller/runtime/store.ts';
import type { KubeObject, ResourceType, Stored } from '../../../src/lib/api/object.ts';

/** Caches with the indexes of apps, and nothing in them. */
export function emptyStores(): Stores & { put: (type: ResourceType, object: object) => void } {
  const stores = new Map<string, Store<KubeObject>>();
  const of = (type: ResourceType): Store<KubeObject> => {
    const store = stores.get(type.kind) ?? new Store<KubeObject>();
    stores.set(type.kind, store);
    return store;
  };
  for (const { type, name, of: keys } of appIndexes) of(type).addIndex(name, keys);
  return { of: of as Stores['of'], has: () => true, put: (type, object) => void of(type).put(object as Stored) };
}
