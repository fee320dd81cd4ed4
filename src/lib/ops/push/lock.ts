// Concurrent pushes of one app: the later one takes the app over, and the earlier one notices before its next write (docs/internals.md, Push).

import { annotations, kinds } from '../../api/group.ts';
import { changeOf } from '../../api/held.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isConflict } from '../../kube/errors.ts';
import { patchAsRead, readSame, type ObjectPatch } from '../../kube/patch-as-read.ts';
import { sleep } from '../../wait.ts';

/** A lock that was not renewed for this long belongs to a push that died. */
const staleLockMs = 10_000;
const lockPollMs = 150;

export interface PushIdentity {
  pushId: string;
  /** The user of the push, as the API server names them. */
  user: string;
}

/**
 * Returns a function that says, each time it gets the app, whether another push is writing its settings. The time in a lock comes from another
 * machine, so only our own clock counts.
 */
export function lockJudge(pushId: string, now: () => number = () => performance.now()): (app: CFApp) => boolean {
  let seen = { lock: '', since: 0 };
  return (app) => {
    const lock = app.metadata.annotations?.[annotations.applying] ?? '';
    if (lock === '' || lock.startsWith(`${pushId}@`)) return false;
    if (lock !== seen.lock) seen = { lock, since: now() };
    return now() - seen.since < staleLockMs;
  };
}

/** The error of a push that a later push has overtaken, or a rollback or an apply-manifest, which take the app over in the same way. */
export function supersededBy(app: Stored<CFApp>): KfError {
  const { [annotations.changedBy]: by = 'somebody', [annotations.pushStarted]: at = 'a moment ago' } = app.metadata.annotations ?? {};
  const name = app.spec.displayName;
  return new KfError(
    'conflict',
    `A later push, rollback or apply-manifest of app '${name}' (by ${by}, started ${at}) has taken over; this one ends and has changed nothing more.`,
    {
      hints: [`kf app ${name}`],
      details: { reason: 'superseded', by, at },
    },
  );
}

/**
 * Throws when the push can no longer reach its end. After its switch it has nothing more to write: a later one that only takes the app over does not
 * end its deployment.
 */
export function assertNotOvertaken(app: Stored<CFApp>, pushId: string): void {
  if (app.metadata.annotations?.[annotations.deployId] !== pushId) assertHolder(app, pushId);
}

/** Throws when the app belongs to a later push. */
function assertHolder(app: Stored<CFApp>, pushId: string): void {
  if (app.metadata.annotations?.[annotations.pushId] !== pushId) throw supersededBy(app);
}

/** The same by the app as the API server has it now: a watch may be behind. @throws KfError also when the app was deleted */
export async function assertStillHolder(cluster: Cluster, app: Stored<CFApp>, pushId: string, signal?: AbortSignal): Promise<void> {
  assertHolder(await readSame(cluster, { type: kinds.app, object: app, gone: () => deleted(app) }, signal), pushId);
}

function deleted({ spec: { displayName } }: Stored<CFApp>): KfError {
  return new KfError('not-found', `App '${displayName}' was deleted while it was being pushed.`, { hints: [`kf push ${displayName}`] });
}

/** Patches the app as it was last seen, as soon as `mayWrite` allows it. */
async function patchApp(
  cluster: Cluster,
  first: Stored<CFApp>,
  patchFor: (app: Stored<CFApp>) => ObjectPatch,
  mayWrite: (app: Stored<CFApp>) => boolean,
  signal: AbortSignal | undefined,
): Promise<Stored<CFApp>> {
  const app = { type: kinds.app, object: first, gone: () => deleted(first) };
  const ifAllowed = (live: Stored<CFApp>): ObjectPatch | undefined => (mayWrite(live) ? patchFor(live) : undefined);
  for (;;) {
    const { object, isWritten } = await patchAsRead(cluster, app, ifAllowed, signal).catch((error: unknown) => {
      throw isConflict(error) ? busy(first, error) : error;
    });
    if (isWritten) return object;
    await sleep(lockPollMs, signal);
    app.object = await readSame(cluster, app, signal);
  }
}

