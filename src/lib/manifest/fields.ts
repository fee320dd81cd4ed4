// Typed access to the maps of a manifest: unknown keys, wrong types and wrong units become problems with file, line and column.

import { nearest } from '../api/names.ts';
import { parseLogRate, parseMegabytes } from '../api/sizes.ts';
import { KfError } from '../errors.ts';
import { located, plainOf } from './tree.ts';
import type { Located, LocatedEntry, LocatedMap, LocatedScalar, Position } from './tree.ts';

const shown = 10;

/** A remark about a position in the manifest; the push continues. */
export interface Remark {
  at: Position;
  text: string;
}

/** The problems of one file, collected so that all are reported at once. */
export class Problems {
  readonly #file: string;
  #remarks: Remark[] = [];
  readonly #lines: { at: Position; text: string }[] = [];
  readonly #hints = new Set<string>();

  constructor(file: string) {
    this.#file = file;
  }

  add(at: Position, text: string, hint?: string): void {
    this.#lines.push({ at, text: located(this.#file, at, text) });
    if (hint !== undefined) this.#hints.add(hint);
  }

  /** Adds a remark about something without effect. */
  remark(at: Position, text: string): void {
    this.#remarks.push({ at, text });
  }

  /** The remarks since the last call. */
  takeRemarks(): Remark[] {
    const taken = this.#remarks;
    this.#remarks = [];
    return taken;
  }

  /** @throws KfError `usage` with one line per problem, in the order of the file */
  throwIfAny(): void {
    if (this.#lines.length === 0) return;
    const lines = this.#lines.toSorted((a, b) => a.at.line - b.at.line || a.at.column - b.at.column).map((line) => line.text);
    const rest = lines.length - shown;
    const message = [...lines.slice(0, shown), ...(rest > 0 ? [`... and ${rest} more`] : [])].join('\n');
    throw new KfError('usage', message, { hints: [...this.#hints] });
  }
}

export interface FieldsOptions {
  /** The noun for the map, as in "is no key of an application". */
  noun: string;
  /** Keys with dashes; `a_b` is read as `a-b`. */
  keys: readonly string[];
  /** Messages about keys that once had a meaning. */
  retired?: Readonly<Record<string, string>>;
  /** Cloud Foundry ignores unknown keys here, so they get a remark and are left out. */
  lenient?: boolean;
}

const canonical = (key: string): string => key.replaceAll('_', '-');

function unknownKey({ key, keyAt }: LocatedEntry, { noun, keys, retired = {}, lenient = false }: FieldsOptions, problems: Problems): void {
  const near = nearest(canonical(key), keys);
  const advice = retired[canonical(key)] ?? (near === undefined ? undefined : `Did you mean '${near}'?`);
  const text = `'${key}' is no key of ${noun}${lenient ? ' and has no effect' : ''}.${advice === undefined ? '' : ` ${advice}`}`;
  if (lenient) problems.remark(keyAt, text);
  else problems.add(keyAt, text, `Allowed in ${noun}: ${keys.toSorted().join(', ')}.`);
}

/** One map of the manifest with its known keys. */
export class Fields {
  readonly at: Position;
  readonly #entries = new Map<string, LocatedEntry>();
  readonly #problems: Problems;

  constructor(map: LocatedMap, options: FieldsOptions, problems: Problems) {
    this.at = map.at;
    this.#problems = problems;
    for (const entry of map.entries) {
      const key = canonical(entry.key);
      const before = this.#entries.get(key);
      if (before !== undefined) {
        problems.add(
          entry.keyAt,
          `'${entry.key}' says the same as '${before.key}' in line ${before.keyAt.line}; only one of them can stand.`,
        );
      } else if (options.keys.includes(key)) {
        this.#entries.set(key, entry);
      } else {
        unknownKey(entry, options, problems);
      }
    }
  }

  /** The value of a key; keys with null count as absent. `isNull` asks for `command: null`. */
  value(key: string): Located | undefined {
    const value = this.#entries.get(key)?.value;
    return value === undefined || isNull(value) ? undefined : value;
  }

  isNull(key: string): boolean {
    const value = this.#entries.get(key)?.value;
    return value !== undefined && isNull(value);
  }

  /** The position of a key's value. */
  positionOf(key: string): Position {
    return this.#entries.get(key)?.value.at ?? this.at;
  }

  refuse(key: string, text: string): undefined {
    this.#problems.add(this.positionOf(key), text);
    return undefined;
  }

  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    return value.kind === 'scalar' ? value.text : this.refuse(key, `${key} must be a text.`);
  }

  required(key: string, noun: string): string | undefined {
    const text = this.text(key);
    if (text !== undefined && text !== '') return text;
    this.#problems.add(this.at, `${noun} needs '${key}'.`);
    return undefined;
  }

  /** For a boolean, `y` and `n` are valid too. */
  boolean(key: string): boolean | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (value.kind === 'scalar' && typeof value.value === 'boolean') return value.value;
    if (value.kind === 'scalar' && /^[yn]$/i.test(value.text)) return value.text.toLowerCase() === 'y';
    return this.refuse(key, `${key} must be true or false.`);
  }

  wholeNumber(key: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    const number = value.kind === 'scalar' ? numberOf(value) : Number.NaN;
    if (number > most) return this.refuse(key, `${key} can be at most ${most}, not ${number}.`);
    if (Number.isSafeInteger(number) && number >= least) return number;
    return this.refuse(key, `${key} must be a whole number of at least ${least}.`);
  }

  oneOf<T extends string>(key: string, choices: readonly T[]): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    const found = choices.find((choice) => choice === text);
    return found ?? this.refuse(key, `${key} must be ${choices.map((choice) => `'${choice}'`).join(' or ')}, not '${text}'.`);
  }

  megabytes(key: string): number | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    return (
      parseMegabytes(text) ??
      this.refuse(
        key,
        `${key} must use a supported unit (B, K, KB, M, MB, G, GB, T or TB) and be at least 1M, for example 256M; it is '${text}'.`,
      )
    );
  }

  logRate(key: string): number | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    return parseLogRate(text) ?? this.refuse(key, `${key} must be a size with a unit such as 16K, 0, or -1 for no limit; it is '${text}'.`);
  }

  list(key: string): Located[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (value.kind === 'list') return value.items;
    this.refuse(key, `${key} must be a list.`);
    return [];
  }

  texts(key: string): string[] {
    return this.list(key).flatMap((item) => {
      if (item.kind === 'scalar' && item.text !== '') return [item.text];
      this.#problems.add(item.at, `${key} must be a list of texts.`);
      return [];
    });
  }

  map(key: string): LocatedMap | undefined {
    const value = this.value(key);
    if (value === undefined || value.kind === 'map') return value;
    return this.refuse(key, `${key} must be a map.`);
  }

  data(key: string): Record<string, unknown> | undefined {
    const map = this.map(key);
    return map === undefined ? undefined : (plainOf(map) as Record<string, unknown>);
  }
}

/** A number, also from a quoted one. */
function numberOf({ value, text }: LocatedScalar): number {
  if (typeof value === 'number') return value;
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}

export function isNull(value: Located): boolean {
  return value.kind === 'scalar' && value.value === null;
}
