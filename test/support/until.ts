// Waits in tests: always for a described condition, never for a fixed time.

import { setTimeout as sleep } from 'node:timers/promises';
import { reportIfSlow } from './figures.ts';

/**
 * How long a test of this ring waits for a named condition (vitest.config.ts). The limit only makes the error name the condition; no test asserts
 * a time.
 */
export const patienceMs = Number(process.env['KF_TEST_PATIENCE_MS'] ?? '30000');

/**
 * The pause before the next look. Most looks are a process of `kubectl` or `kf`, 0.1 to 0.3 s of a processor each: looking all the time, tests in two
 * lanes would take a whole processor from what they wait for. @param lookMs how long the last one took
 */
export function pauseAfter(lookMs: number): number {
  return Math.min(Math.max(200, 3 * lookMs), 1500);
}

/**
 * Calls `look` until it returns a value, and returns that. The last look is when the time is over.
 * @throws Error naming what was awaited and the last failure
 */
export async function until<T>(what: string, look: () => Promise<T | undefined | false>, timeoutMs = patienceMs): Promise<T> {
  const started = Date.now();
  const deadline = started + timeoutMs;
  let last: unknown;
  for (;;) {
    const looked = Date.now();
    try {
      const found = await look();
      if (found !== undefined && found !== false) {
        reportIfSlow(what, Date.now() - started);
        return found;
      }
    } catch (error) {
      last = error;
    }
    const left = deadline - Date.now();
    if (left <= 0) break;
    await sleep(Math.min(left, pauseAfter(Date.now() - looked)));
  }
  throw new Error(`waited ${timeoutMs / 1000} s for ${what}`, { cause: last });
}
