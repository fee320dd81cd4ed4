// Reads objects of kinds that may be missing in the cluster.

import type { KubeObject, ResourceType, Stored } from '../../api/object.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';

/** Undefined also while the kind itself does not exist. */
export async function getIfAny<T extends KubeObject>(
  cluster: Cluster,
  type: ResourceType<T>,
  ns: string | undefined,
  name: string,
): Promise<Stored<T> | undefined> {
  try {
    return await cluster.get(type, ns, name);
  } catch (error) {
    if (error instanceof KfError && error.code === 'not-found') return undefined;
    throw error;
  }
}
