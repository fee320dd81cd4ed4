// `help`: all commands by heading.

import { cfCommands, kfCommands, type CfCommand } from '../cf/cf-commands.ts';
import { summaries } from '../cf/summaries.generated.ts';
import type { Block } from '../views/block.ts';

const indent = '   ';

const summaryOf = ([name, , label]: CfCommand): string => (label === '' ? (summaries[name] ?? '') : label);

function row(command: CfCommand, isThere: (name: string) => boolean): string[] {
  const [name, alias] = command;
  const label = summaryOf(command);
  return [`${indent}${alias === '' ? name : `${name}, ${alias}`}`, isThere(name) ? label : `${label} (not yet)`];
}

export interface OverviewOptions {
  bin: string;
  version: string;
  /** `help -a`: also what kf lacks yet. */
  all: boolean;
  isThere: (name: string) => boolean;
}

export interface CommandRow {
  group: string;
  name: string;
  alias?: string;
  summary: string;
  /** False for a cf command that kf lacks yet. */
  available: boolean;
}

/** `kf help --json`, and the table of the README. */
export function listCommands({ all, isThere }: Pick<OverviewOptions, 'all' | 'isThere'>): CommandRow[] {
  return Object.entries({ KF: kfCommands, ...cfCommands }).flatMap(([group, commands]) =>
    commands
      .map((command) => {
        const [name, alias] = command;
        return { group, name, ...(alias === '' ? {} : { alias }), summary: summaryOf(command), available: isThere(name) };
      })
      .filter(({ available }) => all || available),
  );
}

/** `kf help`: all commands by heading. */
export function overviewHelp({ bin, version, all, isThere }: OverviewOptions): Block[] {
  const groups = Object.entries({ KF: kfCommands, ...cfCommands });
  const blocks: Block[] = [
    { type: 'line', text: `${bin} version ${version}: cf push on any Kubernetes cluster` },
    { type: 'line', text: `Usage: ${bin} COMMAND [ARGUMENTS] [FLAGS]; help of one command: ${bin} help COMMAND` },
    { type: 'line', text: `To begin: ${bin} setup (once per cluster), then ${bin} push APP -p PATH` },
    { type: 'line', text: '' },
  ];
  for (const [group, commands] of groups) {
    const shown = commands.filter(([name]) => all || isThere(name));
    if (shown.length === 0) continue;
    blocks.push({ type: 'line', text: `${group}:` }, { type: 'table', rows: shown.map((command) => row(command, isThere)), header: false });
    blocks.push({ type: 'line', text: '' });
  }
  if (!all) blocks.push({ type: 'line', text: `All cf commands, also those to come: ${bin} help -a` });
  return blocks;
}
