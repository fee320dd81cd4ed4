// What kf's commands declare, in the form in which it is compared with cf's.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArgDefinition, FlagDefinition } from '../../src/lib/cf/definitions.ts';

/** True for a text that the parser of a flag or an argument takes. */
export type Accepts = (text: string) => Promise<boolean>;

export interface OwnFlag {
  name: string;
  char: string | undefined;
  takesValue: boolean;
  /** Takes a negative number as a word of its own: `-i -1`. */
  numeric: boolean;
  repeatable: boolean;
  required: boolean;
  accepts: Accepts;
}

export interface OwnArg {
  name: string;
  required: boolean;
  repeatable: boolean;
  accepts: Accepts;
}

export interface OwnCommand {
  name: string;
  aliases: string[];
  args: OwnArg[];
  flags: OwnFlag[];
  variables: string[];
  /** Text that looks like an unknown flag is data. */
  dashesAreData: boolean;
}

interface CommandClass {
  aliases?: string[];
  args?: Record<string, ArgDefinition>;
  flags?: Record<string, FlagDefinition>;
  environment?: [name: string, meaning: string][];
  dashesAreData?: boolean;
}

function acceptsOf(definition: FlagDefinition | ArgDefinition): Accepts {
  const { parse } = definition;
  if (parse === undefined) return () => Promise.resolve(true);
  return async (text) => {
    try {
      await parse(text as never, {} as never, definition as never);
      return true;
    } catch {
      return false;
    }
  };
}

export function describeClass(name: string, command: CommandClass): OwnCommand {
  const { aliases = [], args = {}, flags = {}, environment = [], dashesAreData = false } = command;
  return {
    name,
    aliases,
    dashesAreData,
    args: Object.entries(args).map(([arg, definition]) => ({
      name: arg,
      required: definition.required ?? false,
      repeatable: definition.multiple ?? false,
      accepts: acceptsOf(definition),
    })),
    flags: Object.entries(flags).map(([flag, definition]) => ({
      name: flag,
      char: definition.char,
      takesValue: definition.type === 'option',
      numeric: definition.numeric ?? false,
      repeatable: definition.multiple ?? false,
      required: definition.required ?? false,
      accepts: acceptsOf(definition),
    })),
    variables: [...environment.map(([variable]) => variable), ...Object.values(flags).flatMap(({ env }) => env ?? [])],
  };
}

const anything: Accepts = () => Promise.resolve(true);

/** The commands without a class: src/main.ts answers them itself. */
const builtIn: OwnCommand[] = [
  {
    name: 'help',
    aliases: ['h'],
    args: [{ name: 'COMMAND_NAME', required: false, repeatable: false, accepts: anything }],
    flags: [{ name: 'all', char: 'a', takesValue: false, numeric: false, repeatable: false, required: false, accepts: anything }],
    variables: [],
    dashesAreData: false,
  },
  { name: 'version', aliases: [], args: [], flags: [], variables: [], dashesAreData: false },
];

/** All commands of kf. */
export async function readOwnCommands(root: string): Promise<OwnCommand[]> {
  const files = (await readdir(join(root, 'src/commands'))).filter((file) => file.endsWith('.ts'));
  const classes = files.map(async (file) => {
    const { default: command } = (await import(join(root, 'src/commands', file))) as { default: CommandClass };
    return describeClass(file.replace(/\.ts$/, ''), command);
  });
  return [...builtIn, ...(await Promise.all(classes))];
}
