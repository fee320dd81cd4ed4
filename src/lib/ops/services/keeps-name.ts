// Two commands that create a service instance of one name at the same moment: the controller gives the name to one of them.

import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds, labels } from '../../api/group.ts';
import { sha224 } from '../../api/names.ts';
import type { Stored } from '../../api/object.ts';
import type { CFServiceInstance } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { waitForController } from '../controller-wait.ts';

const claimed = (instance: Stored<CFServiceInstance>): string => findCondition(instance, conditionTypes.claimed)?.status ?? 'Unknown';

/**
 * Whether a new instance keeps its name. If another one got it, the new one is deleted: it would get the name as soon as the other one is gone. The
 * controller is awaited only where another one of that name exists. Without a controller both stay.
 */
export async function keepsName(session: SpaceSession, instance: Stored<CFServiceInstance>): Promise<boolean> {
  const { cluster, space, signal } = session;
  const { displayName } = instance.spec;
  const { name, uid } = instance.metadata;
  const labelSelector = `${labels.displayName}=${sha224(displayName)}`;
  const { items } = await cluster.list(kinds.serviceInstance, { ns: space.guid, labelSelector, signal });
  const isOther = ({ metadata }: Stored<CFServiceInstance>): boolean => metadata.uid !== uid && metadata.deletionTimestamp === undefined;
  if (!items.some(isOther)) return true;
  const written = { type: kinds.serviceInstance, object: instance, what: `Service instance '${displayName}'` };
  const isJudged = (seen: Stored<CFServiceInstance>): boolean => claimed(seen) !== 'Unknown';
  const judged = await waitForController(session, written, isJudged, () => ({ type: 'awaiting-controller' })).catch((error: unknown) => {
    if (error instanceof KfError && error.code === 'accepted') return undefined;
    throw error;
  });
  if (judged === undefined || claimed(judged) === 'True') return true;
  await cluster.delete(kinds.serviceInstance, space.guid, name, { uid });
  return false;
}
