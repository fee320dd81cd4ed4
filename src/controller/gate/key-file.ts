// Reads the gate's HMAC keys from a mounted Secret, again and again, so that a new key is valid without a restart.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { registryKeyFields } from '../../lib/api/registry-credentials.ts';

const rereadMs = 2000;
/** Shorter keys are refused: only the password separates two spaces. */
const minimumBytes = 32;

function read(folder: string, name: string): Buffer | undefined {
  try {
    return readFileSync(join(folder, name));
  } catch {
    return undefined;
  }
}

/** The keys that are valid now: the one that signs, the next one, and the previous one until it expires. */
function keysIn(folder: string, nowSeconds: number): Buffer[] {
  const until = Number(read(folder, registryKeyFields.previousUntil)?.toString() ?? 0);
  const names = [registryKeyFields.current, registryKeyFields.next, ...(nowSeconds <= until ? [registryKeyFields.previous] : [])];
  const keys = names.map((name) => read(folder, name));
  return keys.filter((key): key is Buffer => key !== undefined && key.length >= minimumBytes);
}

/** Makes a reader of the keys that reads the folder at most every two seconds. It returns no key while none is long enough. */
export function keyReader(folder: string, now: () => number = Date.now): () => Buffer[] {
  let keys: Buffer[] = [];
  let readAt = -Infinity;
  return () => {
    if (now() - readAt < rereadMs) return keys;
    readAt = now();
    keys = keysIn(folder, Math.floor(now() / 1000));
    return keys;
  };
}
