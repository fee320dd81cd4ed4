// Values that are JSON, on the command line or in a file.

import { KfError } from '../errors.ts';
import { readSmallFile } from '../small-file.ts';
import { incorrectUsage } from './usage.ts';

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined for a text that does not name a file. @throws KfError for a file that is too large */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readSmallFile({ path, asGiven: path, what: 'a file of JSON' });
  } catch (error) {
    if (error instanceof KfError) throw error;
    return undefined;
  }
}

/** An object, inline or from the file of that name; undefined when the text is neither. @throws KfError for a file without an object */
export async function readJsonOrFile(text: string, flag: string): Promise<Record<string, unknown> | undefined> {
  const inline = parseObject(text);
  if (inline !== undefined) return inline;
  const content = await readText(text);
  if (content === undefined) return undefined;
  const fromFile = parseObject(content);
  if (fromFile === undefined) throw incorrectUsage(`The file '${text}' given with ${flag} holds no JSON object.`);
  return fromFile;
}
