// What the words of an unfinished command line ask for, for the completion of shells. Pure.

import type { ArgDefinition, Declared, FlagDefinition } from './definitions.ts';

/** A word that may come next. */
export interface Candidate {
  text: string;
  /** Shown beside it by zsh and fish. */
  summary?: string;
}

/** Names that only the cluster, or the kubeconfig, knows. */
export type NameKind = 'app' | 'context' | 'domain' | 'host' | 'org' | 'service' | 'space';

export type Expected =
  | { candidates: Candidate[] }
  /** A value: names of this kind. `before` is the part of the word that stays: `--org=`. */
  | { names: NameKind; before: string; partial: string }
  /** A value that kf cannot know; the shell offers files. */
  | undefined;

const kindsOfNames: Readonly<Record<string, NameKind>> = {
  APP_NAME: 'app',
  CONTEXT: 'context',
  DOMAIN: 'domain',
  HOSTNAME: 'host',
  ORG: 'org',
  OTHER_ORG: 'org',
  OTHER_SPACE: 'space',
  SERVICE_INSTANCE: 'service',
  SPACE: 'space',
};

const valuesOf: Readonly<Record<string, readonly string[]>> = {
  HEALTH_CHECK_TYPE: ['http', 'port', 'process'],
  RESOURCE: ['app', 'domain', 'org', 'route', 'service-instance', 'space'],
  SHELL: ['bash', 'fish', 'zsh'],
  STRATEGY: ['rolling'],
  TYPE: ['http', 'port', 'process'],
};

/** The command of an unfinished line, its words behind it, and whether the command's own name is being typed. */
export interface CompletedCommand {
  command: string | undefined;
  rest: string[];
}

const globalWithValue = new Set(['--context', '--org', '--space']);

/** @param words behind the program's name, up to the cursor; the last one is unfinished and may be '' */
export function commandOf(words: readonly string[]): CompletedCommand {
  const rest = [...words];
  while (rest.length > 1 && rest[0]?.startsWith('-') === true) {
    const flag = rest.shift() ?? '';
    if (globalWithValue.has(flag) && rest.length > 1) rest.shift();
  }
  return rest.length > 1 ? { command: rest[0], rest: rest.slice(1) } : { command: undefined, rest };
}

const startingWith = (candidates: readonly Candidate[], partial: string): Candidate[] =>
  candidates.filter(({ text }) => text.startsWith(partial));

function flagNamed(flags: Declared['flags'], word: string): FlagDefinition | undefined {
  const found = Object.entries(flags).find(([name, { char }]) => word === `--${name}` || (char !== undefined && word === `-${char}`));
  return found?.[1];
}

function flagCandidates(flags: Declared['flags']): Candidate[] {
  return Object.entries(flags)
    .filter(([, { hidden }]) => hidden !== true)
    .flatMap(([name, { char, summary = '' }]) =>
      [`--${name}`, ...(char === undefined ? [] : [`-${char}`])].map((text) => ({ text, summary })),
    )
    .toSorted((a, b) => (a.text < b.text ? -1 : 1));
}

function valueOf(placeholder: string, before: string, partial: string): Expected {
  const names = kindsOfNames[placeholder];
  if (names !== undefined) return { names, before, partial };
  const values = valuesOf[placeholder];
  if (values === undefined) return undefined;
  return {
    candidates: startingWith(
      values.map((text) => ({ text })),
      partial,
    ).map(({ text }) => ({ text: `${before}${text}` })),
  };
}

const placeholderOf = ({ helpValue = '' }: FlagDefinition): string => (Array.isArray(helpValue) ? (helpValue[0] ?? '') : helpValue);

/** How many of the words are arguments; undefined when the unfinished word is the value of this flag. */
function argumentsBefore(words: readonly string[], { flags }: Declared): { count: number; valueFor: FlagDefinition | undefined } {
  let count = 0;
  let valueFor: FlagDefinition | undefined;
  for (const word of words) {
    if (valueFor !== undefined) {
      valueFor = undefined;
      continue;
    }
    if (!word.startsWith('-')) {
      count += 1;
      continue;
    }
    const flag = flagNamed(flags, word);
    if (flag?.type === 'option') valueFor = flag;
  }
  return { count, valueFor };
}

/** A command that creates something gives it a name that does not exist yet. */
function isNewName(command: string, placeholder: string): boolean {
  const [, created] = /^create-(?:shared-|private-)?(\w+)$/.exec(command) ?? [];
  return created !== undefined && placeholder.toLowerCase().startsWith(created);
}

function argumentAt(args: Record<string, ArgDefinition>, index: number): string | undefined {
  const all = Object.entries(args);
  return (all[index] ?? all.findLast(([, { multiple }]) => multiple === true))?.[0];
}

/**
 * What may stand at the end of the words.
 * @param command its name
 * @param rest the words behind it; the last one is unfinished
 */
export function expectedIn(command: string, rest: readonly string[], declared: Declared): Expected {
  const partial = rest.at(-1) ?? '';
  const { count, valueFor } = argumentsBefore(rest.slice(0, -1), declared);
  if (valueFor !== undefined) return valueOf(placeholderOf(valueFor), '', partial);
  const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(partial) ?? [];
  if (name !== undefined && value !== undefined) {
    const flag = flagNamed(declared.flags, name);
    return flag === undefined ? undefined : valueOf(placeholderOf(flag), `${name}=`, value);
  }
  if (partial.startsWith('-')) return { candidates: startingWith(flagCandidates(declared.flags), partial) };
  const placeholder = argumentAt(declared.args, count);
  if (placeholder === undefined) return { candidates: [] };
  return isNewName(command, placeholder) ? { candidates: [] } : valueOf(placeholder, '', partial);
}

/** Names and aliases of commands. */
export function commandCandidates(rows: readonly { name: string; alias?: string; summary: string }[], partial: string): Candidate[] {
  const all = rows.flatMap(({ name, alias, summary }) => {
    const aliases = alias === undefined ? [] : alias.split(', ').filter((one) => one.length > 1);
    return [name, ...aliases].map((text) => ({ text, summary }));
  });
  return startingWith(all, partial).toSorted((a, b) => (a.text < b.text ? -1 : 1));
}
