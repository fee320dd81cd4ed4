// Reads text that builds, images and registries wrote. Sizes are limited before and after unpacking, parsers run in linear time, and only values
// of the expected shape come out. Invalid input is an UntrustedError, and its sentence belongs into the status of that one object.

import { gunzipSync } from 'node:zlib';
import { parse as parseTomlDocument, TomlError } from 'smol-toml';

/** A table of TOML or an object of JSON, whose values may be anything. */
export type UntrustedTable = Readonly<Record<string, unknown>>;

/** Text from builds, images or registries is invalid. */
export class UntrustedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UntrustedError';
  }
}

/** Far above the size of the documents that the CNB lifecycle writes for a real app. */
const mostCharacters = 256 * 1024;
const deepestNesting = 32;

function assertSize(text: string, noun: string): void {
  if (text.length > mostCharacters)
    throw new UntrustedError(`${noun} has ${text.length} characters; at most ${mostCharacters} of them are read.`);
}

/** Unpacks text that is compressed with gzip and encoded in base64. */
export function unpackText(packed: string, noun: string): string {
  assertSize(packed, noun);
  try {
    return gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: mostCharacters }).toString('utf8');
  } catch (error) {
    const isTooLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    const why = isTooLong ? `unpacks to more than ${mostCharacters} bytes` : 'is not packed with gzip';
    throw new UntrustedError(`${noun} ${why}.`, { cause: error });
  }
}

/** The root table of a TOML document. */
export function readToml(text: string, noun: string): UntrustedTable {
  assertSize(text, noun);
  try {
    return parseTomlDocument(text, { maxDepth: deepestNesting });
  } catch (error) {
    const where = error instanceof TomlError ? ` (line ${error.line}, column ${error.column})` : '';
    throw new UntrustedError(`${noun} is not valid TOML${where}.`, { cause: error });
  }
}

/** The root object of a JSON document. */
export function readJson(text: string, noun: string): UntrustedTable {
  assertSize(text, noun);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UntrustedError(`${noun} is not valid JSON.`, { cause: error });
  }
  if (!isTable(value)) throw new UntrustedError(`${noun} is not a JSON object.`);
  return value;
}

function isTable(value: unknown): value is UntrustedTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The table, or an empty one for any other value. */
export function tableIn(value: unknown): UntrustedTable {
  return isTable(value) ? value : {};
}

/** The tables of a list. Other items are left out; a value that is not a list gives an empty one. */
export function tablesIn(value: unknown): UntrustedTable[] {
  return Array.isArray(value) ? value.filter(isTable) : [];
}

/** The text, or '' for any other value. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The strings of a list; a single string gives a list of one. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}
