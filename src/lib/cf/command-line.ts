// Parses a command line as cf does (the rules of go-flags): flags and arguments in any order, and its error texts.

import { incorrectUsage } from './usage.ts';

export interface FlagSpec {
  /** Long name. */
  name: string;
  char?: string;
  takesValue: boolean;
  repeatable?: boolean;
  /** Numbers may be negative when detached: `-i -1`. */
  numeric?: boolean;
}

export interface ArgSpec {
  /** As printed in the usage, e.g. `APP_NAME`. */
  name: string;
  required: boolean;
  /** The last one may take all remaining words. */
  repeatable?: boolean;
}

export interface CommandLine {
  /** Values by long name, in order; a flag without a value has `['']`. */
  flags: Map<string, string[]>;
  args: string[];
}

export interface CommandLineRules {
  flags: FlagSpec[];
  args: ArgSpec[];
  /** With one unknown flag, all short flags and unknown long ones are data (`set-env A NAME -value`). */
  dashesAreData?: boolean;
}

/** `-i, --instances`, as go-flags names a flag in its errors. */
function label(flag: FlagSpec): string {
  return flag.char === undefined ? `--${flag.name}` : `-${flag.char}, --${flag.name}`;
}

/** A value in double quotes is unquoted once. */
function unquote(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return JSON.parse(text) as string;
  } catch (cause) {
    throw incorrectUsage(`invalid syntax of the quoted value ${text}`, { cause });
  }
}

function isFlagLike(token: string): boolean {
  return token.length > 1 && token.startsWith('-') && token !== '--';
}

class UnknownFlag extends Error {
  readonly flag: string;

  constructor(flag: string) {
    super(`unknown flag \`${flag}'`);
    this.flag = flag;
  }
}

class Reader {
  readonly #rules: CommandLineRules;
  readonly #rest: string[];
  readonly flags = new Map<string, string[]>();
  readonly args: string[] = [];

  readonly #lenient: boolean;

  constructor(argv: string[], rules: CommandLineRules, lenient: boolean) {
    this.#rules = rules;
    this.#rest = [...argv];
    this.#lenient = lenient;
  }

  /** @throws UnknownFlag unless lenient */
  read(): void {
    for (let token = this.#rest.shift(); token !== undefined; token = this.#rest.shift()) {
      if (!isFlagLike(token)) this.args.push(token);
      else if (token.startsWith('--')) this.#long(token);
      else this.#short(token);
    }
  }

  #long(token: string): void {
    const equals = token.indexOf('=');
    const name = equals < 0 ? token.slice(2) : token.slice(2, equals);
    const flag = this.#rules.flags.find((one) => one.name === name);
    if (flag === undefined) return this.#unknown(name, token);
    this.#set(flag, equals < 0 ? undefined : token.slice(equals + 1));
  }

  #short(token: string): void {
    const flag = this.#lenient ? undefined : this.#rules.flags.find((one) => one.char === token[1]);
    if (flag === undefined) return this.#unknown(token.slice(1, 2), token);
    const rest = token.slice(2);
    if (rest.startsWith('=')) return this.#set(flag, rest.slice(1));
    if (flag.takesValue) return this.#set(flag, rest === '' ? undefined : rest);
    this.#set(flag, undefined);
    if (rest !== '') this.#rest.unshift(`-${rest}`);
  }

  #unknown(name: string, token: string): void {
    if (this.#lenient) this.args.push(token);
    else throw new UnknownFlag(name);
  }

  #set(flag: FlagSpec, attached: string | undefined): void {
    if (!flag.takesValue) {
      if (attached !== undefined) throw incorrectUsage(`bool flag \`${label(flag)}' cannot have an argument`);
      this.flags.set(flag.name, ['']);
      return;
    }
    const value = unquote(attached ?? this.#detached(flag));
    const before = flag.repeatable === true ? (this.flags.get(flag.name) ?? []) : [];
    this.flags.set(flag.name, [...before, value]);
  }

  #detached(flag: FlagSpec): string {
    const value = this.#rest.shift();
    if (value === undefined) throw incorrectUsage(`expected argument for flag \`${label(flag)}'`);
    const negative = flag.numeric === true && /^-\d/.test(value);
    if (isFlagLike(value) && !negative) throw incorrectUsage(`expected argument for flag \`${label(flag)}', but got option \`${value}'`);
    return value;
  }
}

function checkArgs(args: string[], specs: ArgSpec[]): void {
  const missing = specs.filter((spec, index) => spec.required && args[index] === undefined).map((spec) => `\`${spec.name}\``);
  if (missing.length > 0) {
    const last = missing.pop();
    const names = missing.length === 0 ? last : `${missing.join(', ')} and ${last}`;
    throw incorrectUsage(
      `the required argument${missing.length === 0 ? '' : 's'} ${names} ${missing.length === 0 ? 'was' : 'were'} not provided`,
    );
  }
  const extra = args[specs.length];
  if (extra !== undefined && specs.at(-1)?.repeatable !== true)
    throw incorrectUsage(`unexpected argument "${extra}"`, { details: { unexpectedArgument: extra } });
}

/** Parses `argv` (without the command's name) by cf's rules. @throws KfError `usage` in cf's words */
export function readCommandLine(argv: string[], rules: CommandLineRules): CommandLine {
  let reader = new Reader(argv, rules, false);
  try {
    reader.read();
  } catch (error) {
    if (!(error instanceof UnknownFlag)) throw error;
    if (rules.dashesAreData !== true) throw incorrectUsage(error.message, { details: { unknownFlag: error.flag } });
    reader = new Reader(argv, rules, true);
    reader.read();
  }
  checkArgs(reader.args, rules.args);
  return { flags: reader.flags, args: reader.args };
}
