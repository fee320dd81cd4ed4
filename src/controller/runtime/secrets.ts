// Secrets that the controller maintains. They are never watched: this brings one to its desired form, and says how often to check it.

import type { Stored } from '../../lib/api/object.ts';
import { secretType } from '../../lib/api/core.ts';
import type { Secret } from '../../lib/api/core.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { isEqual } from './merge-patch.ts';
import type { Context } from './reconciler.ts';
import { WaitingError } from './result.ts';

/** Secrets are never watched, so they are read at intervals: at most this many reads per second for all of them. */
const looksPerSecond = 4;
const shortestPaceMs = 3_500;
/** A finalizer of somebody else can hold a Secret for ever. */
const lastingMs = 60_000;

/** Length of keys and values as a Secret stores them: base64 has four characters for three bytes. */
export const charactersOf = (data: Record<string, string>): number =>
  Object.entries(data).reduce((sum, [key, value]) => sum + key.length + value.length, 0);

/** The interval at which the Secrets of `owners` objects, `each` per object, are read again; at least `shortestMs`. */
export function paceMs(owners: number, each: number, shortestMs = shortestPaceMs): number {
  return Math.max(shortestMs, (owners * each * 1_000) / looksPerSecond);
}

/**
 * Creates or updates the Secret. Where its type or its immutability forbids a change, it is deleted and created again.
 *
 * @param isGood whether the existing Secret is good enough although it differs
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
  // A replacement, not a patch, because unwanted keys must be removed.
  return context.cluster.replace(secretType, { ...live, data: wanted.data ?? {} }, { signal });
}

async function createSecret(context: Context, wanted: Secret): Promise<Stored<Secret>> {
  try {
    return await context.cluster.create(secretType, wanted, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    throw new WaitingError('SecretInMotion', `The Secret ${wanted.metadata.name ?? ''} is being replaced.`, 300, lastingMs);
  }
}
