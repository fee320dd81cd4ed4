// Removes objects of earlier setups that this setup does not apply: they have the label of the set and are not in it
// (docs/decisions/0043-setup-is-made-of-parts.md).

import pLimit from 'p-limit';
import type { Deployment } from '../../api/core.ts';
import type { ResourceType, Stored } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isConflict } from '../../kube/errors.ts';
import { parallelRequests } from './applier.ts';
import type { PartObjects } from './installation.ts';
import { describeObject, prunedKinds } from './kinds.ts';
import type { ClusterFacts } from './preflight.ts';
import { listOrNone, selector } from './removal.ts';

/** An object that will be removed. */
export interface Removable {
  /** `Deployment kf-system/kf-old`. */
  name: string;
  type: ResourceType;
  object: Stored;
}

/** False for kinds that this API server certainly does not serve; those are not listed. */
function isServed({ kind }: ResourceType, { hasMutatingPolicies }: Pick<ClusterFacts, 'hasMutatingPolicies'>): boolean {
  return hasMutatingPolicies || !kind.startsWith('MutatingAdmissionPolicy');
}

/** Names of the ConfigMaps that a Deployment mounts. */
function mountedBy(deployment: Stored<Deployment>): string[] {
  const { volumes = [] } = (deployment.spec?.template.spec ?? {}) as { volumes?: { configMap?: { name?: string } }[] };
  const { namespace } = deployment.metadata;
  return volumes.flatMap(({ configMap }) =>
    configMap?.name === undefined ? [] : [describeObject({ kind: 'ConfigMap', metadata: { name: configMap.name, namespace } })],
  );
}

/** The objects with the label of setup, in the order in which they can be removed. */
async function listMarked(cluster: Cluster, facts: Pick<ClusterFacts, 'hasMutatingPolicies'>): Promise<Removable[]> {
  const limit = pLimit(parallelRequests);
  const types = prunedKinds.filter((type) => isServed(type, facts));
  const lists = await Promise.all(
    types.map((type) =>
      limit(async () => {
        const { items } = await listOrNone(cluster, type, selector);
        return items.map((item) => ({ name: describeObject({ ...item, kind: type.kind }), type, object: item }));
      }),
    ),
  );
  return lists.flat();
}

/**
 * The objects of earlier setups to remove, of all kinds except those that hold data of people and apps. Objects of another choice of gateway and
 * registry stay, with the ConfigMaps that they mount.
 */
export async function planPrune(
  cluster: Cluster,
  facts: Pick<ClusterFacts, 'hasMutatingPolicies'>,
  parts: Pick<PartObjects, 'objects' | 'alternatives'>[],
): Promise<Removable[]> {
  const wanted = new Set(parts.flatMap(({ objects }) => objects.map(describeObject)));
  const other = new Set(parts.flatMap(({ alternatives }) => alternatives.map(describeObject)).filter((name) => !wanted.has(name)));
  const marked = await listMarked(cluster, facts);
  const staying = marked.filter(({ name, type }) => type.kind === 'Deployment' && other.has(name));
  const mounted = new Set(staying.flatMap(({ object }) => mountedBy(object as Stored<Deployment>)));
  return marked.filter(({ name }) => !wanted.has(name) && !other.has(name) && !mounted.has(name));
}

/** Removes them; an object that somebody has created again since then stays. Returns the names of the removed ones. */
export async function prune(cluster: Cluster, objects: Removable[]): Promise<string[]> {
  const removed: string[] = [];
  for (const { name, type, object } of objects) {
    const { namespace, name: objectName, uid } = object.metadata;
    const isGone = await cluster.delete(type, namespace, objectName, { uid }).catch((error: unknown) => {
      if (isConflict(error)) return false;
      throw error;
    });
    if (isGone) removed.push(name);
  }
  return removed;
}
