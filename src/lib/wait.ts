// Waiting: the only polling loop, pauses that end with the command, and back-off.

import { KfError } from './errors.ts';

export interface WaitOptions {
  signal?: AbortSignal | undefined;
  timeoutMs: number;
  /** Between two calls; default 500. */
  intervalMs?: number;
  /** What is awaited, as the end of "Timed out after 5 s waiting for …". */
  describe: string | (() => string);
  /** The error when the time is up; default: a KfError `timeout` with `describe`. */
  late?: () => Error;
}

/** The error of an aborted signal for users: its own KfError, a time limit, or Ctrl-C. */
export function abortError(signal: AbortSignal): KfError {
  const reason: unknown = signal.reason;
  if (reason instanceof KfError) return reason;
  if (reason instanceof Error && reason.name === 'TimeoutError')
    return new KfError('timeout', 'The time limit was reached.', { cause: reason });
  return new KfError('interrupted', 'The command was interrupted.', { exitCode: 130, cause: reason });
}

/** Throws the {@link abortError} of the signal if it is aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortError(signal);
}

/** A pause in milliseconds; rejects at once when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(abortError(signal));
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      if (signal !== undefined) reject(abortError(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Node's timers have 32 bits; a longer time, meant as "never", would end at once. */
const longestTimerMs = 2 ** 31 - 1;

/** A time limit that a timer supports: the given one, at most 24 days. */
export const timerMs = (ms: number): number => Math.min(ms, longestTimerMs);

/** Milliseconds before try number `attempt` (0 = first repeat): doubling from `baseMs` to `maxMs`, a quarter of it random. */
export function backoffMs(attempt: number, { baseMs = 100, maxMs = 5_000 }: { baseMs?: number; maxMs?: number } = {}): number {
  const full = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
  return full * (0.75 + Math.random() * 0.25);
}

/** `90 s` as `1 min 30 s`. */
function inWords(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 1) return `${String(ms)} ms`;
  if (seconds < 60) return `${String(seconds)} s`;
  const rest = seconds % 60;
  return rest === 0 ? `${String((seconds - rest) / 60)} min` : `${String((seconds - rest) / 60)} min ${String(rest)} s`;
}

/** The error of a wait whose time was up. */
export function timeoutError(timeoutMs: number, describe: WaitOptions['describe'], cause?: unknown): KfError {
  const what = typeof describe === 'string' ? describe : describe();
  return new KfError('timeout', `Timed out after ${inWords(timeoutMs)} waiting for ${what}.`, { details: { timeoutMs }, cause });
}

/** The result of a wait; undefined when its time was up. */
export async function unlessLate<T>(waiting: Promise<T>): Promise<T | undefined> {
  try {
    return await waiting;
  } catch (error) {
    if (error instanceof KfError && error.code === 'timeout') return undefined;
    throw error;
  }
}

/** Calls `check` repeatedly until it returns a value, the time is up (KfError `timeout`) or the signal aborts. */
export async function waitFor<T>(check: () => Promise<T | undefined>, options: WaitOptions): Promise<T> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    throwIfAborted(options.signal);
    const answer = await check();
    if (answer !== undefined) return answer;
    const left = deadline - performance.now();
    if (left <= 0) throw options.late?.() ?? timeoutError(options.timeoutMs, options.describe);
    await sleep(Math.min(options.intervalMs ?? 500, left), options.signal);
  }
}
