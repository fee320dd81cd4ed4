// Sends a signal to a process at a given time, and reports the result.

import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Interrupted {
  code: number | null;
  /** From the signal to the end; 0 if it had ended before. */
  milliseconds: number;
  stdout: string;
  stderr: string;
}

/** Sends `signal` after `afterMs`, unless the process has ended by then. */
export async function interrupted(child: ChildProcess, signal: NodeJS.Signals, afterMs: number): Promise<Interrupted> {
  const out = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (out.stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (out.stderr += text));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  await Promise.race([sleep(afterMs), ended]);
  const hit = performance.now();
  child.kill(signal);
  const code = await ended;
  return { code, milliseconds: performance.now() - hit, ...out };
}
