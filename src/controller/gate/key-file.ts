// The gate's HMAC keys from a mounted Secret, read again so that a new key counts without a restart.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { registryKeyFields } from '../../lib/api/registry-credentials.ts';

const rereadMs = 2000;
/** Shorter keys are refused: the password is the only thing between two spaces. */
const minimumBytes = 32;

function read(folder: string, name: string): Buffer | undefined {
  try {
    return readFileSync(join(folder, name));
  } catch {
    return undefined;
  }
}

/** What counts at a moment: the key that signs, the next one, and the one before until its time. */
function keysIn(folder: string, nowSeconds: number): Buffer[] {
  const until = Number(read(folder, registryKeyFields.previousUntil)?.toString() ?? 0);
  const names = [registryKeyFields.current, registryKeyFields.next, ...(nowSeconds <= until ? [registryKeyFields.previous] : [])];
  const keys = names.map((name) => read(folder, name));
  return keys.filter((key): key is Buffer => key !== undefined && key.length >= minimumBytes);
}

/** A reader of the keys that looks into the folder at most every two seconds; none while there is none that is long enough. */
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
