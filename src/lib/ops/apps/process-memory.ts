// The memory of a process that ran out of it, for the command that gives it more.

import { webProcess } from '../../api/app.ts';
import type { CauseCode } from '../../api/causes.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';

/** What the process of a failed deployment has; undefined for other failures. */
export async function memoryAskedFor(
  cluster: Cluster,
  { metadata }: Stored<CFApp>,
  code: CauseCode,
  type = webProcess,
  signal?: AbortSignal,
): Promise<number | undefined> {
  if (code !== 'oom') return undefined;
  const selection = { ns: metadata.namespace, labelSelector: `${labels.appGuid}=${metadata.name}` };
  const { items } = await cluster.list(kinds.process, { ...selection, ...defined({ signal }) }).catch((error: unknown) => {
    // If no hint can be made, that is not another failure.
    if (error instanceof KfError) return { items: [] };
    throw error;
  });
  return items.find(({ spec }) => spec.processType === type)?.spec.memoryMB;
}
