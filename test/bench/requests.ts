// What the API server was asked for while a command ran, by its own audit log.

import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditEntry } from '../support/kf.ts';
import { auditEnd, auditFrom } from './scene.ts';

export interface RequestCounts {
  api: number;
  /** Through the service proxy, to the registry. */
  registry: number;
  /** `list cfapps`, with how often each came. */
  byKind: Map<string, number>;
}

/** A watch is written down when its connection is gone, a moment after the command. */
const settleMs = 700;

const isPerson = ({ user }: AuditEntry): boolean => user.username.startsWith('system:serviceaccount:kf-test-users:');
const isRegistry = ({ objectRef }: AuditEntry): boolean => objectRef?.resource === 'services' && objectRef.subresource === 'proxy';

export function kindOf({ verb, objectRef, requestURI }: AuditEntry): string {
  const { resource = requestURI, subresource } = objectRef ?? {};
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}

export function tally(entries: readonly AuditEntry[]): Map<string, number> {
  const byKind = new Map<string, number>();
  for (const entry of entries) byKind.set(kindOf(entry), (byKind.get(kindOf(entry)) ?? 0) + 1);
  return byKind;
}

/** Runs `act` and counts what people (not the controller) asked for meanwhile. */
export async function countRequests<T>(act: () => Promise<T>): Promise<{ result: T; requests: RequestCounts }> {
  const start = await auditEnd();
  const result = await act();
  await sleep(settleMs);
  const entries = (await auditFrom(start)).filter(isPerson);
  const api = entries.filter((entry) => !isRegistry(entry));
  return { result, requests: { api: api.length, registry: entries.length - api.length, byKind: tally(api) } };
}

/** `3 list cfapps, 2 watch cfapps …`, the most frequent first. */
export function listed(byKind: ReadonlyMap<string, number>): string {
  const entries = [...byKind].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return entries.map(([kind, times]) => (times === 1 ? kind : `${times} × ${kind}`)).join(', ');
}
