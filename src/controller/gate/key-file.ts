// The gate's HMAC key from a mounted Secret, read again so that a new key counts without a restart.

import { readFileSync } from 'node:fs';

const rereadMs = 2000;
/** Shorter keys are refused: the password is the only thing between two spaces. */
const minimumBytes = 32;

/** A reader of the key that looks at the file at most every two seconds; undefined when it is missing or too short. */
export function keyReader(file: string, now: () => number = Date.now): () => Buffer | undefined {
  let key: Buffer | undefined;
  let readAt = -Infinity;
  return () => {
    if (now() - readAt < rereadMs) return key;
    readAt = now();
    try {
      const bytes = readFileSync(file);
      key = bytes.length < minimumBytes ? undefined : bytes;
    } catch {
      key = undefined;
    }
    return key;
  };
}
