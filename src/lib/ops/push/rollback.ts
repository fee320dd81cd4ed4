// `rollback`: gives the app the droplet, variables, commands and sidecars of an earlier revision, and replaces what runs. Nothing is built.

import { randomUUID } from 'node:crypto';
import { appRevOf, processesOf } from '../../api/app.ts';
import { secretType } from '../../api/core.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import { changeOf, heldUntilRestart } from '../../api/held.ts';
import { hasLostVariablesMark } from '../../api/lost-variables.ts';
import type { Stored } from '../../api/object.ts';
import { isSameEnv, isSameSettings, printSidecars, type RevisionSettings } from '../../api/revisions.ts';
import type { CFApp, CFProcess, Sidecar } from '../../api/types.generated.ts';
import { isCanceled, rolledBackTo, rolloutPatch, type RolloutOptions } from '../../api/rollout.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { ObjectPatch } from '../../kube/patch-as-read.ts';
import type { SpaceSession } from '../../session/session.ts';
import { finished, takeOver, underLock, writeAsHolder } from './lock.ts';
import { changeProcess } from '../apps/changes.ts';
import { findDroplet } from '../apps/droplets.ts';
import { ensureEnvSecret } from '../apps/env.ts';
import { findRevisions, pickRevision, settingsReader, type FoundRevision, type SettingsOf } from '../apps/revisions.ts';

/** A checked rollback that has written nothing yet. */
export interface PreparedRollback {
  app: Stored<CFApp>;
  version: number;
  /** It is the newest revision: unless another change is recorded meanwhile, the controller records no new one. */
  isNewest: boolean;
  droplet: string;
  settings: RevisionSettings;
}

function notDeployable({ bin }: SpaceSession, app: Stored<CFApp>, version: number): KfError {
  const message = `Revision '${version}' is not deployable: its droplet or its settings are not kept any more.`;
  return new KfError('not-found', message, { hints: [`${bin} revisions ${app.spec.displayName}`] });
}

/** Where a rollback starts. */
interface Start {
  app: Stored<CFApp>;
  /** Newest first. */
  found: readonly FoundRevision[];
  settingsOf: SettingsOf;
  /**
   * The newest revision, with which cf compares too, or after a cancellation the one that serves; undefined while the app is on the way to something else, or
   * back from it.
   */
  present: { droplet: string; settings: RevisionSettings | undefined } | undefined;
}

async function readStart(session: SpaceSession, app: Stored<CFApp>): Promise<Start> {
  const found = await findRevisions(session, app);
  const settingsOf = settingsReader(session, app);
  const serving = found.findIndex(({ summary }) => summary.deployed);
  // A change to the newest one that failed may be tried again. After a cancellation the app has the droplet of the one that serves.
  const base = serving > 0 ? (isCanceled(app) ? found[serving] : undefined) : found[0];
  if (base === undefined) return { app, found, settingsOf, present: undefined };
  const present = { droplet: base.record.droplet, settings: await settingsOf(base.record) };
  const isOther = (serving > 0 || isUnrecorded(app)) && !(await hasContent(session, app, present));
  return { app, found, settingsOf, present: isOther ? undefined : present };
}

/**
 * The version that a rollback leads to which is under way, or which no controller has taken up: a repeated one, for example after a timeout, means the same.
 */
function versionUnderWay(app: Stored<CFApp>): number | undefined {
  const { id, phase } = app.status?.deployment ?? {};
  const hasFailed = phase === 'Failed' && id === app.metadata.annotations?.[annotations.deployId];
  return hasFailed || isCanceled(app) ? undefined : rolledBackTo(app);
}

/** The app was started, and no controller has recorded yet with what. */
function isUnrecorded(app: Stored<CFApp>): boolean {
  const { revision } = app.status ?? {};
  return app.spec.desiredState === 'STARTED' && revision !== undefined && revision.change !== changeOf(app);
}

