// Names for the completion of shells, from the cluster, and kept for some seconds, since a user who presses a key waits for them.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { kinds } from '../../api/group.ts';
import type { NameKind } from '../../cf/completion.ts';
import { readKubeconfig } from '../../kube/kubeconfig.ts';
import { listOrgs, listSpaces } from '../../session/places.ts';
import { openSession, type OrgSession, type Session, type SpaceSession } from '../../session/session.ts';
import { stateFolder } from '../../session/state.ts';
import { rowsOf } from '../rows.ts';

type Env = Session['env'];

/** How long names are used without asking again. */
const freshMs = 10_000;
/** How long a cluster may take; after that, older names are used. */
const patienceMs = 2_000;
/** Names of other clusters and spaces are forgotten when there are more. */
const mostEntries = 30;

interface Kept {
  at: number;
  names: string[];
}

/** By cluster, place and kind. */
type Store = Record<string, Kept>;

const storeFile = (env: Env): string => join(stateFolder(env), 'completion.json');

function readStore(env: Env): Store {
  try {
    return JSON.parse(readFileSync(storeFile(env), 'utf8')) as Store;
  } catch {
    return {};
  }
}

function writeStore(env: Env, store: Store): void {
  const newest = Object.entries(store)
    .toSorted(([, a], [, b]) => b.at - a.at)
    .slice(0, mostEntries);
  const file = storeFile(env);
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}-${process.pid}`, JSON.stringify(Object.fromEntries(newest)), { mode: 0o600 });
    renameSync(`${file}-${process.pid}`, file);
  } catch {
    // Without the file, the cluster is asked each time.
  }
}

const columns = { app: [kinds.app, 'Display Name'], service: [kinds.serviceInstance, 'Display Name'] } as const;

async function readNames(session: Session, kind: Exclude<NameKind, 'context'>): Promise<string[]> {
  const { cluster, root, signal } = session;
  switch (kind) {
    case 'app':
    case 'service': {
      const [type, column] = columns[kind];
      return (await rowsOf(session as SpaceSession, type, [column])).map((row) => row[column] ?? '');
    }
    case 'host': {
      const { items } = await cluster.list(kinds.route, { ns: (session as SpaceSession).space.guid, signal });
      return items.map(({ spec }) => spec.host ?? '');
    }
    case 'domain':
      return (await cluster.list(kinds.domain, { ns: root, signal })).items.map(({ spec }) => spec.name);
    case 'org':
      return (await listOrgs(session)).map(({ name }) => name);
    case 'space':
      return (await listSpaces(session, (session as OrgSession).org)).map(({ name }) => name);
  }
}

/** The part of a session's place on which names of a kind depend. */
const needs = { app: 'space', service: 'space', host: 'space', space: 'org', domain: 'cluster', org: 'cluster' } as const;

export interface NamesOptions {
  env: Env;
  signal: AbortSignal;
  bin: string;
  /** Given on the line before. */
  context?: string | undefined;
  org?: string | undefined;
  space?: string | undefined;
}

/** Names of that kind, sorted; nothing when the cluster cannot be asked: completion has no place for errors. */
export async function namesFor(kind: NameKind, { env, signal, bin, context, org, space }: NamesOptions): Promise<string[]> {
  try {
    if (kind === 'context') return [...(await readKubeconfig({ env })).contexts.keys()].toSorted();
    const within = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    const quiet = { report: () => undefined, trace: () => undefined };
    const { CF_TRACE: _none, ...untraced } = env;
    const session = await openSession({ needs: needs[kind], env: untraced, signal: within, bin, context, org, space, ...quiet });
    try {
      return await keptNames(session, kind);
    } finally {
      session.close();
    }
  } catch {
    return [];
  }
}

async function keptNames(session: Session, kind: Exclude<NameKind, 'context'>): Promise<string[]> {
  const { context, server } = session.cluster.identity;
  const place = { space: session.space?.guid, org: session.org?.guid, cluster: '' }[needs[kind]] ?? '';
  const key = [server, context, session.user, place, kind].join(' ');
  const store = readStore(session.env);
  const kept = store[key];
  if (kept !== undefined && Math.abs(Date.now() - kept.at) < freshMs) return kept.names;
  try {
    const names = [...new Set(await readNames(session, kind))].filter((name) => name !== '').toSorted();
    writeStore(session.env, { ...store, [key]: { at: Date.now(), names } });
    return names;
  } catch {
    return kept?.names ?? [];
  }
}
