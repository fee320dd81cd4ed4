// `((variables))` of a manifest (cf-behaviour 4.2).

import { KfError } from '../errors.ts';
import { incorrectUsage } from '../cf/usage.ts';
import { located, mostValues, parseTree } from './tree.ts';
import type { Located, LocatedMap, Position } from './tree.ts';

export type Variables = ReadonlyMap<string, Located>;

const placeholder = /\(\((!?[-/.\w\p{L}]+)\)\)/gu;
const nowhere: Position = { line: 1, column: 1 };

/** The variables of files and of `--var` flags; later files win over earlier ones, flags over files. */
export function readVariables(files: { path: string; text: string }[], flags: readonly string[]): Variables {
  const variables = new Map<string, Located>();
  for (const { path, text } of files) {
    const tree = parseVars(path, text);
    if (tree === undefined) continue;
    if (tree.kind !== 'map') throw new KfError('usage', located(path, tree.at, 'A file of variables is a map of names to values.'));
    for (const { key, value } of tree.entries) variables.set(key, value);
  }
  for (const flag of flags) {
    const equals = flag.indexOf('=');
    if (equals < 1) throw incorrectUsage(`Expected var '${flag}' to be in format 'key=value'`);
    variables.set(flag.slice(0, equals), valueOfFlag(flag.slice(equals + 1)));
  }
  return variables;
}

function parseVars(path: string, text: string): Located | undefined {
  try {
    return parseTree(path, text);
  } catch (error) {
    if (!(error instanceof KfError)) throw error;
    throw new KfError('usage', error.message.replace(/^Unable to push app because manifest .* is not valid yaml\.\n/, ''), {
      cause: error,
    });
  }
}

/** Numbers, booleans, lists and maps are read as YAML; any other text stays as typed, without its quotes. */
function valueOfFlag(text: string): Located {
  let parsed: Located | undefined;
  try {
    parsed = parseTree('--var', text);
  } catch (error) {
    // A text that is not YAML is a string.
    if (!(error instanceof KfError)) throw error;
  }
  if (parsed !== undefined && !(parsed.kind === 'scalar' && typeof parsed.value === 'string')) return parsed;
  const bare = /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text;
  return { kind: 'scalar', value: bare, text: bare, at: nowhere };
}

/**
 * The tree with all placeholders replaced; a value that is only a placeholder gets the variable's type.
 * @throws KfError `usage`: all missing variables, or a variable that cannot be part of a text
 */
export function substitute(file: string, tree: Located, variables: Variables): Located {
  const missing = new Set<string>();
  const result = new Substitution(file, variables, missing).apply(tree);
  if (missing.size > 0) {
    throw new KfError('usage', `Expected to find variables: ${[...missing].sort().join(', ')}`, {
      hints: ['--var NAME=VALUE', '--vars-file FILE'],
    });
  }
  return result;
}

/** More than any manifest has; otherwise a variable in very many places could fill the memory. */
const mostCharacters = 8 * 1024 * 1024;

class Substitution {
  readonly #file: string;
  readonly #variables: Variables;
  readonly #missing: Set<string>;
  readonly #byKey = new WeakMap<LocatedMap, Map<string, Located>>();
  #values = 0;
  #characters = 0;

  constructor(file: string, variables: Variables, missing: Set<string>) {
    this.#file = file;
    this.#variables = variables;
    this.#missing = missing;
  }

  apply(tree: Located): Located {
    if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => this.apply(item)) };
    if (tree.kind === 'map') return this.#map(tree);
    if (typeof tree.value !== 'string' || !tree.value.includes('((')) return tree;
    const whole = /^\(\((!?[-/.\w\p{L}]+)\)\)$/u.exec(tree.value)?.[1];
    if (whole !== undefined) return this.#moved(this.#find(whole) ?? tree, tree.at);
    const text = this.#text(tree.value, tree.at);
    return { ...tree, value: text, text };
  }

  #map(tree: LocatedMap): LocatedMap {
    const entries = tree.entries.map((entry) => ({ ...entry, key: this.#text(entry.key, entry.keyAt), value: this.apply(entry.value) }));
    return { ...tree, entries };
  }

  #text(text: string, at: Position): string {
    return text.replaceAll(placeholder, (match, name: string) => {
      const value = this.#find(name);
      if (value === undefined) return match;
      if (value.kind === 'scalar' && (typeof value.value === 'string' || Number.isInteger(value.value)))
        return this.#counted(value.text, at);
      throw new KfError('usage', located(this.#file, at, `Variable '${name}' stands inside a text and must be a text or a whole number.`));
    });
  }

  #find(placeholderName: string): Located | undefined {
    const [name = '', ...path] = placeholderName.replace(/^!/, '').split('.');
    let value = this.#variables.get(name);
    for (const key of path) value = value?.kind === 'map' ? this.#keysOf(value).get(key) : undefined;
    if (value === undefined) this.#missing.add(path.length > 0 && this.#variables.has(name) ? placeholderName.replace(/^!/, '') : name);
    return value;
  }

  #keysOf(map: LocatedMap): Map<string, Located> {
    let keys = this.#byKey.get(map);
    if (keys === undefined) this.#byKey.set(map, (keys = new Map(map.entries.map(({ key, value }) => [key, value]))));
    return keys;
  }

  #counted(text: string, at: Position): string {
    this.#characters += text.length;
    if (this.#characters > mostCharacters)
      throw new KfError('usage', located(this.#file, at, 'The variables of this file unfold to more than 8 MB.'));
    return text;
  }

  /** The value of a variable, with the position of its placeholder. */
  #moved(tree: Located, at: Position): Located {
    this.#values += 1;
    if (this.#values > mostValues)
      throw new KfError('usage', located(this.#file, at, `The variables of this file unfold to more than ${mostValues} values.`));
    if (tree.kind === 'scalar') return { ...tree, at };
    if (tree.kind === 'list') return { ...tree, at, items: tree.items.map((item) => this.#moved(item, at)) };
    return { ...tree, at, entries: tree.entries.map((entry) => ({ ...entry, keyAt: at, value: this.#moved(entry.value, at) })) };
  }
}
