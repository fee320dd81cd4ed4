// Reads what a manifest names without making objects of it: its author chooses the text, and parsed JSON takes many times its size in memory.

import type { LinkKind } from './repository.ts';

/** The registry's JSON reader has the same limit. https://pkg.go.dev/encoding/json */
const mostDepth = 10_000;
/** Quotes and 71 characters as `\u0000`; longer strings are neither a name that counts nor a digest. */
const mostDecoded = 2 + 6 * 71;

const brace = { open: 0x7b, close: 0x7d } as const;
const bracket = { open: 0x5b, close: 0x5d } as const;
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const digestText = /^sha256:([0-9a-f]{64})$/;
const plainText = /^(?:true|false|null|-?[0-9][0-9.eE+-]*)$/;
/** No other value without quotes counts for anything, so a longer number is only skipped. */
const mostPlain = 400;

/** Names of the fields with entries, in upper case: the registry does not distinguish cases. Those of an index have manifests. */
const lists: ReadonlyMap<string, LinkKind> = new Map([
  ['LAYERS', 'layer'],
  ['BLOBS', 'layer'],
  ['MANIFESTS', 'manifest'],
]);

export type Named = (kind: LinkKind, digest: string) => void;

const notJson = (at: number): Error => new Error(`a manifest is not JSON at byte ${at}`);

/** Where in the document the reader is. */
class Place {
  /** The opening bytes of the objects and lists around it. */
  readonly #around: number[] = [];
  readonly #named: Named;
  #expects: 'value' | 'first' | 'key' | 'colon' | 'more' | 'end' = 'value';
  /** The key in the outermost object, and the one in an entry. */
  #field = '';
  #key = '';

  constructor(named: Named) {
    this.#named = named;
  }

  get isComplete(): boolean {
    return this.#expects === 'end';
  }

  get #isInObject(): boolean {
    return this.#around.at(-1) === brace.open;
  }

  get #takesKey(): boolean {
    return this.#expects === 'key' || (this.#expects === 'first' && this.#isInObject);
  }

  /** What the entry refers to that the reader is in; undefined outside of one. */
  get #kind(): LinkKind | undefined {
    const [root, first, second, ...more] = this.#around;
    if (root !== brace.open || more.length > 0 || !this.#isInObject) return undefined;
    if (second === undefined) return first === brace.open && this.#field === 'CONFIG' ? 'layer' : undefined;
    return first === bracket.open ? lists.get(this.#field) : undefined;
  }

  /** Each of these returns false where JSON has no such text. */
  value(): boolean {
    if (this.#takesKey || (this.#expects !== 'value' && this.#expects !== 'first')) return false;
    this.#endValue();
    return true;
  }

  string(decode: () => string): boolean {
    const depth = this.#around.length;
    if (!this.#takesKey) {
      if (depth <= 3 && this.#key === 'DIGEST') this.#digest(decode);
      return this.value();
    }
    this.#expects = 'colon';
    if (depth > 3) return true;
    const key = decode().toUpperCase();
    if (depth === 1) this.#field = key;
    this.#key = key;
    return true;
  }

  open(byte: number): boolean {
    if (!this.value() || this.#around.length >= mostDepth) return false;
    this.#around.push(byte);
    this.#expects = 'first';
    this.#key = '';
    return true;
  }

  close(byte: number): boolean {
    const isPair = this.#around.at(-1) === byte;
    if (!isPair || (this.#expects !== 'more' && this.#expects !== 'first')) return false;
    this.#around.pop();
    this.#endValue();
    return true;
  }

  comma(): boolean {
    if (this.#expects !== 'more') return false;
    this.#expects = this.#isInObject ? 'key' : 'value';
    return true;
  }

  colon(): boolean {
    if (this.#expects !== 'colon') return false;
    this.#expects = 'value';
    return true;
  }

  #endValue(): void {
    this.#expects = this.#around.length === 0 ? 'end' : 'more';
  }

  #digest(decode: () => string): void {
    const kind = this.#kind;
    const digest = kind === undefined ? undefined : digestText.exec(decode())?.[1];
    if (kind !== undefined && digest !== undefined) this.#named(kind, digest);
  }
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
const isPlain = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || [0x2b, 0x2d, 0x2e, 0x45].includes(byte);

/** The end of the string that begins at a quote. */
function endOfString(text: Buffer, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    const byte = text[at] ?? 0;
    if (byte === quote) return at + 1;
    if (byte === backslash) at += 1;
    else if (byte < 0x20) break;
  }
  throw notJson(from);
}

/** The end of a number, or of `true`, `false` or `null`. */
function endOfPlain(text: Buffer, from: number): number {
  let at = from;
  while (at < text.length && isPlain(text[at] ?? 0)) at += 1;
  if (!plainText.test(text.toString('latin1', from, Math.min(at, from + mostPlain)))) throw notJson(from);
  return at;
}

/** The text of a string; empty if it is too long to be of use. */
function decoded(text: Buffer, from: number, end: number): string {
  if (end - from > mostDecoded) return '';
  try {
    return JSON.parse(text.toString('utf8', from, end)) as string;
  } catch {
    throw notJson(from);
  }
}

/** Reads the text at a place that is no space. Returns where the next one begins. */
function step(text: Buffer, at: number, place: Place): number {
  const byte = text[at] ?? 0;
  let end = at + 1;
  let isJson: boolean;
  if (byte === quote) {
    end = endOfString(text, at);
    isJson = place.string(() => decoded(text, at, end));
  } else if (byte === comma) isJson = place.comma();
  else if (byte === colon) isJson = place.colon();
  else if (byte === brace.open || byte === bracket.open) isJson = place.open(byte);
  else if (byte === brace.close) isJson = place.close(brace.open);
  else if (byte === bracket.close) isJson = place.close(bracket.open);
  else {
    end = endOfPlain(text, at);
    isJson = place.value();
  }
  if (!isJson) throw notJson(at);
  return end;
}

/**
 * Tells each digest that a manifest or an index names as config, layer or manifest. Of fields that are there several times it tells all: the registry
 * counts one of them.
 * @throws Error if the text is not JSON: then it is not known what it names
 */
export function readNames(text: Buffer, named: Named): void {
  const place = new Place(named);
  let at = 0;
  for (;;) {
    while (isSpace(text[at])) at += 1;
    if (at >= text.length) break;
    at = step(text, at, place);
  }
  if (!place.isComplete) throw notJson(at);
}
