// A YAML file as a tree in which every key and value knows its line and column; aliases and merge keys are resolved.

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { Document, Node, ParsedNode, Scalar, Tags, YAMLMap } from 'yaml';
import { KfError } from '../errors.ts';

export interface Position {
  line: number;
  column: number;
}

export interface LocatedScalar {
  kind: 'scalar';
  value: string | number | boolean | null;
  /** What the value becomes where a text is wanted. */
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

/** Enough for any manifest; aliases of aliases end here instead of in exhausted memory. */
const maxNodes = 100_000;

/** A line of an error: `manifest.yml:3:5: text`. */
export function located(file: string, at: Position, text: string): string {
  return `${file}:${at.line}:${at.column}: ${text}`;
}

/** YAML 1.1 as cf reads it: without the base-60 numbers and timestamps that would turn `10:30` into 630. */
function cfTags(tags: Tags): Tags {
  return tags.filter((tag) => typeof tag === 'string' || (tag.tag !== 'tag:yaml.org,2002:timestamp' && tag.format !== 'TIME'));
}

/**
 * The tree of a YAML text, or undefined for an empty one.
 * @throws KfError `usage`: the message that cf gives for bad YAML, and where the fault is
 */
export function parseTree(file: string, text: string): Located | undefined {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: '1.1',
    merge: true,
    intAsBigInt: true,
    prettyErrors: false,
    lineCounter: lines,
    customTags: cfTags,
  });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0]);
    const where = located(file, { line, column: col }, fault.message);
    throw new KfError('usage', `Unable to push app because manifest ${file} is not valid yaml.\n${where}`, { cause: fault });
  }
  if (document.contents === null) return undefined;
  return new Reader(file, document, lines).convert(document.contents, { line: 1, column: 1 });
}

class Reader {
  readonly #file: string;
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;
  readonly #open = new Set<Node>();
  #count = 0;

  constructor(file: string, document: Document.Parsed, lines: LineCounter) {
    this.#file = file;
    this.#document = document;
    this.#lines = lines;
  }

  convert(node: Node | null | undefined, fallback: Position): Located {
    this.#count += 1;
    if (this.#count > maxNodes) this.#refuse(fallback, 'The aliases of this file unfold to more values than a manifest can have.');
    if (node === null || node === undefined) return { kind: 'scalar', value: null, text: '', at: fallback };
    const at = this.#position(node, fallback);
    if (isAlias(node)) return this.#alias(node.resolve(this.#document), node.source, at);
    if (isScalar(node)) return { kind: 'scalar', ...scalarOf(node), at };
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
    const own: LocatedEntry[] = [];
    const merged: LocatedEntry[] = [];
    for (const { key, value } of map.items) {
      const keyAt = this.#position(key, mapAt);
      const converted = this.convert(value, keyAt);
      if (isMergeKey(key)) {
        for (const source of converted.kind === 'list' ? converted.items : [converted]) {
          if (source.kind !== 'map') return this.#refuse(keyAt, "What '<<' refers to is no map.");
          merged.push(...source.entries);
        }
      } else {
        const name = this.convert(key, mapAt);
        if (name.kind !== 'scalar') return this.#refuse(keyAt, 'A key cannot be a list or a map.');
        // A key is a name as it is written: `N` and `on` are no truth values.
        own.push({ key: (isScalar(key) ? key.source : undefined) ?? name.text, keyAt, value: converted, anchored: hasAnchor(value) });
      }
    }
    const taken = new Set(own.map((entry) => entry.key));
    for (const entry of merged) {
      if (taken.has(entry.key)) continue;
      taken.add(entry.key);
      own.push(entry);
    }
    return own;
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

/** Decimal numbers keep their digits as written (`1.10` stays `1.10`); other notations become decimal. */
function scalarOf(node: Scalar): { value: LocatedScalar['value']; text: string } {
  const { value, source = '' } = node as { value: unknown; source?: string };
  if (value === null || value === undefined) return { value: null, text: '' };
  if (typeof value === 'string') return { value, text: value };
  if (typeof value === 'boolean') return { value, text: String(value) };
  if (typeof value === 'bigint') return { value: Number(value), text: value.toString() };
  if (typeof value === 'number') return { value, text: /^-?\d+\.\d+$/.test(source) ? source : String(value) };
  return { value: source, text: source };
}

/** The tree as plain data: for service parameters and the values of variables. */
export function plainOf(tree: Located): unknown {
  if (tree.kind === 'scalar') return tree.value;
  if (tree.kind === 'list') return tree.items.map(plainOf);
  return Object.fromEntries(tree.entries.map(({ key, value }) => [key, plainOf(value)]));
}
