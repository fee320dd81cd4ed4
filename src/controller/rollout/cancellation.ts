// After a cancellation: the generation that each process returns to. It has its own frozen environment, and nothing is made anew.

import { annotations, labels } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { AppWorkload, CFApp, CFProcess, Droplet } from '../../lib/api/types.generated.ts';

/** What a process should come to. */
export interface Target {
  workload: Stored<AppWorkload>;
  /** The app had no such process before the change that was canceled, so none of its instances stays. */
  isUnknownBefore: boolean;
}

/**
 * The newest generation that served before the app's change, which was canceled. Until the whole app serves, the controller keeps it for each process
 * (`RolloutState.decided`). A process that has not seen the change yet keeps what it has, unless the app as a whole never served by that.
 * @param droplet the app's droplet, which is the one from before again
 */
export function targetAfterCancellation(
  app: Stored<CFApp>,
  process: Stored<CFProcess>,
  workloads: readonly Stored<AppWorkload>[],
  droplet: Droplet | undefined,
): Target | undefined {
  const { id, canceled, generations = [] } = process.status?.rollout ?? {};
  const hashOf = ({ metadata }: Stored<AppWorkload>): string => metadata.labels?.[labels.generation] ?? '';
  const current = generations.find(({ state }) => state !== 'Old');
  const present = workloads.findLast((workload) => hashOf(workload) === current?.hash);
  const isOther = (workload: Stored<AppWorkload>): boolean => droplet !== undefined && workload.spec.image !== droplet.registry.image;
  const isSeen = id === app.metadata.annotations?.[annotations.deployId];
  if (isSeen && canceled === true && present !== undefined)
    return { workload: present, isUnknownBefore: current?.instances === 0 && isOther(present) };
  if (!isSeen && current?.served === true && present !== undefined && !isOther(present))
    return { workload: present, isUnknownBefore: false };
  const served = new Set(generations.filter((one) => one.served === true && one !== current).map(({ hash }) => hash));
  const before = workloads.findLast((workload) => served.has(hashOf(workload)));
  if (before !== undefined) return { workload: before, isUnknownBefore: false };
  const left = present ?? workloads.at(-1);
  return left === undefined ? undefined : { workload: left, isUnknownBefore: isSeen && isOther(left) };
}
