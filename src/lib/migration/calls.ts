// The calls of cf or kf in a script, and what becomes of each with kf.

import { findCommand } from '../cf/cf-commands.ts';
import { cfFlags, formerArguments } from '../cf/cf-flags.ts';
import { findForeign } from '../cf/plugin-commands.ts';
import { isNameOfCf } from './programs.ts';
import { judgeRequest } from './requests.ts';
import type { Found } from './scripts.ts';
import { shellCommands, type ShellCommand, type Word } from './shell.ts';
import { surface, type Note } from './surface.generated.ts';
import { isOfKind, knownValueKinds } from './value-kinds.ts';

/** `unclear`: the name of the command is known only when the script runs. `unknown`: neither cf nor kf has it. */
export type CallStatus = 'done' | 'ignored' | 'differs' | 'unclear' | 'refused' | 'unknown';

/** What a script that uses it has to know. */
export interface Remark {
  /** The command, or a flag of it. */
  about: string;
  status: CallStatus;
  text: string;
}

export interface Call {
  line: number;
  /** As it is written, without quotes. */
  call: string;
  /** The worst of its remarks. */
  status: CallStatus;
  remarks: Remark[];
}

/** From the harmless to the worst. */
export const severity: readonly CallStatus[] = ['done', 'ignored', 'differs', 'unclear', 'refused', 'unknown'];

/** True when a script with such a call fails. */
export const breaks = (status: CallStatus): boolean => status === 'refused' || status === 'unknown';

/** Commands that only print or look for the word. */
const mentions = new Set([
  'echo',
  'printf',
  'which',
  'type',
  'hash',
  'command',
  'alias',
  'cd',
  'ls',
  'rm',
  'cp',
  'mv',
  'chmod',
  'for',
  'case',
  'grep',
  'install',
]);
const shells = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash']);

