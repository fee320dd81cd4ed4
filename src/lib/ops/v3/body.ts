// The fields of a request's body. A field that would have no effect is refused.

import type { MetadataChange } from '../apps/metadata.ts';
import { V3Error } from '../../v3/errors.ts';

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object of a body. @throws V3Error 400 */
export function objectOf(text: string | undefined): Fields {
  try {
    const value: unknown = JSON.parse(text === undefined || text.trim() === '' ? '{}' : text);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new V3Error('bad-body', 'Request invalid due to parse error: invalid request body');
}

/** @param known the fields that have an effect @throws V3Error 422 for another field */
export function fieldsOf(value: unknown, known: readonly string[]): Fields {
  if (!isObject(value)) throw new V3Error('unprocessable', `An object with ${known.join(', ')} is expected.`);
  const unknown = Object.keys(value).filter((name) => !known.includes(name));
  if (unknown.length === 0) return value;
  const which = unknown.map((name) => `'${name}'`).join(', ');
  throw new V3Error('unprocessable', `Unknown field(s): ${which}; here kf curl changes ${known.map((name) => `'${name}'`).join(', ')}.`);
}

/** Texts by name; null removes one. */
export function textsOf(value: unknown, what: string): Record<string, string | null> {
  if (!isObject(value)) throw new V3Error('unprocessable', `${what} must be an object`);
  return Object.fromEntries(
    Object.entries(value).map(([name, text]) => {
      if (text === null || typeof text === 'string') return [name, text];
      if (typeof text === 'number' || typeof text === 'boolean') return [name, String(text)];
      throw new V3Error('unprocessable', `${what} must have texts; '${name}' has none.`);
    }),
  );
}

/** The change of labels and annotations in a body; nothing without one. */
export function metadataIn(given: unknown): MetadataChange {
  if (given === undefined) return {};
  const { labels = {}, annotations = {} } = fieldsOf(given, ['labels', 'annotations']);
  return { labels: textsOf(labels, 'labels'), annotations: textsOf(annotations, 'annotations') };
}

/** A whole number, if it is given. @throws V3Error 422 */
export function wholeNumber(value: unknown, what: string, least: number, most: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new V3Error('unprocessable', `${what} must be a whole number from ${least} to ${most}`);
}
