// Fixtures as the API server would have sent them.

import type { KubeObject, ObjectMeta, Stored } from '../../src/lib/api/object.ts';

/** The object with the name, namespace, uid and version that it was given, or else with ones that nobody looks at. */
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
