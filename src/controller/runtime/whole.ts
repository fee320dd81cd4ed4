// An object as the API server has it: the caches leave out what is read once only.

import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import type { Context } from './reconciler.ts';
import { WaitingError } from './result.ts';

/** The same object with everything that is in it. @throws WaitingError when it is gone, or another one has its name */
export async function wholeOf<T extends KubeObject>(context: Context, type: ResourceType<T>, { metadata }: Stored<T>): Promise<Stored<T>> {
  const { namespace, name, uid } = metadata;
  const whole = await context.cluster.get(type, namespace, name, context.signal);
  if (whole === undefined || whole.metadata.uid !== uid)
    throw new WaitingError('InMotion', `${type.kind} ${name} is just being deleted.`, 300);
  return whole;
}
