// Help of one command, in cf's sections and order.

import type { ArgDefinition, FlagDefinition } from '../cf/definitions.ts';
import { defined } from '../defined.ts';
import { commandsAs } from './command-name.ts';

/** The data of a command's class that the help needs. */
export interface HelpSubject {
  name: string;
  summary: string;
  aliases: string[];
  examples: string[];
  seeAlso: string[];
  /** Environment variables without a flag. */
  environment: [variable: string, meaning: string][];
  args: Record<string, ArgDefinition>;
  flags: Record<string, FlagDefinition>;
}

const indent = '   ';

function valueName(name: string, flag: FlagDefinition): string {
  if (flag.type === 'boolean') return '';
  const value = Array.isArray(flag.helpValue) ? flag.helpValue[0] : flag.helpValue;
  return ` ${value ?? name.toUpperCase().replaceAll('-', '_')}`;
}

function flagUsage(name: string, flag: FlagDefinition): string {
  const text = `${flag.char === undefined ? `--${name}` : `-${flag.char}`}${valueName(name, flag)}`;
  const repeated = flag.multiple === true ? `${text}...` : text;
  return flag.required === true ? repeated : `[${repeated}]`;
}

/** The parts of a usage; no part is broken over two lines. */
function usageParts(subject: HelpSubject, bin: string): string[] {
  const args = Object.entries(subject.args).map(([name, arg]) => {
    const text = arg.multiple === true ? `${name}...` : name;
    return arg.required === true ? text : `[${text}]`;
  });
  const own = Object.entries(subject.flags).filter(([, flag]) => flag.helpGroup !== 'GLOBAL' && flag.hidden !== true);
  return [`${bin} ${subject.name}`, ...args, ...own.map(([name, flag]) => flagUsage(name, flag))];
}

/** cf breaks the usages of its commands at 80 columns, each line with the same indent. */
const usageWidth = 80 - indent.length;

function usageLines(subject: HelpSubject, bin: string): string[] {
  const lines: string[] = [];
  for (const part of usageParts(subject, bin)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + part.length <= usageWidth) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(part);
  }
  return lines;
}

function section(title: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((text) => indent + text), ''];
}

/** Two columns; the second starts three blanks after the widest of the first. */
function columns(rows: [string, string][]): string[] {
  const width = Math.max(0, ...rows.map(([left]) => left.length)) + 3;
  return rows.map(([left, right]) => (left.padEnd(width) + right).trimEnd());
}

/** The lines after the error of a wrong command line; the complete help would push the message out of sight. */
export function usageHelp(subject: HelpSubject, bin: string): string[] {
  return section('USAGE', usageLines(subject, bin));
}

/** Help of one command, ready to print. */
export function commandHelp(subject: HelpSubject, bin: string): string[] {
  const options = Object.entries(subject.flags)
    .filter(([, flag]) => flag.hidden !== true)
    .map(([name, flag]): [string, string] => [
      flag.char === undefined ? `--${name}` : `-${flag.char}, --${name}`,
      flag.summary ?? flag.description ?? '',
    ]);
  const fromFlags = Object.values(subject.flags).flatMap((flag): [string, string][] =>
    flag.env === undefined || flag.helpGroup === 'GLOBAL' ? [] : [[flag.env, flag.summary ?? '']],
  );
  return [
    ...section('NAME', [`${subject.name} - ${subject.summary}`]),
    ...section('USAGE', usageLines(subject, bin)),
    ...section(
      'EXAMPLES',
      subject.examples.map((example) => commandsAs(example, bin)),
    ),
    ...section('ALIAS', subject.aliases.length === 0 ? [] : [subject.aliases.join(', ')]),
    ...section('OPTIONS', columns(options)),
    ...section('ENVIRONMENT', columns([...fromFlags, ...subject.environment])),
    ...section('SEE ALSO', subject.seeAlso.length === 0 ? [] : [subject.seeAlso.join(', ')]),
  ];
}

/** The same as data: `kf help COMMAND --json`. */
export function describeCommand(subject: HelpSubject, bin: string): Record<string, unknown> {
  const { name, summary, aliases, examples, seeAlso, args, flags } = subject;
  return {
    name,
    summary,
    usage: usageParts(subject, bin).join(' '),
    aliases,
    arguments: Object.entries(args).map(([arg, { required = false, multiple }]) => ({ name: arg, required, ...defined({ multiple }) })),
    flags: Object.entries(flags)
      .filter(([, flag]) => flag.hidden !== true)
      .map(([flag, { char, type, env, multiple = false, summary: meaning = '' }]) => ({
        name: flag,
        char,
        type,
        env,
        multiple,
        summary: meaning,
      })),
    environment: subject.environment.map(([variable, meaning]) => ({ name: variable, summary: meaning })),
    examples: examples.map((example) => commandsAs(example, bin)),
    seeAlso,
  };
}
