// The part of TOML that the CNB lifecycle writes: tables, arrays of tables, and values that are strings, lists of strings, numbers or booleans.
// Source: https://toml.io/en/v1.0.0; written by github.com/BurntSushi/toml.

export type TomlValue = string | number | boolean | string[];

export interface TomlTable {
  /** Dotted name as in the header; empty for what stands before the first one. */
  name: string;
  values: Record<string, TomlValue>;
}

const escapes: Record<string, string> = { b: '\b', t: '\t', n: '\n', f: '\f', r: '\r', e: '\u001b', '"': '"', '\\': '\\' };
const basicString = /"((?:[^"\\]|\\.)*)"/y;
const literalString = /'([^']*)'/y;

function unescape(text: string): string {
  return text.replace(/\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)/g, (_, code: string) =>
    /^[uU]./.test(code) ? String.fromCodePoint(Number.parseInt(code.slice(1), 16)) : (escapes[code] ?? code),
  );
}

/** A string that starts at `at`, and where it ends. */
function readString(text: string, at: number): { value: string; end: number } | undefined {
  for (const [pattern, decode] of [
    [basicString, unescape],
    [literalString, String],
  ] as const) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match?.[1] !== undefined) return { value: decode(match[1]), end: pattern.lastIndex };
  }
  return undefined;
}

function readList(text: string, at: number): { value: string[]; end: number } | undefined {
  const value: string[] = [];
  let position = at + 1;
  for (;;) {
    const gap = /(?:[\s,]|#[^\n]*)*/y;
    gap.lastIndex = position;
    gap.exec(text);
    position = gap.lastIndex;
    if (text[position] === ']') return { value, end: position + 1 };
    const item = readString(text, position);
    if (item === undefined) return undefined;
    value.push(item.value);
    position = item.end;
  }
}

function readScalar(text: string, at: number): { value: TomlValue | undefined; end: number } {
  const raw = /[^\n#]*/y;
  raw.lastIndex = at;
  const word = (raw.exec(text)?.[0] ?? '').trim();
  const value = word === 'true' || word === 'false' ? word === 'true' : /^[+-]?\d+(\.\d+)?$/.test(word) ? Number(word) : undefined;
  return { value, end: raw.lastIndex };
}

/** The tables of a document in their order. Values of other types (dates, inline tables, nested lists) are left out. */
export function parseToml(text: string): TomlTable[] {
  let table: TomlTable = { name: '', values: {} };
  const tables = [table];
  let position = 0;
  const line =
    /[ \t]*(?:#[^\n]*)?(?:\[\[?\s*([^\]\n]+?)\s*\]?\]|((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\.[A-Za-z0-9_-]+)*)[ \t]*=[ \t]*)?/y;
  while (position < text.length) {
    line.lastIndex = position;
    const match = line.exec(text);
    position = line.lastIndex;
    if (match?.[1] !== undefined) {
      table = { name: match[1], values: {} };
      tables.push(table);
    } else if (match?.[2] !== undefined) {
      const found =
        readString(text, position) ?? (text[position] === '[' ? readList(text, position) : undefined) ?? readScalar(text, position);
      if (found.value !== undefined) table.values[match[2].replace(/^["']|["']$/g, '')] = found.value;
      position = found.end;
    }
    const next = text.indexOf('\n', position);
    position = next < 0 ? text.length : next + 1;
  }
  return tables;
}
