// Objects as `kf setup --dry-run` prints them, by name.

import { parse } from 'yaml';

export interface Printed {
  kind: string;
  metadata: { name: string; namespace?: string };
  data?: Record<string, string>;
}

/** By `Kind namespace/name`; `kf-info` and `kf-setup` are the contents of their ConfigMaps, `kf-bundle` the programs under any hash. */
export type Objects = Record<string, unknown>;

/** Its unique name within its kind, and the compared part of it. */
export function named(object: Printed): [name: string, object: unknown] {
  const { kind, metadata, data } = object;
  if (metadata.name === 'kf-info' && kind === 'ConfigMap') return ['kf-info', JSON.parse(data?.['info.json'] ?? '') as unknown];
  if (metadata.name === 'kf-setup') return ['kf-setup', parse(data?.['setup.yaml'] ?? '')];
  if (metadata.name.startsWith('kf-bundle-')) return ['kf-bundle', Object.keys(data ?? {})];
  return [`${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`, object];
}

/** Names of the objects that only one of both has, or that differ. */
export function differing(one: Objects, other: Objects): string[] {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return names.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name])).sort();
}
