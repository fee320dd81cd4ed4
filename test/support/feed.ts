// The input of a program that a test starts.

import type { ChildProcess } from 'node:child_process';

/** Writes the input of a program. A program that already has its answer may end before the input does, even before an empty one. */
export function feed({ stdin }: ChildProcess, input = ''): void {
  stdin?.on('error', () => undefined);
  stdin?.end(input);
}
