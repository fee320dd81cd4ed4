// What the table of kf's CLI says: names, aliases and headings, and what to use instead of what is not there.

import { cfCommands, findCommand } from '../../src/lib/cf/cf-commands.ts';
import { cfFlags } from '../../src/lib/cf/cf-flags.ts';
import { findForeign } from '../../src/lib/cf/plugin-commands.ts';
import type { CfCommandFacts } from './data.ts';
import type { OwnFlag } from './own.ts';

export interface OwnTable {
  /** Headings with names and aliases, in the order of `kf help -a`. */
  groups: Readonly<Record<string, readonly (readonly [name: string, alias: string])[]>>;
  /** What to use instead of a command; '' for one that is there, or that the table does not have. */
  instead: (command: string) => string;
  /** The same for a flag, by its name without dashes; undefined for a flag that is not refused. */
  flagInstead: (command: string, flag: string) => string | undefined;
  /** Of every command. */
  globalFlags: OwnFlag[];
}

const globalFlag = (name: string, char: string | undefined): OwnFlag => ({
  name,
  char,
  takesValue: false,
  numeric: false,
  repeatable: false,
  required: false,
  accepts: () => Promise.resolve(true),
});

/** The table as src/lib/cf has it. */
export const ownTable: OwnTable = {
  groups: Object.fromEntries(
    Object.entries(cfCommands).map(([group, commands]) => [group, commands.map(([name, alias]) => [name, alias])]),
  ),
  instead: (name) => findCommand(name)?.command[3] ?? findForeign(name)?.instead ?? '',
  flagInstead: (command, flag) => {
    const found = cfFlags[command]?.[flag];
    return typeof found === 'object' ? `${found.because}: ${found.hint}` : found;
  },
  globalFlags: [globalFlag('help', 'h'), globalFlag('verbose', 'v'), globalFlag('version', undefined)],
};

/** Where headings, names and aliases, or their order, are not cf's. */
export function faultsOfTable(table: OwnTable, commands: readonly CfCommandFacts[]): string[] {
  const own = Object.entries(table.groups).flatMap(([group, rows]) =>
    rows.map(([name, alias]) => ({ name, place: `${group}: ${name}, ${alias}` })),
  );
  const cf = commands.map(({ name, alias = '', group }) => ({ name, place: `${group}: ${name}, ${alias}` }));
  const faults = cf
    .filter(({ place }) => !own.some((row) => row.place === place))
    .map(({ name, place }) => `${name}: kf help -a does not list '${place}'.`);
  const extra = own
    .filter(({ name }) => !cf.some((row) => row.name === name))
    .map(({ name }) => `${name}: is in the table of cf's commands, but cf has no such command.`);
  if (faults.length + extra.length > 0) return [...faults, ...extra];
  const moved = cf.find((row, at) => row.place !== own[at]?.place);
  return moved === undefined ? [] : [`${moved.name}: is not where cf help -a lists it.`];
}
