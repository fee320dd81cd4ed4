// The list of all commands, as text under headings and as rows.

import { cfCommands, kfCommands, type CfCommand } from '../cf/cf-commands.ts';
import { summaries } from '../cf/summaries.generated.ts';
import type { Block } from '../views/block.ts';

const indent = '   ';

const summaryOf = ([name, , label]: CfCommand): string => (label === '' ? (summaries[name] ?? '') : label);

export interface OverviewOptions {
  bin: string;
  version: string;
  /** `help -a`: also the cf commands that kf does not have yet. */
  all: boolean;
  /** True for a command that kf has. */
  isAvailable: (name: string) => boolean;
  /** The commands of installed plugins. */
  ofPlugins?: readonly PluginCommand[];
}

interface PluginCommand {
  name: string;
  aliases: readonly string[];
  summary: string;
}

export interface CommandRow {
  group: string;
  name: string;
  alias?: string;
  summary: string;
  /** False for a cf command that kf does not have yet. */
  available: boolean;
}

/** The commands as `kf help --json` and the table of the README show them, in the order of `kf help`. */
export function listCommands({ all, isAvailable, ofPlugins = [] }: Omit<OverviewOptions, 'bin' | 'version'>): CommandRow[] {
  const own = Object.entries({ KF: kfCommands, ...cfCommands }).flatMap(([group, commands]) =>
    commands
      .map((command) => {
        const [name, alias] = command;
        return { group, name, ...(alias === '' ? {} : { alias }), summary: summaryOf(command), available: isAvailable(name) };
      })
      .filter(({ available }) => all || available),
  );
  const others = ofPlugins.map(({ name, aliases, summary }): CommandRow => {
    const alias = aliases.length === 0 ? {} : { alias: aliases.join(', ') };
    return { group: 'INSTALLED PLUGIN COMMANDS', name, ...alias, summary, available: true };
  });
  return [...own, ...others];
}

function cells({ name, alias, summary, available }: CommandRow): string[] {
  return [`${indent}${alias === undefined ? name : `${name}, ${alias}`}`, available ? summary : `${summary} (not yet)`];
}

/** What `kf help` prints: all commands under their headings. */
export function overviewHelp({ bin, version, ...listed }: OverviewOptions): Block[] {
  const blocks: Block[] = [
    { type: 'line', text: `${bin} version ${version}: cf push on any Kubernetes cluster` },
    { type: 'line', text: `Usage: ${bin} COMMAND [ARGUMENTS] [FLAGS]; help of one command: ${bin} help COMMAND` },
    { type: 'line', text: `To begin: ${bin} setup (once per cluster), then ${bin} push APP -p PATH` },
    { type: 'line', text: '' },
  ];
  for (const [group, rows] of Map.groupBy(listCommands(listed), (row) => row.group)) {
    blocks.push({ type: 'line', text: `${group}:` }, { type: 'table', rows: rows.map(cells), header: false });
    blocks.push({ type: 'line', text: '' });
  }
  if (!listed.all) blocks.push({ type: 'line', text: `All cf commands, also those to come: ${bin} help -a` });
  return blocks;
}
