// Owner references. The app owns its objects, so they are deleted with it.

import { kinds } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import type { CFApp } from '../../lib/api/types.generated.ts';
import { ownerReference } from '../../templates/metadata.ts';
import type { Context } from './reconciler.ts';

/** Makes the app the owner of the object, so that both are deleted together; no request if it already is. */
export async function ensureOwner<T extends KubeObject>(
  context: Context,
  type: ResourceType<T>,
  live: Stored<T>,
  app: Stored<CFApp>,
  controller = true,
): Promise<Stored<T>> {
  const { namespace, name, resourceVersion, ownerReferences = [] } = live.metadata;
  if (ownerReferences.some((owner) => owner.uid === app.metadata.uid)) return live;
  const hasController = ownerReferences.some((owner) => owner.controller === true);
  const owner = ownerReference(kinds.app, app, controller && !hasController);
  const patch = { metadata: { resourceVersion, ownerReferences: [...ownerReferences, owner] } };
  return context.cluster.mergePatch(type, namespace, name, patch, { signal: context.signal });
}

/** True when `owner` itself owns the object, and not an earlier object of the same name. */
export function isOwnedBy(object: KubeObject, owner: Stored): boolean {
  return object.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) === true;
}

/** True when an earlier object of the owner's name owns the object. The garbage collector deletes it. */
export function isOfEarlier(object: KubeObject, { metadata: { name, uid } }: Stored): boolean {
  return object.metadata.ownerReferences?.some((owner) => owner.name === name && owner.uid !== uid) === true;
}
