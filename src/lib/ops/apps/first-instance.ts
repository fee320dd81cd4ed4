// The condition that `--no-wait` waits for: like cf, only the first instance of the new version of process web counts.

import { webProcess } from '../../api/app.ts';
import type { DeploymentStatus } from '../../api/types.generated.ts';

/**
 * Whether the first new instance of web serves, or nothing is left to do. The status is about the process with the least progress, and about web
 * if several are equal. So a status about another process means that web is as far or further.
 */
export function hasFirstInstance({ phase, reason, process, generations = [] }: DeploymentStatus): boolean {
  if (phase === 'Serving') return true;
  if (phase !== 'Pending' && phase !== 'Starting') return false;
  // Until each process has looked at the change, the generations in the status are the earlier ones.
  if (reason === 'Reconciling' || reason === 'DropletNotAssigned') return false;
  const web = generations.find((generation) => generation.process === webProcess && generation.state === 'Current');
  if (web === undefined || web.ready === 0) return false;
  // A web whose first answer is awaited starts too, and a process whose instances have no node yet is behind it.
  if (process !== webProcess) return web.verified === true || web.served === true;
  // With a ready instance this is the reason only once it has answered. Any other one may be about the instances that still start.
  return phase === 'Starting' && (web.verified === true || reason === 'Instances');
}
