// URLs of the Kubernetes API. Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris

import type { ResourceType } from '../api/object.ts';

type Query = Record<string, string | number | boolean | undefined>;

export interface PathParts {
  ns?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
  query?: Query;
}

/** `?a=1&b=2`, or nothing; undefined values are left out. */
export function queryString(query: Query | undefined): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) if (value !== undefined) search.set(key, String(value));
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}

/** Path and query of a collection, an object or a subresource. */
export function resourcePath(type: ResourceType, { ns, name, subresource, query }: PathParts = {}): string {
  const base = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const place = type.namespaced && ns !== undefined ? `/namespaces/${encodeURIComponent(ns)}` : '';
  const tail = [name, subresource].filter((part) => part !== undefined).map((part) => `/${encodeURIComponent(part)}`);
  return `${base}${place}/${type.plural}${tail.join('')}${queryString(query)}`;
}
