// What all resources of the CF v3 API have in common.

import type { KubeObject, Stored } from '../api/object.ts';
import { labels } from '../api/group.ts';
import { defined } from '../defined.ts';
import { isOfUser } from '../api/metadata.ts';

/** A resource as the API answers it; its other fields depend on its kind. */
export interface V3Resource {
  guid: string;
  created_at: string;
  updated_at: string;
  [field: string]: unknown;
}

export interface Link {
  href: string;
  method?: string;
}

/** Makes links below one server: `link('/v3/apps/x')`. */
export type LinkTo = (path: string, method?: string) => Link;

/** @param base the server's URL, without a slash at its end */
export function linksTo(base: string): LinkTo {
  return (path, method) => ({ href: `${base}${path}`, ...defined({ method }) });
}

/** Keys that the platform uses itself are no metadata of users. */
const ofUsers = (entries: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(entries).filter(([key]) => isOfUser(key) && key !== labels.provisionedService));

/** The labels and annotations of users. */
export function metadataOf({ metadata }: KubeObject): { labels: Record<string, string>; annotations: Record<string, string> } {
  return { labels: ofUsers(metadata.labels), annotations: ofUsers(metadata.annotations) };
}

/** A time from a label (`2006-01-02T15-04-05`) as RFC 3339; undefined for another text. */
function timeOf(label: string | undefined): string | undefined {
  const [, day, hour = '', minute = '', second = ''] = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)$/.exec(label ?? '') ?? [];
  return day === undefined ? undefined : `${day}T${hour}:${minute}:${second}Z`;
}

/** GUID and times, the first fields of each resource. */
export function identityOf({ metadata }: Stored): Pick<V3Resource, 'guid' | 'created_at' | 'updated_at'> {
  const created = metadata.creationTimestamp ?? '';
  return { guid: metadata.name, created_at: created, updated_at: timeOf(metadata.labels?.[labels.updatedAt]) ?? created };
}

/** A relationship to one resource, or to none. */
export function toOne(guid: string | undefined): { data: { guid: string } | null } {
  return { data: guid === undefined || guid === '' ? null : { guid } };
}
