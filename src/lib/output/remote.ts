// Joins a program in an instance with the streams of this process, byte for byte.

import { spawnSync } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';

interface RemoteProgram {
  stdin: Writable | undefined;
  stdout: Readable;
  stderr: Readable;
  exitCode: Promise<number>;
  resize: (size: { columns: number; rows: number }) => Promise<void>;
  close: () => void;
}

/** How a remote program ended, and what it wrote if that was kept. */
export interface RemoteEnd {
  exitCode: number;
  stdout?: string;
  stderr?: string;
}

/** stdin is a terminal. */
export const isOnTerminal = (): boolean => process.stdin.isTTY === true;

const endOfInput = '\x04';

/** Passes every key on. Node leaves our terminal to begin a new line at each line feed, which breaks programs that draw on the whole screen. */
function makeRaw(input: NodeJS.ReadStream): void {
  input.setRawMode(true);
  // Without stty everything else works. Node restores this setting, too.
  if (process.platform !== 'win32') spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
}

/** Sends our input. Returns what ends that. */
function sendInput({ stdin }: RemoteProgram, tty: boolean): () => void {
  const input = process.stdin;
  if (stdin === undefined) return () => undefined;
  const isRaw = tty && input.isTTY === true;
  // The program may end before it has read everything.
  stdin.on('error', () => undefined);
  if (isRaw) makeRaw(input);
  // A program on a terminal sees the end of its input only as this character.
  const end = (): void => void (tty && stdin.write(endOfInput));
  input.once('end', end);
  input.pipe(stdin, { end: !tty });
  return () => {
    input.off('end', end).unpipe(stdin).pause();
    if (isRaw) input.setRawMode(false);
  };
}

/** Reports the size of our terminal, now and after each change. */
function sendSize(remote: RemoteProgram): () => void {
  const output = process.stdout;
  const send = (): void => {
    const { columns = 0, rows = 0 } = output;
    if (columns > 0 && rows > 0) remote.resize({ columns, rows }).catch(() => undefined);
  };
  send();
  output.on('resize', send);
  return () => void output.off('resize', send);
}

/**
 * Runs until the program ends.
 * @param tty the program has a terminal; ours passes every key to it
 * @param keep its output is returned and not written
 */
export async function joinStreams(remote: RemoteProgram, { tty, keep }: { tty: boolean; keep: boolean }): Promise<RemoteEnd> {
  const release = [sendInput(remote, tty), ...(tty ? [sendSize(remote)] : [])];
  try {
    if (keep) {
      const [exitCode, stdout, stderr] = await Promise.all([remote.exitCode, buffer(remote.stdout), buffer(remote.stderr)]);
      return { exitCode, stdout: stdout.toString('utf8'), stderr: stderr.toString('utf8') };
    }
    remote.stdout.pipe(process.stdout, { end: false });
    remote.stderr.pipe(process.stderr, { end: false });
    const [exitCode] = await Promise.all([remote.exitCode, finished(remote.stdout), finished(remote.stderr)]);
    return { exitCode };
  } finally {
    for (const end of release) end();
    remote.close();
  }
}
