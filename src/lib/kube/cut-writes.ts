// Writes whose answer was lost with the connection. Such a write is sent again: when the server refuses the second one because the object exists or
// has changed, the object tells whether that was the first one.

import type { KubeObject, Stored } from '../api/object.ts';
import { isAlreadyExists, isConflict } from './errors.ts';

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Metadata that the server sets by itself, or that only says which version was meant. */
const ofServer = new Set(['resourceVersion', 'creationTimestamp', 'managedFields', 'generation', 'selfLink']);

/**
 * True when an object has everything that was sent; the server may have added defaults. A null of a merge patch stands for an absent field.
 * @param live the value as the server has it
 * @param sent a JSON value, or a field of one
 */
export function holds(live: unknown, sent: unknown): boolean {
  if (sent === null || sent === undefined) return live === null || live === undefined;
  if (Array.isArray(sent)) return Array.isArray(live) && live.length === sent.length && sent.every((one, at) => holds(live[at], one));
  if (!isRecord(sent)) return live === sent;
  const fields = Object.entries(sent);
  // The server leaves out empty objects.
  if (live === undefined) return fields.every(([, value]) => holds(undefined, value));
  return isRecord(live) && fields.every(([name, value]) => holds(live[name], value));
}

function holdsObject(live: KubeObject, sent: object): boolean {
  const { metadata, ...fields } = sent as KubeObject & Record<string, unknown>;
  const own = Object.entries(metadata ?? {}).filter(([name]) => !ofServer.has(name));
  return holds(live, fields) && holds(live.metadata, Object.fromEntries(own));
}

/**
 * Sends a write that may be repeated after a cut connection.
 * @param send sends it; calls its argument before it repeats the write without knowing whether the first one took effect
 * @param sent the object or merge patch
 * @param read the object as it is now
 * @throws the error of `send`; a 409 only when the object is not as the write would have left it
 */
export async function writtenOnce<T extends KubeObject>(
  send: (onRepeat: () => void) => Promise<Stored<T>>,
  sent: object,
  read: () => Promise<Stored<T> | undefined>,
): Promise<Stored<T>> {
  let repeated = false;
  try {
    return await send(() => (repeated = true));
  } catch (error) {
    if (!repeated || !(isAlreadyExists(error) || isConflict(error))) throw error;
    const live = await read().catch(() => undefined);
    if (live === undefined || !holdsObject(live, sent)) throw error;
    return live;
  }
}
