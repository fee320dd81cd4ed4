// What programs that start clusters do when they are interrupted. A demo keeps its cluster; the rings, chaos and the bench remove theirs.

import { spawn, type ChildProcess } from 'node:child_process';
import { messageOf } from '../../src/lib/errors.ts';
import { toolsEnv } from '../../tools/environment.ts';

const running = new Set<ChildProcess>();
const interruption = Promise.withResolvers<never>();
interruption.promise.catch(() => undefined);
let exitCode: number | undefined;

/** True after SIGINT or SIGTERM, in a program of {@link removesClusters}. */
export const isInterrupted = (): boolean => exitCode !== undefined;

/** An interruption ends this child. */
export function tracked<T extends ChildProcess>(child: T): T {
  running.add(child);
  child.once('error', () => running.delete(child));
  child.once('exit', () => running.delete(child));
  return child;
}

/** Runs a program whose output is this one's. @returns its exit code @throws Error after an interruption, instead of starting it */
export function runProgram(command: string, args: string[], env: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    if (isInterrupted()) return reject(new Error('interrupted'));
    const child = tracked(spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'], env: toolsEnv(env) }));
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

/** The result of work that does not look for interruptions itself. @throws Error at an interruption; the work is left alone then */
export function unlessInterrupted<T>(work: () => Promise<T>): Promise<T> {
  return isInterrupted() ? interruption.promise : Promise.race([work(), interruption.promise]);
}

/**
 * Runs the main function of a program. SIGINT and SIGTERM end the tracked children and {@link unlessInterrupted}; who started a cluster removes it
 * then, and the program ends with the signal's exit code.
 */
export async function removesClusters(main: () => Promise<void>): Promise<void> {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.on(signal, () => {
      // What is left alone fails when its cluster goes, and must not end the removal.
      if (exitCode === undefined) process.on('unhandledRejection', () => undefined);
      exitCode ??= code;
      for (const child of running) child.kill(signal);
      interruption.reject(new Error(`interrupted by ${signal}`));
    });
  }
  try {
    await main();
  } catch (error) {
    if (exitCode === undefined) throw error;
    console.error(messageOf(error));
  }
  if (exitCode !== undefined) process.exit(exitCode);
}

/**
 * Passes `signal` to the running child and waits until that has ended; then the message is printed and this process ends with `code`. The signal comes twice
 * after a Ctrl-C, from the terminal and from the process that started this one, so only the first counts.
 * @param running gives the child that runs, if any
 */
export function endOn(signal: NodeJS.Signals, code: number, running: () => ChildProcess | undefined, message: string): void {
  let isEnding = false;
  process.on(signal, () => {
    if (isEnding) return;
    isEnding = true;
    const end = (): void => {
      console.error(`\n${message}`);
      process.exit(code);
    };
    const child = running();
    if (child === undefined) return end();
    child.removeAllListeners('exit').once('exit', end);
    child.kill(signal);
  });
}
