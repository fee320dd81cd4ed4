// Reads an object completely from the API server: the caches leave out fields that are needed only once.

import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import type { Context } from './reconciler.ts';
import { WaitingError } from './result.ts';

/** The same object with all its fields. @throws WaitingError when it is gone, or when another object has its name */
export async function wholeOf<T extends KubeObject>(context: Context, type: ResourceType<T>, { metadata }: Stored<T>): Promise<Stored<T>> {
  const { namespace, name, uid } = metadata;
  const whole = await context.cluster.get(type, namespace, name, context.signal);
  if (whole === undefined || whole.metadata.uid !== uid)
    throw new WaitingError('InMotion', `${type.kind} ${name} is just being deleted.`, 300);
  return whole;
}

/** The same object with all its fields, or as the cache has it when it is gone: without the fields that the cache leaves out. */
export async function wholeIfThere<T extends KubeObject>(context: Context, type: ResourceType<T>, known: Stored<T>): Promise<Stored<T>> {
  const { namespace, name, uid } = known.metadata;
  const whole = await context.cluster.get(type, namespace, name, context.signal);
  return whole?.metadata.uid === uid ? whole : known;
}
