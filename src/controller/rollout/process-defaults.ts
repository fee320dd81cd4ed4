// Sets the defaults of a CFProcess once. The contract (4.6) sets them by admission; kf does it in the controller.

import type { Stored } from '../../lib/api/object.ts';
import { processDefaults } from '../../lib/api/app.ts';
import { kinds } from '../../lib/api/group.ts';
import type { CFProcess } from '../../lib/api/types.generated.ts';
import type { Context } from '../runtime/reconciler.ts';
import { defaultMemoryMB } from '../tenancy/quotas.ts';

/** Returns the process with its defaults; patches it only where something was empty. */
export async function withProcessDefaults(context: Context, process: Stored<CFProcess>): Promise<Stored<CFProcess>> {
  const { memoryMB, diskQuotaMB, healthCheck, processType } = process.spec;
  const patch = {
    ...(memoryMB === 0 ? { memoryMB: defaultMemoryMB(context, process.metadata.namespace) } : {}),
    ...(diskQuotaMB === 0 ? { diskQuotaMB: context.info().processDefaults.diskQuotaMB } : {}),
    ...(healthCheck.type === '' || healthCheck.data.timeoutSeconds === 0
      ? {
          healthCheck: {
            type: healthCheck.type === '' ? processDefaults.healthCheckType(processType) : healthCheck.type,
            data: {
              timeoutSeconds:
                healthCheck.data.timeoutSeconds === 0 ? processDefaults.healthCheckTimeoutSeconds : healthCheck.data.timeoutSeconds,
            },
          },
        }
      : {}),
  };
  if (Object.keys(patch).length === 0) return process;
  const { namespace, name, resourceVersion } = process.metadata;
  return context.cluster.mergePatch(
    kinds.process,
    namespace,
    name,
    { metadata: { resourceVersion }, spec: patch },
    { signal: context.signal },
  );
}
