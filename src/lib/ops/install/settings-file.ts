// Reads `-f setup.yaml` and checks it with its schema. All faults are reported at once, each with line and column.

import { nearest } from '../../api/names.ts';
import { incorrectUsage, noSuchPath } from '../../cf/usage.ts';
import { KfError, messageOf } from '../../errors.ts';
import { isNull, Problems } from '../../manifest/fields.ts';
import { located, parseTree } from '../../manifest/tree.ts';
import type { Located, LocatedEntry, LocatedMap, LocatedScalar } from '../../manifest/tree.ts';
import { readSmallFile } from '../../small-file.ts';
import { knownKeys, settingsSchema, type Rule, type SetupRequest } from './settings-schema.ts';

/** Reads `-f setup.yaml`. @throws KfError `not-found` without the file; `usage` naming the file, and line, column and key of each fault */
export async function readSetupFile(file: string): Promise<SetupRequest> {
  let text: string;
  try {
    text = await readSmallFile({ path: file, asGiven: file, what: 'a file of settings' });
  } catch (error) {
    if (error instanceof KfError) throw error;
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw noSuchPath(file, { cause: error });
    throw new KfError('usage', `Incorrect Usage: The file ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  return parseSettings(file, text);
}

/** The settings in a text. @throws KfError usage */
export function parseSettings(file: string, text: string): SetupRequest {
  const problems = new Problems(file);
  try {
    const tree = parseTree(file, text, { invalid: `The file ${file} is not valid YAML.`, onFault: (at, fault) => problems.add(at, fault) });
    if (tree?.kind !== 'map') {
      const message = tree === undefined ? `${file} is empty; it must hold` : located(file, tree.at, 'The file must hold');
      throw new KfError('usage', `${message} a map of settings, {} for none.`, { hints: [allowed(knownKeys)] });
    }
    const settings = new Reader(problems).map(tree, settingsSchema, '');
    problems.throwIfAny();
    return settings;
  } catch (error) {
    if (!(error instanceof KfError)) throw error;
    throw incorrectUsage(error.message, { hints: error.hints, cause: error });
  }
}

const allowed = (keys: readonly string[], where = ''): string => `Known keys${where === '' ? '' : ` of ${where}`}: ${keys.join(', ')}`;

/** Binary and decimal suffixes, or an exponent. Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */
const quantity = /^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/;

/** The value of a fault, as the file has it. */
const shown = (value: Located): string => (value.kind === 'scalar' ? JSON.stringify(value.value) : `a ${value.kind}`);

class Reader {
  readonly #problems: Problems;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  /** The values of a map under the keys of a schema; keys with null count as absent. */
  map(map: LocatedMap, keys: Readonly<Record<string, Rule>>, where: string): Record<string, unknown> {
    const read = map.entries.flatMap((entry): [string, unknown][] => {
      const rule = Object.hasOwn(keys, entry.key) ? keys[entry.key] : undefined;
      if (rule === undefined) {
        this.#unknown(entry, Object.keys(keys), where);
        return [];
      }
      if (isNull(entry.value)) return [];
      return [[entry.key, this.#value(entry.value, rule, where === '' ? entry.key : `${where}.${entry.key}`)]];
    });
    return Object.fromEntries(read);
  }

  #unknown({ key, keyAt }: LocatedEntry, keys: string[], where: string): void {
    const near = nearest(key, keys);
    const place = where === '' ? '' : ` in '${where}'`;
    this.#problems.add(keyAt, `unknown key '${key}'${place}.${near === undefined ? '' : ` Did you mean '${near}'?`}`, allowed(keys, where));
  }

  #refuse(value: Located, key: string, what: string): undefined {
    this.#problems.add(value.at, `the key '${key}' ${what} and not ${shown(value)}.`);
  }

  #value(value: Located, rule: Rule, key: string): unknown {
    switch (rule.type) {
      case 'list':
        return (value.kind === 'list' ? value.items : [value]).map((item) => this.#value(item, rule.of, key));
      case 'map':
        return value.kind === 'map'
          ? this.map(value, rule.keys, key)
          : this.#refuse(value, key, `is a map (${Object.keys(rule.keys).join(', ')})`);
      case 'record':
        return value.kind === 'map' ? this.#record(value, rule, key) : this.#refuse(value, key, 'is a map');
      default:
        return value.kind === 'scalar' ? this.#scalar(value, rule, key) : this.#refuse(value, key, whatOf(rule));
    }
  }

  #record(map: LocatedMap, { of, names }: RecordRule, key: string): Record<string, unknown> {
    for (const entry of map.entries)
      if (names?.matches.test(entry.key) === false)
        this.#problems.add(entry.keyAt, `the key '${key}' ${names.what} and not ${JSON.stringify(entry.key)}.`);
    return Object.fromEntries(map.entries.map((entry) => [entry.key, this.#value(entry.value, of, `${key}.${entry.key}`)]));
  }

  #scalar(scalar: LocatedScalar, rule: ScalarRule, key: string): unknown {
    const read = scalarBy(scalar, rule);
    return read ?? this.#refuse(scalar, key, whatOf(rule));
  }
}

type RecordRule = Extract<Rule, { type: 'record' }>;
type ScalarRule = Exclude<Rule, { type: 'list' | 'map' | 'record' }>;

/** Describes the values of a kind, as the middle of a sentence. */
function whatOf(rule: ScalarRule): string {
  switch (rule.type) {
    case 'number':
      return rule.what;
    case 'boolean':
      return 'is true or false';
    case 'choice':
      return `is ${rule.of.join(' or ')}`;
    case 'switch':
      return 'is on or off';
    case 'quantity':
      return 'is a quantity such as 10Gi or 500m';
    case 'text':
      return rule.what ?? 'is a text';
  }
}

function wholeNumber(value: LocatedScalar['value'], least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most ? value : undefined;
}

function onOrOff({ value, text }: LocatedScalar): string | undefined {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return text === 'on' || text === 'off' ? text : undefined;
}

function quantityOf({ value, text }: LocatedScalar): string | number | undefined {
  if (!quantity.test(text)) return undefined;
  return typeof value === 'number' ? value : text;
}

/** The value as the kind of the rule; undefined when it does not fit. */
function scalarBy(scalar: LocatedScalar, rule: ScalarRule): unknown {
  const { value, text } = scalar;
  switch (rule.type) {
    case 'number':
      return wholeNumber(value, rule.least, rule.most);
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'choice':
      return rule.of.find((choice) => choice === text);
    case 'switch':
      return onOrOff(scalar);
    case 'quantity':
      return rule.mayBeEmpty === true && text === '' ? '' : quantityOf(scalar);
    case 'text':
      return rule.matches?.test(text) === false ? undefined : text;
  }
}
