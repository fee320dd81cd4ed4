// A YAML file as a tree in which every key and value has its line and column; aliases and merge keys are resolved.

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import type { Alias, Document, Node, ParsedNode, Scalar, YAMLMap } from 'yaml';
import { KfError } from '../errors.ts';
import { plainScalar } from './scalar.ts';

export interface Position {
  line: number;
  column: number;
}

export interface LocatedScalar {
  kind: 'scalar';
  value: string | number | boolean | null;
  /** The value where a string is wanted: a plain one as it is written, and empty for null. */
  text: string;
  at: Position;
}

export interface LocatedList {
  kind: 'list';
  items: Located[];
  at: Position;
}

export interface LocatedEntry {
  key: string;
  keyAt: Position;
  value: Located;
  /** The value, or something in it, is an anchor that other places may refer to. */
  anchored: boolean;
}

export interface LocatedMap {
  kind: 'map';
  entries: LocatedEntry[];
  at: Position;
}

export type Located = LocatedScalar | LocatedList | LocatedMap;

/** Enough for any manifest. It stops aliases of aliases, and variables of variables, before they exhaust the memory. */
export const mostValues = 100_000;
const mostLevels = 100;
const mostFaults = 10;

/** A line of an error: `manifest.yml:3:5: text`. */
export function located(file: string, at: Position, text: string): string {
  return `${file}:${at.line}:${at.column}: ${text}`;
}

export interface TreeOptions {
  /** Message about invalid YAML, before its faults; default: cf's message about a manifest. */
  invalid?: string;
  /** Takes a fault after which the rest can be read; default: such a fault is thrown. */
  onFault?: (at: Position, text: string) => void;
}

/**
 * The tree of a YAML text, or undefined for an empty one. The text has a limited size (`lib/small-file.ts`), because parsing takes time in
 * proportion to it and cannot be interrupted.
 * @throws KfError `usage` with `invalid`, and the position of each fault
 */
export function parseTree(
  file: string,
  text: string,
  { invalid = `Unable to push app because manifest ${file} is not valid yaml.`, onFault }: TreeOptions = {},
): Located | undefined {
  const lines = new LineCounter();
  try {
    // The library would compare each key of a map with every other; the reader below uses a set.
    const options = { version: '1.1', merge: true, intAsBigInt: true, prettyErrors: false, uniqueKeys: false, lineCounter: lines } as const;
    const document = parseDocument(text, options);
    throwIfBroken({ file, invalid }, document, lines);
    if (document.contents === null) return undefined;
    return new Reader(file, document, lines, onFault).convert(document.contents, { line: 1, column: 1 });
  } catch (error) {
    // Neither the library nor this reader limits the depth: thousands of levels overflow the stack.
    if (!(error instanceof RangeError)) throw error;
    throw new KfError('usage', `${file}: its lists and maps are nested in more than ${mostLevels} levels.`, { cause: error });
  }
}

function throwIfBroken({ file, invalid }: { file: string; invalid: string }, document: Document.Parsed, lines: LineCounter): void {
  if (document.errors.length === 0) return;
  // What one fault breaks is often told several times for one place.
  const first = [...Map.groupBy(document.errors, ({ pos }) => pos[0]).values()].flatMap((faults) => faults.slice(0, 1));
  const where = first.slice(0, mostFaults).map(({ pos, message }) => {
    const { line, col } = lines.linePos(pos[0]);
    return located(file, { line, column: col }, message);
  });
  throw new KfError('usage', [invalid, ...where].join('\n'), { cause: first[0] });
}

/** The target of each alias: the last anchor of its name before it. One walk for all aliases; the library would walk once for each. */
function targetsOf(document: Document.Parsed): Map<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node: (_, node) => {
      const target = isAlias(node) ? anchors.get(node.source) : undefined;
      if (isAlias(node)) {
        if (target !== undefined) targets.set(node, target);
      } else if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
  });
  return targets;
}

class Reader {
  readonly #file: string;
  readonly #onFault: NonNullable<TreeOptions['onFault']>;
  readonly #targets: Map<Alias, Node>;
  readonly #lines: LineCounter;
  readonly #open = new Set<Node>();
  #count = 0;
  #level = 0;

  constructor(file: string, document: Document.Parsed, lines: LineCounter, onFault: TreeOptions['onFault']) {
    this.#file = file;
    this.#onFault = onFault ?? ((at, text) => this.#refuse(at, text));
    this.#targets = targetsOf(document);
    this.#lines = lines;
  }

