// The last operation of a service instance, as cf words it.

import { annotations } from './group.ts';
import type { CFServiceInstance } from './types.generated.ts';

type Operation = NonNullable<NonNullable<CFServiceInstance['status']>['lastOperation']>;

/**
 * A user-provided instance is there as soon as it is written, whether the controller has seen it or not; one that takes its credentials from a
 * Secret of somebody else waits for that.
 */
export function lastOperationOf({ spec, metadata, status }: CFServiceInstance): Pick<Operation, 'type' | 'state'> {
  if (status?.lastOperation !== undefined) return status.lastOperation;
  const waits = spec.type === 'managed' || metadata.annotations?.[annotations.fromSecret] !== undefined;
  return { type: 'create', state: waits ? 'in progress' : 'succeeded' };
}
