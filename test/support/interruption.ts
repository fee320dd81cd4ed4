// What a demo does when it is interrupted.

import type { ChildProcess } from 'node:child_process';

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