  convert(node: Node | null | undefined, fallback: Position): Located {
    this.#count += 1;
    if (this.#count > mostValues) this.#refuse(fallback, `This file has more than ${mostValues} values, with what its aliases unfold to.`);
    if (node === null || node === undefined) return { kind: 'scalar', value: null, text: '', at: fallback };
    const at = this.#position(node, fallback);
    if (isAlias(node)) return this.#alias(this.#targets.get(node), node.source, at);
    if (isScalar(node)) return { kind: 'scalar', ...scalarOf(node), at };
    if (this.#level === mostLevels) return this.#refuse(at, `Lists and maps are nested in more than ${mostLevels} levels.`);
    this.#level += 1;
    const value = this.#collection(node, at);
    this.#level -= 1;
    return value;
  }

  #collection(node: Node, at: Position): Located {
    if (isSeq<ParsedNode>(node)) return { kind: 'list', items: node.items.map((item) => this.convert(item, at)), at };
    if (isMap<ParsedNode, ParsedNode | null>(node)) return { kind: 'map', entries: this.#entries(node, at), at };
    return this.#refuse(at, 'This is no value that a manifest can have.');
  }

  #alias(target: Node | undefined, name: string, at: Position): Located {
    if (target === undefined) return this.#refuse(at, `There is no anchor '&${name}'.`);
    if (this.#open.has(target)) return this.#refuse(at, `The anchor '&${name}' contains itself.`);
    this.#open.add(target);
    const value = this.convert(target, at);
    this.#open.delete(target);
    return value;
  }

  #entries(map: YAMLMap<ParsedNode, ParsedNode | null>, mapAt: Position): LocatedEntry[] {
    const own = new Map<string, LocatedEntry>();
    const merged: LocatedEntry[] = [];
    for (const { key, value } of map.items) {
      const keyAt = this.#position(key, mapAt);
      const converted = this.convert(value, keyAt);
      if (isMergeKey(key)) for (const entry of this.#mergedEntries(converted, keyAt)) merged.push(entry);
      else {
        const entry = this.#entry(key, value, converted, mapAt);
        if (own.has(entry.key)) this.#onFault(keyAt, `The key '${entry.key}' stands twice in this map.`);
        own.set(entry.key, entry);
      }
    }
    for (const entry of merged) if (!own.has(entry.key)) own.set(entry.key, entry);
    return [...own.values()];
  }

  #mergedEntries(value: Located, at: Position): LocatedEntry[] {
    return (value.kind === 'list' ? value.items : [value]).flatMap((source) =>
      source.kind === 'map' ? source.entries : this.#refuse(at, "What '<<' refers to is no map."),
    );
  }

  #entry(key: ParsedNode, value: ParsedNode | null, converted: Located, mapAt: Position): LocatedEntry {
    const name = this.convert(key, mapAt);
    const keyAt = this.#position(key, mapAt);
    if (name.kind !== 'scalar') return this.#refuse(keyAt, 'A key cannot be a list or a map.');
    // A key is a string as it is written: `N` and `on` are not booleans. Anchors matter only at the top level.
    const written = isScalar(key) ? key.source : undefined;
    return { key: written ?? name.text, keyAt, value: converted, anchored: this.#level === 1 && hasAnchor(value) };
  }

  #position(node: Node, fallback: Position): Position {
    const offset = node.range?.[0];
    if (offset === undefined) return fallback;
    const { line, col } = this.#lines.linePos(offset);
    return { line, column: col };
  }

  #refuse(at: Position, text: string): never {
    throw new KfError('usage', located(this.#file, at, text));
  }
}

function isMergeKey(key: ParsedNode): boolean {
  if (!isScalar(key) || key.type === 'QUOTE_DOUBLE' || key.type === 'QUOTE_SINGLE') return false;
  const value: unknown = key.value;
  return value === '<<' || (typeof value === 'symbol' && value.description === '<<');
}

function hasAnchor(node: Node | null): boolean {
  if (node === null || isAlias(node)) return false;
  if ('anchor' in node && typeof node.anchor === 'string') return true;
  if (isSeq<Node>(node)) return node.items.some((item) => hasAnchor(item));
  return isMap<Node, Node | null>(node) && node.items.some((pair) => hasAnchor(pair.value));
}

/** A plain scalar has the value of Go's YAML (see plainScalar), and its text is the source; the library reads quoted and tagged ones. */
function scalarOf(node: Scalar): { value: LocatedScalar['value']; text: string } {
  const { value, source = '', type, tag } = node as { value: unknown; source?: string; type?: string; tag?: string };
  if (type === 'PLAIN' && tag === undefined) {
    const plain = plainScalar(source);
    return { value: plain, text: plain === null ? '' : source };
  }
  if (value === null || value === undefined) return { value: null, text: '' };
  if (typeof value === 'string') return { value, text: value };
  const isNumber = typeof value === 'bigint' || typeof value === 'number';
  return { value: isNumber ? Number(value) : typeof value === 'boolean' ? value : source, text: source };
}

/** The tree as plain data, for service parameters and the values of variables. */
export function plainOf(tree: Located): unknown {
  if (tree.kind === 'scalar') return tree.value;
  if (tree.kind === 'list') return tree.items.map(plainOf);
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, plainOf(value)]));
}
