// The kinds of kf, and those of the Gateway API if the cluster has none.

import { resource, type KubeObject, type ResourceType, type Stored } from '../../../api/object.ts';
import { KfError } from '../../../errors.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { readManifests } from '../assets.ts';
import { kindNamed } from '../kinds.ts';
import type { Part, PartInput } from '../part.ts';
import { listOrNone, selector, waitUntilGone, type Removal } from '../removal.ts';
import { waitForCondition } from '../waits.ts';

interface Crd extends KubeObject {
  status?: { conditions?: { type: string; status: string; reason?: string }[] };
  spec: { group: string; names: { plural: string; kind: string }; scope: string; versions: { name: string; served: boolean }[] };
}

const crdType = kindNamed('CustomResourceDefinition') as ResourceType<Crd>;

async function objects({ served }: PartInput): Promise<KubeObject[]> {
  const [own, gateway] = await Promise.all([readManifests('crds'), served.hasGatewayApi ? [] : readManifests('gateway-api')]);
  return [...own, ...gateway];
}

/** Kinds that setup installed stay while somebody else's objects use them. */
async function removeKinds({ cluster, result }: Removal): Promise<void> {
  const { items } = await listOrNone(cluster, crdType, selector);
  for (const crd of items) {
    const { group, names, scope, versions } = crd.spec;
    const served = versions.find((version) => version.served)?.name ?? '';
    const left = await listOrNone(cluster, resource(group, served, names.kind, names.plural, scope === 'Namespaced'));
    const isOurs = group.endsWith('cloudfoundry.org');
    if (!isOurs && left.items.length > 0) {
      result.kept.push({
        object: `CustomResourceDefinition ${crd.metadata.name}`,
        reason: `${left.items.length} object(s) of this kind are not of kf`,
      });
      continue;
    }
    await cluster.delete(crdType, undefined, crd.metadata.name);
    result.removed.push(`CustomResourceDefinition ${crd.metadata.name}`);
  }
}

/**
 * An API server that could not list the objects of a kind tries again much later, after minutes: "storage is (re)initializing", Kubernetes 1.36.
 * It tries at once when the kind changes.
 */
async function retryDeletion(cluster: Cluster, crd: Stored<Crd>): Promise<void> {
  const hasFailed =
    crd.status?.conditions?.some(({ type, reason }) => type === 'Terminating' && reason === 'InstanceDeletionFailed') ?? false;
  if (!hasFailed) return;
  const metadata = { annotations: { 'kf.cloudfoundry.org/deletion-tried-after': crd.metadata.resourceVersion } };
  await cluster.mergePatch(crdType, undefined, crd.metadata.name, { metadata }).catch((error: unknown) => {
    if (!(error instanceof KfError && error.code === 'not-found')) throw error;
  });
}

/** A kind is gone only when its last object is; a setup before that would see the kind as existing. */
async function waitForKinds(removal: Removal): Promise<void> {
  const kept = removal.result.kept.map(({ object }) => object);
  await waitUntilGone(removal, 'the custom resource definitions', async () => {
    const { items } = await listOrNone(removal.cluster, crdType, selector);
    for (const crd of items) await retryDeletion(removal.cluster, crd);
    return items.map(({ metadata }) => `CustomResourceDefinition ${metadata.name}`).filter((named) => !kept.includes(named));
  });
}

export const part: Part = {
  name: 'kinds',
  requires: ['registry'],
  step: 'kinds',
  objects,
  after: async (run) => {
    const kinds = run.changes('kinds').map(({ object }) => object);
    await waitForCondition(run, kinds, 'Established', 30_000);
  },
  remove: async (removal) => {
    await removeKinds(removal);
    return () => waitForKinds(removal);
  },
};