/** Whether the app as it is stored has the droplet and the settings of a revision; settings that are not kept count as the same. */
async function hasContent(
  session: SpaceSession,
  app: Stored<CFApp>,
  { droplet, settings }: NonNullable<Start['present']>,
): Promise<boolean> {
  const { cluster, space, signal } = session;
  if (app.spec.currentDropletRef?.name !== droplet) return false;
  if (settings === undefined) return true;
  const { envSecretName = '' } = app.spec;
  const [processes, secret] = await Promise.all([
    listProcesses(session, app),
    envSecretName === '' ? undefined : cluster.get(secretType, space.guid, envSecretName, signal),
  ]);
  return isSameEnv(settings, { ...settings, env: secret?.data ?? {} }) && processes.every((process) => hasSettings(process, settings));
}

async function listProcesses({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<Stored<CFProcess>[]> {
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  return processesOf(app, items);
}

/** A process that the revision does not have counts as the same. */
function hasSettings(process: CFProcess, { commands, sidecars }: RevisionSettings): boolean {
  const { processType, command } = process.spec;
  const wanted = commands[processType];
  return wanted === undefined || (wanted === (command ?? '') && sidecars[processType] === printSidecars(process));
}

/**
 * The Secret with the app's variables is gone, or was made again since the app was started, so even the revision that served last has something that
 * the app has not.
 */
async function hasLostVariables({ cluster, space, signal }: SpaceSession, app: Stored<CFApp>): Promise<boolean> {
  const { envSecretName = '' } = app.spec;
  if (envSecretName === '') return false;
  const secret = await cluster.get(secretType, space.guid, envSecretName, signal);
  return secret === undefined || hasLostVariablesMark(app, secret);
}

/**
 * The version to return to when none is named: the one that serves while something newer does not; the one that served last while the variables are lost,
 * also of a stopped app; or the newest before it that the app served by and that has something else than the present one.
 */
async function versionBefore(session: SpaceSession, { app, found, settingsOf, present }: Start): Promise<number> {
  const serving = found.findIndex(({ summary }) => summary.deployed);
  const fits = found.slice(Math.max(serving, 0)).filter(({ summary }) => summary.deployable);
  const under = present === undefined ? versionUnderWay(app) : undefined;
  const repeated = found.find(({ record, summary }) => record.version === under && summary.deployable);
  if (repeated !== undefined) return repeated.record.version;
  const last = found.find(({ record }) => record.version === app.status?.revision?.deployed);
  if (last?.summary.deployable === true && (present === undefined || (await hasLostVariables(session, app)))) return last.record.version;
  for (const { record, failed } of fits) {
    const settings = await settingsOf(record);
    if (settings === undefined || failed || record === found[0]?.record) continue;
    if (present === undefined || !isSame(present, { droplet: record.droplet, settings })) return record.version;
  }
  const message = `App '${app.spec.displayName}' has no earlier revision that it can return to.`;
  throw new KfError('not-found', message, { hints: [`${session.bin} revisions ${app.spec.displayName}`] });
}

interface Content {
  droplet: string;
  settings: RevisionSettings;
}

const isSame = (a: { droplet: string; settings?: RevisionSettings | undefined }, b: Content): boolean =>
  a.settings !== undefined && a.droplet === b.droplet && isSameSettings(a.settings, b.settings);

/** The error for a rollback to what the app has already; in cf's words when a revision is deployed. */
function sameContent({ bin }: SpaceSession, { app, found }: Start): KfError {
  const name = app.spec.displayName;
  const same = 'Unable to rollback. The code and configuration you are rolling back to is the same as';
  if (found.some(({ summary }) => summary.deployed))
    return new KfError('conflict', `${same} the deployed revision.`, { hints: [`${bin} revisions ${name}`] });
  const isStopped = app.spec.desiredState !== 'STARTED';
  const state = `app '${name}' ${isStopped ? 'is stopped' : 'has not served by it'}`;
  const message = `${same} the newest revision '${String(found[0]?.record.version)}', and ${state}.`;
  return new KfError('conflict', message, { hints: [`${bin} ${isStopped ? 'start' : 'restart'} ${name}`] });
}

/**
 * Finds the revision and checks that the app can return to it.
 * @param asked left out: the one that served before
 * @throws KfError `not-found` in cf's words, `conflict` when the app has that droplet and these settings already
 */
export async function prepareRollback(session: SpaceSession, app: Stored<CFApp>, asked?: number): Promise<PreparedRollback> {
  const name = app.spec.displayName;
  const start = await readStart(session, app);
  const { found, settingsOf, present } = start;
  if (found.length === 0)
    throw new KfError('not-found', `No revisions for app ${name}`, {
      hints: [`A start of the app makes one: ${session.bin} restart ${name}`],
    });
  const version = asked ?? (await versionBefore(session, start));
  const { record, summary } = pickRevision(found, version, `${session.bin} revisions ${name}`);
  const settings = await settingsOf(record);
  if (!summary.deployable || settings === undefined) throw notDeployable(session, app, version);
  if (present !== undefined && isSame(present, { droplet: record.droplet, settings }) && !(await hasLostVariables(session, app))) {
    throw sameContent(session, start);
  }
  return { app, version, isNewest: record === found[0]?.record, droplet: record.droplet, settings };
}

/** Makes the app's variables those of the revision; variables that were set since are removed. A Secret that is missing is made again. */
async function writeEnv(session: SpaceSession, app: Stored<CFApp>, env: Record<string, string>): Promise<void> {
  const { cluster, space, signal } = session;
  const secret = await ensureEnvSecret(session, app, { data: env });
  const gone = Object.keys(secret.data ?? {}).filter((key) => !Object.hasOwn(env, key));
  const data = { ...env, ...Object.fromEntries(gone.map((key) => [key, null])) };
  const metadata = { uid: secret.metadata.uid, annotations: { [annotations.changedBy]: await session.changedBy() } };
  await cluster.mergePatch(secretType, space.guid, secret.metadata.name, { metadata, data }, { signal });
}

/** Gives the processes the commands and sidecars of the revision; they wait for the change of the app. */
async function writeProcesses(session: SpaceSession, app: Stored<CFApp>, settings: RevisionSettings): Promise<void> {
  for (const process of await listProcesses(session, app)) {
    const { processType } = process.spec;
    const [command, beside] = [settings.commands[processType], settings.sidecars[processType]];
    if (command === undefined || hasSettings(process, settings)) continue;
    const wanted = { command: command === '' ? null : command, sidecars: beside === undefined ? null : (JSON.parse(beside) as Sidecar[]) };
    await changeProcess(session, process, wanted, heldUntilRestart(app));
  }
}

/**
 * Writes commands, sidecars and variables, and then, with one patch, the droplet and the change that rolls them out. Pushes of the app that are under way end.
 * @returns the app, and the id of the change whose start is awaited
 */
export async function startRollback(
  session: SpaceSession,
  { app, version, droplet, settings }: PreparedRollback,
  rollout: RolloutOptions = {},
): Promise<{ app: Stored<CFApp>; deployId: string }> {
  const { cluster, signal, report } = session;
  const deployId = randomUUID();
  const onWait = (): void => report({ type: 'awaiting-other-push' });
  const { app: taken } = await takeOver(cluster, app, { pushId: deployId, user: await session.changedBy() }, { signal, onWait });
  const write = async (locked: Stored<CFApp>): Promise<Stored<CFApp>> => {
    if ((await findDroplet(session, locked, droplet)) === undefined) throw notDeployable(session, locked, version);
    await writeProcesses(session, locked, settings);
    await writeEnv(session, locked, settings.env);
    const patch = (live: Stored<CFApp>): ObjectPatch => ({
      metadata: {
        annotations: {
          [annotations.deployId]: deployId,
          [annotations.appRev]: String(appRevOf(live) + 1),
          [annotations.rolledBack]: `${version}/${deployId}`,
          [annotations.unstaged]: null,
          ...finished,
        },
      },
      spec: {
        currentDropletRef: { name: droplet },
        desiredState: 'STARTED',
        ...defined({ rollout: rolloutPatch(live, deployId, rollout) }),
      },
    });
    return writeAsHolder(cluster, locked, deployId, patch, signal);
  };
  return { app: await underLock(cluster, taken, { pushId: deployId, environment: true }, write, signal), deployId };
}
