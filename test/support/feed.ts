// The input of a program that a test starts.

import type { ChildProcess } from 'node:child_process';

/** Gives a program its input. One that has its answer may be gone before the input ends, even before an empty one. */
export function feed({ stdin }: ChildProcess, input = ''): void {
  stdin?.on('error', () => undefined);
  stdin?.end(input);
}
