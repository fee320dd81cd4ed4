// Waits in tests: always for a described condition, never for a fixed time.

import { setTimeout as sleep } from 'node:timers/promises';
import { reportIfSlow } from './figures.ts';

/**
 * How long a test of this ring waits for a named condition (vitest.config.ts). The limit only makes the error name the condition; no test asserts
 * a time.
 */
export const patienceMs = Number(process.env['KF_TEST_PATIENCE_MS'] ?? '30000');

/** Calls `look` until it returns a value, and returns that. @throws Error naming what was awaited and the last failure */
export async function until<T>(what: string, look: () => Promise<T | undefined | false>, timeoutMs = patienceMs): Promise<T> {
  const started = Date.now();
  const deadline = started + timeoutMs;
  let last: unknown;
  while (Date.now() < deadline) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) {
        reportIfSlow(what, Date.now() - started);
        return found;
      }
    } catch (error) {
      last = error;
    }
    await sleep(200);
  }
  throw new Error(`waited ${timeoutMs / 1000} s for ${what}`, { cause: last });
}
