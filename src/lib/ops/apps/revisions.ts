// The revisions of an app: list them, show one.

import { configMapType, secretType } from '../../api/core.ts';
import type { Stored } from '../../api/object.ts';
import type { RevisionDetails, RevisionSummary } from '../../api/results.ts';
import { mostDeployable, readRecords, revisionsName, settingsIn } from '../../api/revisions.ts';
import type { RevisionRecord, RevisionSettings } from '../../api/revisions.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { listDroplets } from './droplets.ts';

/** A revision with its record. */
export interface FoundRevision {
  record: RevisionRecord;
  summary: RevisionSummary;
}

/** All revisions of the app, newest first. */
export async function findRevisions(session: SpaceSession, app: Stored<CFApp>): Promise<FoundRevision[]> {
  const { cluster, space, signal } = session;
  const [map, droplets] = await Promise.all([
    cluster.get(configMapType, space.guid, revisionsName(app.metadata.name), signal),
    listDroplets(session, app),
  ]);
  const present = new Set(droplets.map(({ guid }) => guid));
  const deployed = app.spec.desiredState === 'STARTED' ? app.status?.revision?.deployed : undefined;
  return readRecords(map).map((record, index) => {
    const { settings, ...shown } = record;
    const deployable = index < mostDeployable && settings !== undefined && present.has(record.droplet);
    return { record, summary: { ...shown, deployed: record.version === deployed, deployable } };
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

/** The settings of a revision; undefined when they are not kept any more. */
export async function readSettings(
  { cluster, space, signal }: SpaceSession,
  app: Stored<CFApp>,
  { settings }: RevisionRecord,
): Promise<RevisionSettings | undefined> {
  if (settings === undefined) return undefined;
  return settingsIn(await cluster.get(secretType, space.guid, revisionsName(app.metadata.name), signal), settings);
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
