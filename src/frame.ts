// The environment of a running command: the streams, the variables, the interruption, and the name of the program.

import { openTerminal, type Terminal } from './lib/output/terminal.ts';

export interface Frame {
  terminal: Terminal;
  signal: AbortSignal;
  env: Readonly<Record<string, string | undefined>>;
  /** The name of the program as it was started. */
  bin: string;
}

/** The part of oclif's configuration that commands use; loading a complete one costs more than most commands. */
export interface Program {
  bin: string;
}

const frames = new WeakMap<Program, Frame>();

/** Commands that oclif runs with this configuration use this frame. */
export function setFrame(config: Program, frame: Frame): void {
  frames.set(config, frame);
}

/** The frame of that configuration, otherwise a new one with the process's own streams, as for a command that another oclif program runs. */
export async function frameOf(config: Program, argv: readonly string[]): Promise<Frame> {
  const known = frames.get(config);
  if (known !== undefined) return known;
  const { env, stdin, stdout } = process;
  const streams = { env, stdout, stderr: () => process.stderr, canAsk: () => stdin.isTTY && stdout.isTTY, json: argv.includes('--json') };
  return { terminal: await openTerminal(streams, config.bin), signal: new AbortController().signal, env, bin: config.bin };
}
