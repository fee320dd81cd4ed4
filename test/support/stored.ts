// Makes fixtures look as if the API server had sent them.

import type { KubeObject, ObjectMeta, Stored } from '../../src/lib/api/object.ts';

/** The object with its given name, namespace, uid and version; missing ones get values that no test checks. */
export function asStored<T extends KubeObject>(object: T): Stored<T> {
  const { name = 'some-name', ...metadata } = object.metadata;
  const complete: Required<Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>> = {
    namespace: 'some-namespace',
    uid: `uid-of-${name}`,
    resourceVersion: '1',
    ...metadata,
    name,
  };
  return { ...object, metadata: complete };
}
