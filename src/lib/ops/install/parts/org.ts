// Default domain and org, and the data of `kf buildpacks`. An uninstall deletes all orgs while the controller, which empties them, still runs.

import { deploymentType } from '../../../api/core.ts';
import { conditionTypes, kinds } from '../../../api/group.ts';
import { findCondition } from '../../../api/conditions.ts';
import type { CFOrg } from '../../../api/types.generated.ts';
import { controllerName } from '../../../../templates/setup/controller.ts';
import { systemNamespace } from '../../../../templates/setup/options.ts';
import { buildDefaults } from '../defaults.ts';
import type { Part } from '../part.ts';
import { listOrNone, waitUntilGone, type Removal } from '../removal.ts';
import { waitForCondition } from '../waits.ts';

function describeOrg(org: CFOrg): string {
  const why = findCondition(org, conditionTypes.ready);
  return `org ${org.spec.displayName}${why?.reason === 'Deleting' ? ` (${why.message})` : ''}`;
}

/**
 * Deletes the orgs while the controller runs, which empties their spaces and deletes their namespaces. Without a controller there is nothing to
 * wait for.
 */
async function removeOrgs(removal: Removal): Promise<void> {
  const { cluster, result } = removal;
  const { items } = await listOrNone(cluster, kinds.org);
  await Promise.all(
    items.map((org) => cluster.delete(kinds.org, org.metadata.namespace, org.metadata.name, { propagation: 'Background' })),
  );
  result.orgs = items.length;
  const controller = await cluster.get(deploymentType, systemNamespace, controllerName);
  if ((controller?.status?.availableReplicas ?? 0) === 0) return;
  await waitUntilGone(removal, 'the orgs', async () => (await listOrNone(cluster, kinds.org)).items.map(describeOrg));
}

/** These kinds get no condition to wait for. */
const unwatched = ['RunnerInfo', 'BuilderInfo'];

export const part: Part = {
  name: 'org',
  requires: ['controller', 'gateway', 'pages'],
  step: 'org',
  objects: ({ plan }) => buildDefaults(plan).root,
  unprinted: true,
  after: async (run) => {
    const objects = run.changes('org').map(({ object }) => object);
    await waitForCondition(
      run,
      objects.filter(({ kind }) => !unwatched.includes(kind)),
      'Ready',
      60_000,
    );
  },
  remove: removeOrgs,
};
