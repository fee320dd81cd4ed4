// The requests that the API server got while a command ran, from its own audit log.

import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ringEnv } from './kf.ts';

export interface AuditEntry {
  stage: string;
  verb: string;
  requestURI: string;
  user: { username: string };
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
  requestReceivedTimestamp: string;
  /** When the request ended. */
  stageTimestamp?: string;
  userAgent?: string;
}

export interface RequestCounts {
  api: number;
  /** Through the service proxy to the registry. */
  registry: number;
  /** `list cfapps` → number of requests. */
  byKind: Map<string, number>;
}

/** The present end of the audit log: {@link auditFrom} reads the entries after it. */
export async function auditEnd(): Promise<number> {
  return (await stat(ringEnv('KF_CLUSTER_AUDIT_LOG'))).size;
}

/** The requests that ended since `offset`. */
export async function auditFrom(offset: number): Promise<AuditEntry[]> {
  const file = await open(ringEnv('KF_CLUSTER_AUDIT_LOG'));
  try {
    const { size } = await file.stat();
    // From the character before: half of an entry may have been on the disk then, and its rest is none of these.
    const start = Math.max(0, offset - 1);
    const { buffer } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    const lines = buffer
      .toString('utf8')
      .split('\n')
      .slice(offset === 0 ? 0 : 1, -1);
    return lines.map((line) => JSON.parse(line) as AuditEntry).filter((entry) => entry.stage === 'ResponseComplete');
  } finally {
    await file.close();
  }
}

/** A watch is logged when its connection has closed, a moment after the command. */
const settleMs = 700;

const isPerson = ({ user }: AuditEntry): boolean => user.username.startsWith('system:serviceaccount:kf-test-users:');
const isRegistry = ({ objectRef }: AuditEntry): boolean => objectRef?.resource === 'services' && objectRef.subresource === 'proxy';

/** The writes of kf, including dry runs: all requests except get, list and the review of the caller's name, which is a POST and stores nothing. */
export function writesOfKf(entries: readonly AuditEntry[]): AuditEntry[] {
  return entries.filter(
    ({ userAgent, verb, objectRef }) =>
      userAgent?.startsWith('kf/') === true && !['get', 'list'].includes(verb) && objectRef?.resource !== 'selfsubjectreviews',
  );
}

export function kindOf({ verb, objectRef, requestURI }: AuditEntry): string {
  const { resource = requestURI, subresource } = objectRef ?? {};
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}

export function tally(entries: readonly AuditEntry[]): Map<string, number> {
  const byKind = new Map<string, number>();
  for (const entry of entries) byKind.set(kindOf(entry), (byKind.get(kindOf(entry)) ?? 0) + 1);
  return byKind;
}

/** Runs `act` and counts the requests of users (not of the controller) in that time. */
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
