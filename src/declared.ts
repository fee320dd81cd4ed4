// What a command's class declares: its flags and arguments with the global ones, for the parser, and all of it for help.

import type { Command } from '@oclif/core/command';
import type { ArgDefinition, FlagDefinition } from './lib/cf/definitions.ts';
import type { JsonForm } from './lib/output/error.ts';
import type { HelpSubject } from './lib/output/help.ts';

/** The static side of a command, as {@link KfCommand} has it. */
export interface CommandStatics {
  id: string;
  summary?: string;
  aliases?: string[];
  examples?: Command.Example[];
  flags: Record<string, FlagDefinition>;
  baseFlags: Record<string, FlagDefinition>;
  args: Record<string, ArgDefinition>;
  seeAlso: string[];
  environment: [variable: string, meaning: string][];
  dashesAreData: boolean;
  json: JsonForm;
}

/** Flags and arguments as the parser needs them. */
export function declaredBy(command: CommandStatics): {
  flags: Record<string, FlagDefinition>;
  args: Record<string, ArgDefinition>;
  dashesAreData: boolean;
} {
  return {
    flags: ownFirst(command.flags, command.baseFlags),
    args: command.args,
    dashesAreData: command.dashesAreData,
  };
}

/** A command's own flags, then the global ones that it does not take over (`target -o` is its `--org`). */
function ownFirst(own: Record<string, FlagDefinition> = {}, global: Record<string, FlagDefinition> = {}): Record<string, FlagDefinition> {
  return { ...own, ...Object.fromEntries(Object.entries(global).filter(([name]) => own[name] === undefined)) };
}

/** The parts of a command's class that help needs. */
export function helpSubject(command: CommandStatics, name: string): HelpSubject {
  const { flags: declared, args } = declaredBy(command);
  const json =
    command.json === 'lines' ? { json: { ...declared['json'], summary: 'print one JSON document per line' } as FlagDefinition } : {};
  const flags = { ...declared, ...json };
  const { summary = '', aliases = [], examples = [], seeAlso, environment } = command;
  return { name, summary, aliases, examples: examples.map(String), seeAlso, environment, args, flags };
}
