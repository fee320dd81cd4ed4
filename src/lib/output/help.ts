// Help of one command and of all, in cf's sections and order.

import { cfCommands, kfCommands, type CfCommand } from '../cf/cf-commands.ts';
import type { ArgDefinition, FlagDefinition } from '../cf/definitions.ts';
import type { Block } from '../views/block.ts';

/** What help needs of a command's class. */
export interface HelpSubject {
  name: string;
  summary: string;
  aliases: string[];
  examples: string[];
  seeAlso: string[];
  /** Variables that no flag stands for. */
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

function usage(subject: HelpSubject, bin: string): string {
  const args = Object.entries(subject.args).map(([name, arg]) => (arg.required === true ? name : `[${name}]`));
  const own = Object.entries(subject.flags).filter(([, flag]) => flag.helpGroup !== 'GLOBAL' && flag.hidden !== true);
  return [bin, subject.name, ...args, ...own.map(([name, flag]) => flagUsage(name, flag))].join(' ');
}

function section(title: string, lines: string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((text) => indent + text), ''];
}

/** Two columns; the second starts three blanks after the widest of the first. */
function columns(rows: [string, string][]): string[] {
  const width = Math.max(0, ...rows.map(([left]) => left.length)) + 3;
  return rows.map(([left, right]) => (left.padEnd(width) + right).trimEnd());
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
    ...section('USAGE', [usage(subject, bin)]),
    ...section(
      'EXAMPLES',
      subject.examples.map((example) => example.replace(/^kf /, `${bin} `)),
    ),
    ...section('ALIAS', subject.aliases.length === 0 ? [] : [subject.aliases.join(', ')]),
    ...section('OPTIONS', columns(options)),
    ...section('ENVIRONMENT', columns([...fromFlags, ...subject.environment])),
    ...section('SEE ALSO', subject.seeAlso.length === 0 ? [] : [subject.seeAlso.join(', ')]),
  ];
}

function row([name, alias, label]: CfCommand, isThere: (name: string) => boolean): string[] {
  return [`${indent}${alias === '' ? name : `${name}, ${alias}`}`, isThere(name) ? label : `${label} (not yet)`];
}

export interface OverviewOptions {
  bin: string;
  version: string;
  /** `help -a`: also what kf lacks yet. */
  all: boolean;
  isThere: (name: string) => boolean;
}

/** `kf help`: all commands by heading. */
export function overviewHelp({ bin, version, all, isThere }: OverviewOptions): Block[] {
  const groups = Object.entries({ KF: kfCommands, ...cfCommands });
  const blocks: Block[] = [
    { type: 'line', text: `${bin} version ${version}: cf push on any Kubernetes cluster` },
    { type: 'line', text: `Usage: ${bin} COMMAND [ARGUMENTS] [FLAGS]; help of one command: ${bin} help COMMAND` },
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
