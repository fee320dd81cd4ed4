// JSON merge patches (RFC 7396): the smallest patch between two states, and whether an object already has all declared values.

type Json = unknown;
type JsonObject = Record<string, Json>;

const isObject = (value: Json): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Deep equality of JSON values; a key with `undefined` counts as absent. */
export function isEqual(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, index) => isEqual(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isEqual(a[key], b[key]));
}

/** The patch that turns `from` into `to`, or undefined when they are equal. It removes keys that `to` does not have. */
export function diff(from: JsonObject, to: JsonObject): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [from[key], to[key]];
    if (after === undefined) {
      if (before !== undefined) patch[key] = null;
    } else if (isObject(before) && isObject(after)) {
      const inner = diff(before, after);
      if (inner !== undefined) patch[key] = inner;
    } else if (!isEqual(before, after)) {
      patch[key] = after;
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/**
 * True when `live` has every value of `wanted` at the same place; lists must match item by item. The API server stores no empty annotations and
 * labels, so an empty object is contained in nothing.
 */
export function contains(live: Json, wanted: Json): boolean {
  if (wanted === undefined) return true;
  if (Array.isArray(wanted)) {
    return Array.isArray(live) && live.length === wanted.length && wanted.every((item, index) => contains(live[index], item));
  }
  if (!isObject(wanted)) return live === wanted;
  const present = live === undefined ? {} : live;
  return isObject(present) && Object.entries(wanted).every(([key, value]) => contains(present[key], value));
}
