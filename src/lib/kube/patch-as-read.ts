// Patches exactly the object that was read: the patch is computed again when others wrote it, and never applied to another object of the same
// name.

import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import type { KfError } from '../errors.ts';
import type { Cluster } from './cluster.ts';
import { retryOnConflict } from './retry-on-conflict.ts';
import { defined } from '../defined.ts';

/** A merge patch; null removes. */
export interface ObjectPatch {
  metadata?: { labels?: Record<string, string | null>; annotations?: Record<string, string | null> };
  spec?: object;
}

export interface ReadObject<T extends KubeObject> {
  type: ResourceType<T>;
  /** The object as it was read. */
  object: Stored<T>;
  /** The error when the object is gone, or when another object has its name. */
  gone: () => KfError;
}

/** The object as it is now. @throws the error of `gone` */
export async function readSame<T extends KubeObject>(
  cluster: Cluster,
  { type, object, gone }: ReadObject<T>,
  signal?: AbortSignal,
): Promise<Stored<T>> {
  const { namespace, name, uid } = object.metadata;
  const live = await cluster.get(type, namespace, name, signal);
  if (live === undefined || live.metadata.uid !== uid) throw gone();
  return live;
}

/**
 * Patches an object as it was last seen; see {@link retryOnConflict}.
 * @param patchFor computes the patch again for each version; undefined: nothing to do
 * @returns the resulting object, and whether it was written
 * @throws the error of `gone`; KubeError 409 after a long series of conflicts
 */
export async function patchAsRead<T extends KubeObject>(
  cluster: Cluster,
  read: ReadObject<T>,
  patchFor: (live: Stored<T>) => ObjectPatch | undefined,
  signal?: AbortSignal,
): Promise<{ object: Stored<T>; isWritten: boolean }> {
  const { namespace, name, uid } = read.object.metadata;
  const write = async (live: Stored<T>): Promise<{ object: Stored<T>; isWritten: boolean }> => {
    const patch = patchFor(live);
    if (patch === undefined) return { object: live, isWritten: false };
    const { resourceVersion } = live.metadata;
    const body = { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } };
    const object = await cluster.mergePatch(read.type, namespace, name, body, defined({ signal }));
    return { object, isWritten: true };
  };
  return retryOnConflict(read.object, write, () => readSame(cluster, read, signal), signal);
}
