// Secrets that the controller keeps. They are never watched: how to bring one to its wanted form, and how often to look again.

import type { Stored } from '../../lib/api/object.ts';
import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { isEqual } from './merge-patch.ts';
import type { Context } from './reconciler.ts';
import { WaitingError } from './result.ts';

/** Secrets are never watched, so they are looked at again and again; this many looks per second at most, over all of them. */
const looksPerSecond = 4;
const shortestPaceMs = 3_500;

/** How long to wait before the Secrets of one of `owners` objects, `each` per object, are looked at again. */
export function paceMs(owners: number, each: number): number {
  return Math.max(shortestPaceMs, (owners * each * 1_000) / looksPerSecond);
}

/**
 * The Secret as wanted; deleted and made again where its type or its immutability forbids a change.
 *
 * @param isGood whether the Secret that is there will do as it is, although it is not the same
 */
export async function ensureSecret(
  context: Context,
  wanted: Secret,
  isGood: (live: Secret) => boolean = () => false,
): Promise<Stored<Secret>> {
  const { namespace, name = '' } = wanted.metadata;
  const { signal } = context;
  const live = await context.cluster.get(secretType, namespace, name, signal);
  if (live !== undefined && (live.type ?? 'Opaque') === (wanted.type ?? 'Opaque') && isGood(live)) return live;
  if (live === undefined) return createSecret(context, wanted);
  const isSameType = (live.type ?? 'Opaque') === (wanted.type ?? 'Opaque');
  if (isSameType && isEqual(live.data ?? {}, wanted.data ?? {})) return live;
  if (!isSameType || live.immutable === true) {
    await context.cluster.delete(secretType, namespace, name, { uid: live.metadata.uid, signal });
    return createSecret(context, wanted);
  }
  // A replacement, not a patch: keys that are wanted no longer have to go.
  return context.cluster.replace(secretType, { ...live, data: wanted.data ?? {} }, { signal });
}

async function createSecret(context: Context, wanted: Secret): Promise<Stored<Secret>> {
  try {
    return await context.cluster.create(secretType, wanted, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    throw new WaitingError('SecretInMotion', `The Secret ${wanted.metadata.name ?? ''} is being replaced.`, 300);
  }
}
