// Runs a command of kf in the test's own process, as it runs under oclif: a process for each takes four times as long.

import type { KfCommand } from '../../src/base-command.ts';
import type { CommandStatics } from '../../src/declared.ts';
import type { Frame, Program } from '../../src/frame.ts';
import { openTerminal } from '../../src/lib/output/terminal.ts';

interface CommandModule {
  default: (new (argv: string[], program: Program) => KfCommand<unknown>) & CommandStatics & { id: string };
}

/** A command of kf by its name. */
export const loadCommand = async (name: string): Promise<CommandModule['default']> =>
  ((await import(new URL(`../../src/commands/${name}.ts`, import.meta.url).href)) as CommandModule).default;

/** How a command ended that ran in this process. */
export interface RanHere {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * @param env all of its environment, with HOME and CF_HOME; the PATH is this process's
 * @param mostMs after which it is interrupted
 */
export async function runHere(
  [name = '', ...argv]: readonly string[],
  env: Readonly<Record<string, string>>,
  mostMs = 20_000,
): Promise<RanHere> {
  const Command = await loadCommand(name);
  Command.id = name;
  const out = { stdout: '', stderr: '' };
  const sink = (stream: 'stdout' | 'stderr') => ({ write: (text: string) => ((out[stream] += text), true) });
  const all = { PATH: process.env['PATH'] ?? '', ...env };
  const terminal = await openTerminal({ env: all, stdout: sink('stdout'), stderr: () => sink('stderr'), canAsk: () => false, json: false });
  const ended = new AbortController();
  const frame: Frame = { terminal, signal: AbortSignal.any([ended.signal, AbortSignal.timeout(mostMs)]), env: all, bin: 'kf' };
  const code = await new Command([...argv], { bin: 'kf' }).execute(frame);
  // Waits whose result is no longer needed end with the command.
  ended.abort();
  return { code, ...out };
}