const nameOf = ({ text }: Word): string => text.replace(/^.*\//, '');

/** `cf`, a path to it, or a variable like `$CF`. */
const isProgram = (word: Word): boolean => isNameOfCf(word.text) || /^\$\{?CF(?:_CLI|_CMD|_BIN|_BINARY)?\}?$/.test(word.text);

const isCommand = (word: Word | undefined): boolean =>
  word !== undefined && (findCommand(word.text) !== undefined || findForeign(word.text) !== undefined);

/** The words after `cf`; undefined for another command. Another program may start it: `sudo cf push`, `xargs cf delete`, `retry 3 cf push`. */
function argumentsOf({ words }: ShellCommand): Word[] | undefined {
  const [first] = words;
  if (first === undefined) return undefined;
  if (isProgram(first)) return words.slice(1);
  if (mentions.has(nameOf(first)) && !(first.text === 'command' && words[1] !== undefined && isNameOfCf(words[1].text))) return undefined;
  const at = words.findIndex((word, index) => isProgram(word) && !word.isQuoted && isCommand(words[index + 1]));
  return at === -1 ? undefined : words.slice(at + 1);
}

/** Scripts that a shell gets from the command: `bash -c TEXT`, `eval TEXT`, `trap TEXT EXIT`, `bash <<EOF`, `ssh HOST <<EOF`. */
function innerScripts({ line, words, input }: ShellCommand): { text: string; line: number }[] {
  const at = words.findIndex((word) => shells.has(nameOf(word)));
  const name = words[0] === undefined ? '' : nameOf(words[0]);
  // `trap TEXT SIGNAL`.
  if (name === 'trap') return words.slice(1, 2).map(({ text }) => ({ text, line }));
  if (name === 'eval')
    return [
      {
        text: words
          .slice(1)
          .map(({ text }) => text)
          .join(' '),
        line,
      },
    ];
  if (at === -1) return name === 'ssh' ? input : [];
  const flag = words.findIndex((word, index) => index > at && /^-\w*c$/.test(word.text));
  const script = flag === -1 ? undefined : words[flag + 1];
  return [...(script === undefined ? [] : [{ text: script.text, line }]), ...input];
}

interface KnownFlag {
  /** As the table names it: `--force`, or `-f`. */
  name: string;
  takesValue: boolean;
}

/** Flags by what is typed: `f` and `force`. */
function flagsOf(name: string): Map<string, KnownFlag> {
  const rows = (surface[name]?.[0] ?? '').split(' ').filter((text) => text !== '');
  return new Map(
    [...rows, 'h,help', 'v,verbose', 'json', 'context=', 'org=', 'space='].toReversed().flatMap((row) => {
      const names = row.replace('=', '').split(',');
      const long = names.find((one) => one.length > 1);
      const flag = { name: long === undefined ? `-${names[0]}` : `--${long}`, takesValue: row.endsWith('=') };
      return names.map((one): [string, KnownFlag] => [one, flag]);
    }),
  );
}

const remarkOf = (about: string, [status, text]: Note): Remark => ({ about, status: status as CallStatus, text });

/** Reads the flags of one call. */
class FlagReader {
  readonly #name: string;
  readonly #flags: Map<string, KnownFlag>;
  readonly #notes: Readonly<Record<string, Note>>;
  readonly #mostArgs: number | null;
  readonly #isLenient: boolean;
  readonly #args: Word[] = [];
  /** Words after flags that are not there: perhaps their values. */
  readonly #perhapsValues = new Set<Word>();
  readonly #values = new Map<string, string>();
  readonly remarks: Remark[] = [];

  /** Words that are no flags. */
  get args(): readonly Word[] {
    return this.#args;
  }

  /** The last value of a flag, `--request`. */
  valueOf(flag: string): string | undefined {
    return this.#values.get(flag);
  }

  constructor(name: string) {
    this.#name = name;
    this.#flags = flagsOf(name);
    const [, mostArgs, notes = {}, dashesAreData = false] = surface[name] ?? ['', null];
    this.#mostArgs = mostArgs;
    this.#notes = notes;
    this.#isLenient = dashesAreData;
    const own = notes[''];
    if (own !== undefined) this.remarks.push(remarkOf(name, own));
  }

  read(words: readonly Word[]): void {
    for (let at = 0; at < words.length; at += 1) {
      const word = words[at];
      if (word === undefined) continue;
      const { text } = word;
      const next = words[at + 1];
      if (text.length < 2 || !text.startsWith('-') || text === '--' || /^-\d/.test(text)) this.#args.push(word);
      else if (this.#flag(text, next?.text ?? '')) at += 1;
      else if (next !== undefined && !this.#flags.has(text.replace(/^--?/, ''))) this.#perhapsValues.add(next);
    }
    this.#countArgs();
  }

  /** An expansion without quotes may be no word, or several. Where older scripts have one argument more, it most likely is one word. */
  #countArgs(): void {
    const most = this.#mostArgs;
    if (most === null || this.#isLenient) return;
    const perhaps = this.#args.filter((word) => !this.#perhapsValues.has(word));
    const extra = perhaps.filter((word) => !word.isExpanded || word.isQuoted)[most];
    const instead = formerArguments[this.#name];
    if (extra === undefined) return this.#perhapsFormer(perhaps[most], instead);
    if (instead !== undefined) return void this.remarks.push({ about: extra.text, status: 'refused', text: instead });
    const text = `'${this.#name}' takes ${most === 0 ? 'no argument' : most === 1 ? 'one argument' : `${most} arguments`}, and this is one more`;
    this.remarks.push({ about: extra.text, status: 'unknown', text });
  }

  #perhapsFormer(extra: Word | undefined, instead: string | undefined): void {
    if (extra === undefined || instead === undefined) return;
    const text = `one argument too many, unless a variable before it is empty; instead: ${instead}`;
    this.remarks.push({ about: extra.text, status: 'unclear', text });
  }

  /** True when the next word is its value. */
  #flag(text: string, next: string): boolean {
    if (!text.startsWith('--')) return this.#cluster(text.slice(1), next);
    const [, name = '', , value] = /^--([^=]*)(=(.*))?$/s.exec(text) ?? [];
    return this.#one(name, value, next);
  }

  /** `-fr`, `-i3`, `-i=3`. */
  #cluster(text: string, next: string): boolean {
    const name = text.slice(0, 1);
    const rest = text.slice(1);
    if (this.#flags.get(name)?.takesValue === true) return this.#one(name, rest === '' ? undefined : rest.replace(/^=/, ''), next);
    this.#one(name, undefined, next);
    return rest !== '' && this.#flags.has(name) ? this.#cluster(rest, next) : false;
  }

  #one(name: string, attached: string | undefined, next: string): boolean {
    const typed = name.length === 1 ? `-${name}` : `--${name}`;
    const refused = cfFlags[this.#name]?.[name];
    const flag = this.#flags.get(name);
    if (flag?.takesValue === true) this.#values.set(flag.name, attached ?? next);
    if (refused !== undefined)
      this.remarks.push({ about: typed, status: 'refused', text: typeof refused === 'string' ? refused : refused.hint });
    else if (flag === undefined) this.#unknown(typed);
    else this.#note(flag, typed, attached ?? next);
    return attached === undefined && flag?.takesValue === true;
  }

  #unknown(typed: string): void {
    if (this.#isLenient || typed.includes('$')) return;
    this.remarks.push({ about: typed, status: 'unknown', text: `'${this.#name}' has no flag '${typed}'` });
  }

  #note({ name }: KnownFlag, typed: string, value: string): void {
    const own = this.#notes[name];
    const ofValue = this.#notes[`${name}=${value.toLowerCase()}`] ?? this.#noteOfKind(name, value);
    if (own !== undefined && ofValue === undefined) this.remarks.push(remarkOf(typed, own));
    if (ofValue !== undefined) this.remarks.push(remarkOf(`${typed} ${value}`, ofValue));
  }

  /** Of what a shell puts in, only the beginning is known. */
  #noteOfKind(name: string, value: string): Note | undefined {
    if (value.startsWith('$') || value.startsWith('`')) return undefined;
    const kind = knownValueKinds.find((one) => `${name}=${one}` in this.#notes && isOfKind(value, one));
    return kind === undefined ? undefined : this.#notes[`${name}=${kind}`];
  }
}

/** `curl`: what becomes of its request. */
function requestRemarks(reader: FlagReader): Remark[] {
  const [path] = reader.args;
  if (path === undefined) return [];
  const verdict = judgeRequest(path, reader.valueOf('--request'), reader.valueOf('--data') !== undefined);
  return verdict === undefined ? [] : [{ about: path.text, ...verdict }];
}

/** What the words after `cf` mean for kf. */
function remarksOf(words: readonly Word[]): Remark[] {
  const at = words.findIndex(({ text }) => !text.startsWith('-'));
  const word = words[at];
  if (word === undefined) return [];
  if (word.isExpanded) return [{ about: word.text, status: 'unclear', text: 'the name of the command is known only when the script runs' }];
  const found = findCommand(word.text);
  if (found === undefined) {
    const foreign = findForeign(word.text);
    if (foreign !== undefined) return [{ about: word.text, status: 'refused', text: foreign.instead }];
    return [{ about: word.text, status: 'unknown', text: `neither cf nor kf has a command '${word.text}'` }];
  }
  const [name, , , instead] = found.command;
  if (instead !== '') return [{ about: name, status: 'refused', text: instead }];
  if (surface[name] === undefined) return [];
  const reader = new FlagReader(name);
  reader.read([...words.slice(0, at), ...words.slice(at + 1)]);
  return name === 'curl' ? [...reader.remarks, ...requestRemarks(reader)] : reader.remarks;
}

/** A word as it could be typed again. */
const shown = ({ text, isQuoted }: Word): string => (isQuoted && /[\s;&|<>()]|^$/.test(text) ? JSON.stringify(text) : text);

function callOf(command: ShellCommand, words: Word[]): Call {
  const remarks = remarksOf(words);
  const worst = Math.max(0, ...remarks.map(({ status }) => severity.indexOf(status)));
  return { line: command.line, call: ['cf', ...words.map(shown)].join(' '), status: severity[worst] ?? 'done', remarks };
}

/** The calls in a file that is read, in the order of their lines, with the steps that need Cloud Foundry itself. */
export function callsIn({ scripts, steps }: Found): Call[] {
  const text = 'a step that runs kf with a kubeconfig: kf push -f manifest.yml';
  return [
    ...steps.map(({ name, line }): Call => ({ line, call: name, status: 'refused', remarks: [{ about: name, status: 'refused', text }] })),
    ...scripts.flatMap((script) => callsOf(script.text, script.line)),
  ].toSorted((one, other) => one.line - other.line);
}

/** Scripts in scripts that are read. */
const mostLevels = 5;

/** The calls of cf or kf in a script, in the order of their lines. @param line the line of its first character */
export function callsOf(script: string, line = 1, level = 0): Call[] {
  return shellCommands(script, line).flatMap((command) => {
    const words = argumentsOf(command);
    // A word alone is more often a name than a call.
    const own = words === undefined || words.length === 0 ? [] : [callOf(command, words)];
    const inner = level < mostLevels && own.length === 0 ? innerScripts(command) : [];
    return [...own, ...inner.flatMap(({ text, line: at }) => callsOf(text, at, level + 1))];
  });
}
