// Parses a command line by a command's declared flags and arguments: cf's syntax, then each value's own parser, environment and default.

import { readCommandLine } from './command-line.ts';
import { incorrectUsage } from './usage.ts';
import { defined } from '../defined.ts';

/** The fields of an oclif flag that kf uses. */
export interface FlagDefinition {
  type: 'boolean' | 'option';
  char?: string;
  env?: string;
  multiple?: boolean;
  required?: boolean;
  hidden?: boolean;
  default?: unknown;
  summary?: string;
  description?: string;
  helpValue?: string | string[];
  helpGroup?: string;
  /** A detached negative number is a value: `-i -1`. */
  numeric?: boolean;
  parse?: (input: never, context: never, options: never) => Promise<unknown>;
}

/** The fields of an oclif argument that kf uses. */
export interface ArgDefinition {
  required?: boolean;
  /** The last argument, with all remaining words. */
  multiple?: boolean;
  default?: unknown;
  description?: string;
  parse?: (input: never, context: never, options: never) => Promise<unknown>;
}

export interface Declared {
  flags: Record<string, FlagDefinition>;
  args: Record<string, ArgDefinition>;
  dashesAreData?: boolean;
}

export interface ReadOptions {
  env: Readonly<Record<string, string | undefined>>;
  /** Passed to the parsers, as oclif does. */
  context: unknown;
}

async function valueOf(definition: FlagDefinition | ArgDefinition, input: string, context: unknown): Promise<unknown> {
  return definition.parse === undefined ? input : definition.parse(input as never, context as never, definition as never);
}

const isYes = (text: string): boolean => /^(true|1|yes|y)$/i.test(text);

async function readFlag(
  name: string,
  definition: FlagDefinition,
  given: string[] | undefined,
  { env, context }: ReadOptions,
): Promise<unknown> {
  if (definition.type === 'boolean') {
    if (given !== undefined) return true;
    const fromEnv = definition.env === undefined ? undefined : env[definition.env];
    return fromEnv === undefined ? (definition.default ?? false) : isYes(fromEnv);
  }
  const fromEnv = definition.env === undefined ? undefined : env[definition.env];
  const inputs = given ?? (fromEnv === undefined || fromEnv === '' ? undefined : [fromEnv]);
  if (inputs === undefined) {
    if (definition.required === true) throw incorrectUsage(`the required flag \`--${name}' was not specified`);
    return definition.default;
  }
  const values = await Promise.all(inputs.map((input) => valueOf(definition, input, context)));
  return definition.multiple === true ? values : values[0];
}

/** Flags and arguments by name. @throws KfError `usage` in cf's words */
export async function readDeclared(
  argv: string[],
  declared: Declared,
  options: ReadOptions,
): Promise<{ flags: Record<string, unknown>; args: Record<string, unknown>; argv: string[] }> {
  const line = readCommandLine(argv, {
    dashesAreData: declared.dashesAreData ?? false,
    flags: Object.entries(declared.flags).map(([name, flag]) => ({
      name,
      takesValue: flag.type === 'option',
      ...defined({ char: flag.char }),
      repeatable: flag.multiple ?? false,
      numeric: flag.numeric ?? false,
    })),
    args: Object.entries(declared.args).map(([name, arg]) => ({
      name,
      required: arg.required ?? false,
      repeatable: arg.multiple ?? false,
    })),
  });
  const flags: Record<string, unknown> = {};
  for (const [name, definition] of Object.entries(declared.flags)) {
    const value = await readFlag(name, definition, line.flags.get(name), options);
    if (value !== undefined) flags[name] = value;
  }
  const args: Record<string, unknown> = {};
  for (const [index, [name, definition]] of Object.entries(declared.args).entries()) {
    const inputs = definition.multiple === true ? line.args.slice(index) : line.args.slice(index, index + 1);
    const values = await Promise.all(inputs.map((input) => valueOf(definition, input, options.context)));
    const value = values.length === 0 ? definition.default : definition.multiple === true ? values : values[0];
    if (value !== undefined) args[name] = value;
  }
  return { flags, args, argv: line.args };
}
