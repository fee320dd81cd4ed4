// When a field of an object was last written, and whether its author signed, from what the API server notes of each writer.

import { annotations } from './group.ts';
import type { KubeObject } from './object.ts';

/** What the API server notes of each writer of an object. Caches of the controller leave it out. */
interface WithWriters {
  managedFields?: { time?: string; fieldsV1?: unknown }[];
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

function has(fields: unknown, path: readonly string[]): boolean {
  const [first, ...rest] = path;
  if (first === undefined) return true;
  return isObject(fields) && `f:${first}` in fields && has(fields[`f:${first}`], rest);
}

/**
 * When the writer of a field changed the object last; undefined where nothing says so. The field itself has this time or an earlier one: a writer has
 * one time for all fields that it owns.
 * @param path e.g. `spec`, `desiredState`
 */
export function changedAt({ metadata }: KubeObject, ...path: string[]): string | undefined {
  const { managedFields = [] } = metadata as WithWriters;
  const times = managedFields.flatMap(({ time, fieldsV1 }) => (time !== undefined && has(fieldsV1, path) ? [time] : []));
  return times.toSorted().at(-1);
}

const signature = ['metadata', 'annotations', annotations.changedBy];

/**
 * True when the writer of a field also wrote `kf/changed-by`, as kf does. An autoscaler and `kubectl scale` write the number of instances through a
 * subresource: the API server then notes another writer for the field, who has signed nothing.
 * @param path e.g. `spec`, `desiredInstances`
 */
export function isSigned({ metadata }: KubeObject, ...path: string[]): boolean {
  const { managedFields = [] } = metadata as WithWriters;
  return managedFields.some(({ fieldsV1 }) => has(fieldsV1, path) && has(fieldsV1, signature));
}

/** The object with what the API server notes of its writers. @param live the same object, from the API server */
export function withWriters<T extends KubeObject>(object: T, live: KubeObject | undefined): T {
  const { managedFields } = (live?.metadata ?? {}) as WithWriters;
  if (live?.metadata.uid !== object.metadata.uid || managedFields === undefined) return object;
  return { ...object, metadata: { ...object.metadata, managedFields } };
}
