// Asks the API server for everything in a space that refers to images.

import { statefulSetType } from '../api/core.ts';
import { kinds } from '../api/group.ts';
import { referencesOf, type ImageReferences } from '../api/image-references.ts';
import type { KubeObject, ResourceType, Stored } from '../api/object.ts';
import { defined } from '../defined.ts';
import type { Cluster } from './cluster.ts';

/**
 * The images that the objects of a space refer to now. A cache would not do: with one that is late, images of new builds would count as unused. @throws
 * KubeError if one of the lists cannot be read: then nothing may be removed
 */
export async function readImageReferences(cluster: Cluster, space: string, signal?: AbortSignal): Promise<ImageReferences> {
  const listOf = async <T extends KubeObject>(type: ResourceType<T>): Promise<Stored<T>[]> =>
    (await cluster.list(type, { ns: space, ...defined({ signal }) })).items;
  // An object is made while the one exists that it has its image from. So those are read first: what goes meanwhile is found in the other lists.
  const [packages, builds] = await Promise.all([listOf(kinds.package), listOf(kinds.build)]);
  const [buildWorkloads, workloads, tasks] = await Promise.all([
    listOf(kinds.buildWorkload),
    listOf(kinds.appWorkload),
    listOf(kinds.taskWorkload),
  ]);
  const sets = await listOf(statefulSetType);
  return referencesOf(space, { packages, builds, buildWorkloads, workloads, sets, tasks });
}
