// What `--no-wait` waits for: cf looks at the process web only, and there at the first instance of the new version.

import { webProcess } from '../../api/app.ts';
import type { DeploymentStatus } from '../../api/types.generated.ts';

/**
 * Whether the first new instance of web serves, or nothing is left to be done. The status tells how the process fares that is furthest behind,
 * and of several equal ones that of web: what is told of another one means that web is further.
 */
export function hasFirstInstance({ phase, reason, process, generations = [] }: DeploymentStatus): boolean {
  if (phase === 'Serving') return true;
  if (phase !== 'Pending' && phase !== 'Starting') return false;
  // Until each process has looked at the change, the generations are those from before.
  if (reason === 'Reconciling' || reason === 'DropletNotAssigned') return false;
  const web = generations.find((generation) => generation.process === webProcess && generation.state === 'Current');
  if (web === undefined || web.ready === 0) return false;
  if (process !== webProcess) return true;
  return phase === 'Starting' && (web.verified === true || reason !== 'Serving');
}
