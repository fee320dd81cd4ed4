// `rollback`: gives the app the droplet, variables, commands and sidecars of an earlier revision, and replaces what runs. Nothing is built.

import { randomUUID } from 'node:crypto';
import { appRevOf, processesOf } from '../../api/app.ts';
import { secretType } from '../../api/core.ts';
import { annotations, kinds, labels } from '../../api/group.ts';
import { heldUntilRestart } from '../../api/held.ts';
import type { Stored } from '../../api/object.ts';
import { isSameSettings, printSidecars, type RevisionSettings } from '../../api/revisions.ts';
import type { CFApp, Sidecar } from '../../api/types.generated.ts';
import { rolloutPatch, type RolloutOptions } from '../../api/rollout.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { ObjectPatch } from '../../kube/patch-as-read.ts';
import type { SpaceSession } from '../../session/session.ts';
import { takeOver, underLock, writeAsHolder } from './lock.ts';
import { changeProcess } from '../apps/changes.ts';
import { findDroplet } from '../apps/droplets.ts';
import { findRevisions, pickRevision, readSettings, type FoundRevision } from '../apps/revisions.ts';

/** A checked rollback that has written nothing yet. */
export interface PreparedRollback {
  app: Stored<CFApp>;
  version: number;
  droplet: string;
  settings: RevisionSettings;
}

function notDeployable({ bin }: SpaceSession, app: Stored<CFApp>, version: number): KfError {
  const message = `Revision '${version}' is not deployable: its droplet or its settings are not kept any more.`;
  return new KfError('not-found', message, { hints: [`${bin} revisions ${app.spec.displayName}`] });
}

/** The revision that serves, or the newest one of an app that does not run. */
async function present(session: SpaceSession, app: Stored<CFApp>, found: readonly FoundRevision[]) {
  const record = (found.find(({ summary }) => summary.deployed) ?? found[0])?.record;
  return record === undefined ? undefined : { droplet: record.droplet, settings: await readSettings(session, app, record) };
}

/**
 * Finds the revision and checks that the app can return to it.
 * @throws KfError `not-found` in cf's words, `conflict` when the app has that droplet and these settings already
 */
export async function prepareRollback(session: SpaceSession, app: Stored<CFApp>, version: number): Promise<PreparedRollback> {
  const name = app.spec.displayName;
  const found = await findRevisions(session, app);
  if (found.length === 0)
    throw new KfError('not-found', `No revisions for app ${name}`, {
      hints: [`A start of the app makes one: ${session.bin} restart ${name}`],
    });
  const { record, summary } = pickRevision(found, version, `${session.bin} revisions ${name}`);
  const [settings, now] = await Promise.all([readSettings(session, app, record), present(session, app, found)]);
  if (!summary.deployable || settings === undefined) throw notDeployable(session, app, version);
  if (now?.settings !== undefined && now.droplet === record.droplet && isSameSettings(now.settings, settings)) {
    const why = 'The code and configuration you are rolling back to is the same as the deployed revision.';
    throw new KfError('conflict', `Unable to rollback. ${why}`, { hints: [`${session.bin} revisions ${name}`] });
  }
  return { app, version, droplet: record.droplet, settings };
}

/** Makes the app's variables those of the revision; variables that were set since are removed. */
async function writeEnv(session: SpaceSession, app: Stored<CFApp>, env: Record<string, string>): Promise<void> {
  const { cluster, space, signal } = session;
  const name = app.spec.envSecretName ?? '';
  const secret = name === '' ? undefined : await cluster.get(secretType, space.guid, name, signal);
  if (secret === undefined)
    throw new KfError('not-found', `The Secret '${name}' with the variables of app '${app.spec.displayName}' is missing.`, {
      hints: [`${session.bin} set-env ${app.spec.displayName} NAME VALUE`],
    });
  const gone = Object.keys(secret.data ?? {}).filter((key) => !Object.hasOwn(env, key));
  const data = { ...env, ...Object.fromEntries(gone.map((key) => [key, null])) };
  const metadata = { uid: secret.metadata.uid, annotations: { [annotations.changedBy]: await session.changedBy() } };
  await cluster.mergePatch(secretType, space.guid, name, { metadata, data }, { signal });
}

/** Gives the processes the commands and sidecars of the revision; they wait for the change of the app. */
async function writeProcesses(session: SpaceSession, app: Stored<CFApp>, { commands, sidecars }: RevisionSettings): Promise<void> {
  const { cluster, space, signal } = session;
  const { items } = await cluster.list(kinds.process, { ns: space.guid, labelSelector: `${labels.appGuid}=${app.metadata.name}`, signal });
  for (const process of processesOf(app, items)) {
    const { processType, command: present = '' } = process.spec;
    const [command, beside] = [commands[processType], sidecars[processType]];
    // The revision has no such process.
    if (command === undefined || (command === present && beside === printSidecars(process))) continue;
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
          [annotations.applying]: null,
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
  return { app: await underLock(cluster, taken, deployId, write, signal), deployId };
}