function busy(app: Stored<CFApp>, cause: unknown): KfError {
  const { displayName } = app.spec;
  const message = `App '${displayName}' has been changed by others without a pause; this push could not write its change.`;
  return new KfError('conflict', message, { hints: [`kf app ${displayName}`, `kf push ${displayName}`], cause });
}

/** Makes this push the current push of the app; waits while another one writes its settings. `first`: nobody had changed the given app. */
export async function takeOver(
  cluster: Cluster,
  app: Stored<CFApp>,
  identity: PushIdentity,
  { signal, onWait }: { signal?: AbortSignal; onWait?: () => void } = {},
): Promise<{ app: Stored<CFApp>; first: boolean }> {
  let looks = 0;
  const isLocked = lockJudge(identity.pushId);
  const metadata = () => ({
    annotations: {
      [annotations.pushId]: identity.pushId,
      [annotations.pushStarted]: new Date().toISOString(),
      [annotations.changedBy]: identity.user,
    },
  });
  const mayTake = (live: Stored<CFApp>): boolean => {
    looks += 1;
    const isFree = !isLocked(live);
    if (!isFree) onWait?.();
    return isFree;
  };
  const taken = await patchApp(cluster, app, () => ({ metadata: metadata() }), mayTake, signal);
  return { app: taken, first: looks === 1 };
}

/** Who writes settings under the lock. */
export interface SettingsWriter {
  pushId: string;
  /** It writes variables or services, which only a start gives to instances: the app has the mark `kf/unapplied` until a last patch removes it. */
  environment: boolean;
}

/** Takes the lock under which settings are written. @throws KfError conflict when a later push has taken over */
function lockSettings(
  cluster: Cluster,
  app: Stored<CFApp>,
  { pushId, environment }: SettingsWriter,
  signal?: AbortSignal,
): Promise<Stored<CFApp>> {
  const patch = (live: Stored<CFApp>): ObjectPatch => {
    const lock = { [annotations.applying]: `${pushId}@${Date.now()}` };
    return { metadata: { annotations: environment ? { ...lock, [annotations.unapplied]: changeOf(live) } : lock } };
  };
  return patchApp(cluster, app, patch, (live) => isHolder(live, pushId), signal);
}

/** Annotations of the last patch of a writer that restarts the app. */
export const finished = { [annotations.applying]: null, [annotations.unapplied]: null };

/** Writes under the lock, which `write` removes with its last patch. On any failure the lock is released at once. */
export async function underLock<T>(
  cluster: Cluster,
  app: Stored<CFApp>,
  writer: SettingsWriter,
  write: (locked: Stored<CFApp>) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const locked = await lockSettings(cluster, app, writer, signal);
  try {
    return await write(locked);
  } catch (error) {
    const isDone = ({ metadata }: Stored<CFApp>): boolean => metadata.annotations?.[annotations.deployId] === writer.pushId;
    // A restart meanwhile has made the mark void, and may have read the settings of before.
    const release = (live: Stored<CFApp>): ObjectPatch => {
      const left = writer.environment && !isDone(live) ? { [annotations.unapplied]: changeOf(live) } : {};
      return { metadata: { annotations: { [annotations.applying]: null, ...left } } };
    };
    await writeAsHolder(cluster, locked, writer.pushId, release).catch(() => undefined);
    throw error;
  }
}

/** The last patch of a push: sent only while the app is still its own. @throws KfError conflict when a later push has taken over */
export function writeAsHolder(
  cluster: Cluster,
  app: Stored<CFApp>,
  pushId: string,
  patchFor: (app: Stored<CFApp>) => ObjectPatch,
  signal?: AbortSignal,
): Promise<Stored<CFApp>> {
  return patchApp(cluster, app, patchFor, (live) => isHolder(live, pushId), signal);
}

function isHolder(app: Stored<CFApp>, pushId: string): true {
  assertHolder(app, pushId);
  return true;
}
