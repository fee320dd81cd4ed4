// The command for a process that ran out of memory.

import { webProcess } from '../../api/app.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, DeploymentStatus } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';

/** The command, without the name of the program, that doubles the memory of a process that ran out of it; empty for other failures. */
export async function moreMemory(
  cluster: Cluster,
  { metadata, spec: { displayName } }: Stored<CFApp>,
  { reason, process: type = webProcess }: DeploymentStatus,
  signal?: AbortSignal,
): Promise<string[]> {
  if (reason !== 'OutOfMemory') return [];
  const selection = { ns: metadata.namespace, labelSelector: `${labels.appGuid}=${metadata.name}` };
  const { items } = await cluster.list(kinds.process, { ...selection, ...defined({ signal }) }).catch((error: unknown) => {
    // If no hint can be made, that is not another failure.
    if (error instanceof KfError) return { items: [] };
    throw error;
  });
  const process = items.find(({ spec }) => spec.processType === type);
  if (process === undefined) return [];
  return [`scale ${displayName}${type === webProcess ? '' : ` --process ${type}`} -m ${process.spec.memoryMB * 2}M`];
}
