// The revisions of an app: list them, show one.

import { configMapType, secretType, type Secret } from '../../api/core.ts';
import type { Stored } from '../../api/object.ts';
import type { RevisionDetails, RevisionSummary } from '../../api/results.ts';
import { deployableOf, readRecords, revisionsName, settingsIn } from '../../api/revisions.ts';
import type { RevisionRecord, RevisionSettings } from '../../api/revisions.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { readVerdicts } from '../../api/verdicts.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { listDroplets } from './droplets.ts';

/** A revision with its record. */
export interface FoundRevision {
  record: RevisionRecord;
  summary: RevisionSummary;
  /** The whole app never served by it, as far as is known: its record says so, or why it failed is kept. */
  failed: boolean;
}

/** All revisions of the app, newest first. */
export async function findRevisions(session: SpaceSession, app: Stored<CFApp>): Promise<FoundRevision[]> {
  const { cluster, space, signal } = session;
  const [map, droplets] = await Promise.all([
    cluster.get(configMapType, space.guid, revisionsName(app.metadata.name), signal),
    listDroplets(session, app),
  ]);
  const present = new Set(droplets.map(({ guid }) => guid));
  // The one that served last, also of a stopped app.
  const last = app.status?.revision?.deployed;
  const deployed = app.spec.desiredState === 'STARTED' ? last : undefined;
  const failed = new Set(readVerdicts(map).map(({ version }) => version));
  const records = readRecords(map);
  const kept = new Set(deployableOf(records, last));
  return records.map((record) => {
    const { settings, neverServed, failedLast: _, ...shown } = record;
    const deployable = kept.has(record) && settings !== undefined && present.has(record.droplet);
    return {
      record,
      summary: { ...shown, deployed: record.version === deployed, deployable },
      failed: neverServed ?? failed.has(record.version),
    };
  });
}

/** The revisions of the app, newest first. */
export async function listRevisions(session: SpaceSession, app: Stored<CFApp>): Promise<RevisionSummary[]> {
  return (await findRevisions(session, app)).map(({ summary }) => summary);
}

/** @throws KfError `not-found` in cf's words */
export function pickRevision(found: readonly FoundRevision[], version: number, command: string): FoundRevision {
  const revision = found.find(({ record }) => record.version === version);
  if (revision === undefined) throw new KfError('not-found', `Revision '${version}' not found`, { hints: [command] });
  return revision;
}

/** Finds the settings of a revision; undefined when they are not kept any more. */
export type SettingsOf = (record: RevisionRecord) => Promise<RevisionSettings | undefined>;

/** Reads the settings of all revisions with one request, when the first ones are asked for. */
export function settingsReader({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): SettingsOf {
  let kept: Promise<Stored<Secret> | undefined> | undefined;
  return async ({ settings }) => {
    if (settings === undefined) return undefined;
    kept ??= cluster.get(secretType, space.guid, revisionsName(app.metadata.name), signal);
    return settingsIn(await kept, settings);
  };
}

/** The settings of a revision; undefined when they are not kept any more. */
export function readSettings(session: SpaceSession, app: Stored<CFApp>, record: RevisionRecord): Promise<RevisionSettings | undefined> {
  return settingsReader(session, app)(record);
}

/** The variables of a revision as texts. */
export function variablesOf({ env }: RevisionSettings): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, Buffer.from(value, 'base64').toString('utf8')]));
}

async function readEnv(session: SpaceSession, app: Stored<CFApp>, record: RevisionRecord): Promise<Record<string, string> | undefined> {
  try {
    const settings = await readSettings(session, app, record);
    return settings === undefined ? undefined : variablesOf(settings);
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'forbidden') throw error;
    session.report({ type: 'variables-hidden', cause: error.message });
    return undefined;
  }
}

/** The revision of that version; without one, the deployed revision. @throws KfError `not-found` */
export async function showRevision(session: SpaceSession, app: Stored<CFApp>, version?: number): Promise<RevisionDetails> {
  const found = await findRevisions(session, app);
  const command = `${session.bin} revisions ${app.spec.displayName}`;
  const wanted = version ?? found.find(({ summary }) => summary.deployed)?.record.version;
  if (wanted === undefined)
    throw new KfError('not-found', `No revision of app '${app.spec.displayName}' is deployed.`, { hints: [command] });
  const { record, summary } = pickRevision(found, wanted, command);
  return { ...summary, labels: {}, annotations: {}, ...defined({ env: await readEnv(session, app, record) }) };
}
