// Values that are JSON on the command line or in a file.

import { readFileSync } from 'node:fs';
import { incorrectUsage } from './usage.ts';

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** An object, inline or from the file of that name; undefined when the text is neither. @throws KfError for a file without an object */
export function readJsonOrFile(text: string, flag: string): Record<string, unknown> | undefined {
  const inline = parseObject(text);
  if (inline !== undefined) return inline;
  const content = readText(text);
  if (content === undefined) return undefined;
  const fromFile = parseObject(content);
  if (fromFile === undefined) throw incorrectUsage(`The file '${text}' given with ${flag} holds no JSON object.`);
  return fromFile;
}
