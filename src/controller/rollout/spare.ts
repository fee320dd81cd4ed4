// The second instance of a process whose only one leaves its node.

import type { Stored } from '../../lib/api/object.ts';
import { annotations } from '../../lib/api/group.ts';
import type { AppWorkload } from '../../lib/api/types.generated.ts';
import { generationOf } from '../../templates/stateful-set.ts';
import type { Instance } from '../instances/instances.ts';

/** It has an instance more than the user wants. */
export const hasSpare = ({ metadata, spec }: Stored<AppWorkload>, desired: number): boolean =>
  metadata.annotations?.[annotations.spare] === 'true' && spec.instances > desired;

/** The second instance may be the only one that serves: the first one is on its way to another node. */
export function isMoving(workload: Stored<AppWorkload>, instances: readonly Instance[], desired: number): boolean {
  const hash = generationOf(workload);
  const hasMoved = instances.some(
    ({ generation, index, ready, leaving }) => generation === hash && index < desired && ready && leaving !== true,
  );
  return hasSpare(workload, desired) && !hasMoved;
}
