// Two pushes of one app at once: the later one takes the app over, the earlier finds out before its next write (docs/internals.md, Push).

import { annotations, kinds } from '../../api/group.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { sleep } from '../../wait.ts';

/** A lock that was not renewed for so long belongs to a push that died. */
const staleLockMs = 10_000;
const lockPollMs = 150;
/** As long as others keep changing the app; twenty pushes at once need a few seconds to get past each other. */
const conflictPatienceMs = 30_000;
/** Each conflict after the first waits a random time up to this, so that many at once do not meet again. */
const conflictSpreadMs = 250;

export interface PushIdentity {
  pushId: string;
  /** Who pushes, as the API server names them. */
  user: string;
}

/** Says of an app, each time it is seen, whether another push writes its settings. The time in a lock is another machine's, so the own clock counts. */
export function lockJudge(pushId: string, now: () => number = () => performance.now()): (app: CFApp) => boolean {
  let seen = { lock: '', since: 0 };
  return (app) => {
    const lock = app.metadata.annotations?.[annotations.applying] ?? '';
    if (lock === '' || lock.startsWith(`${pushId}@`)) return false;
    if (lock !== seen.lock) seen = { lock, since: now() };
    return now() - seen.since < staleLockMs;
  };
}

/** The error of a push that a later one has overtaken. */
export function supersededBy(app: CFApp): KfError {
  const { [annotations.changedBy]: by = 'somebody', [annotations.pushStarted]: at = 'a moment ago' } = app.metadata.annotations ?? {};
  const name = app.spec.displayName;
  return new KfError(
    'conflict',
    `A later push of app '${name}' (by ${by}, started ${at}) has taken over; this one ends and has changed nothing more.`,
    {
      hints: [`kf app ${name}`],
      details: { reason: 'superseded', by, at },
    },
  );
}

/** Throws when the app belongs to a later push. */
export function assertHolder(app: CFApp, pushId: string): void {
  if (app.metadata.annotations?.[annotations.pushId] !== pushId) throw supersededBy(app);
}

function isConflict(error: unknown): boolean {
  return error instanceof KfError && error.code === 'conflict';
}

async function readApp(cluster: Cluster, app: CFApp): Promise<CFApp> {
  const live = await cluster.get(kinds.app, app.metadata.namespace, app.metadata.name ?? '');
  if (live === undefined || live.metadata.uid !== app.metadata.uid) {
    throw new KfError('not-found', `App '${app.spec.displayName}' was deleted while it was being pushed.`, {
      hints: [`kf push ${app.spec.displayName}`],
    });
  }
  return live;
}

interface Patch {
  metadata: { annotations: Record<string, string | null> };
  spec?: Record<string, unknown>;
}

/** Patches the app as it was last seen; on a conflict it is read anew and `mayWrite` asked again. */
async function patchAsSeen(
  cluster: Cluster,
  first: CFApp,
  patchFor: (app: CFApp) => Patch,
  mayWrite: (app: CFApp) => boolean,
  signal: AbortSignal | undefined,
): Promise<CFApp> {
  let app = first;
  let contested: number | undefined;
  for (;;) {
    signal?.throwIfAborted();
    if (!mayWrite(app)) {
      contested = undefined;
      await sleep(lockPollMs, signal);
      app = await readApp(cluster, app);
      continue;
    }
    const { metadata, ...rest } = patchFor(app);
    const { namespace, name = '', resourceVersion } = app.metadata;
    const options = { fieldManager: 'kf-push', ...(signal === undefined ? {} : { signal }) };
    try {
      return await cluster.mergePatch(kinds.app, namespace, name, { ...rest, metadata: { ...metadata, resourceVersion } }, options);
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (contested === undefined) contested = performance.now();
      else await sleep(Math.random() * conflictSpreadMs, signal);
      if (performance.now() - contested > conflictPatienceMs) throw busy(first);
      app = await readApp(cluster, app);
    }
  }
}

function busy(app: CFApp): KfError {
  const { displayName } = app.spec;
  return new KfError(
    'conflict',
    `App '${displayName}' has been changed by others for ${conflictPatienceMs / 1000} s without a pause; this push could not write its change.`,
    { hints: [`kf app ${displayName}`, `kf push ${displayName}`] },
  );
}

/** Makes this the app's push; waits while another one writes its settings. `first`: nobody had changed the app as it was given. */
export async function takeOver(
  cluster: Cluster,
  app: CFApp,
  identity: PushIdentity,
  { signal, onWait }: { signal?: AbortSignal; onWait?: () => void } = {},
): Promise<{ app: CFApp; first: boolean }> {
  let looks = 0;
  const isLocked = lockJudge(identity.pushId);
  const metadata = () => ({
    annotations: {
      [annotations.pushId]: identity.pushId,
      [annotations.pushStarted]: new Date().toISOString(),
      [annotations.changedBy]: identity.user,
    },
  });
  const mayTake = (live: CFApp): boolean => {
    looks += 1;
    const isFree = !isLocked(live);
    if (!isFree) onWait?.();
    return isFree;
  };
  const taken = await patchAsSeen(cluster, app, () => ({ metadata: metadata() }), mayTake, signal);
  return { app: taken, first: looks === 1 };
}

/** Takes the lock under which settings are written. @throws KfError conflict when a later push has taken over */
export function lockSettings(cluster: Cluster, app: CFApp, pushId: string, signal?: AbortSignal): Promise<CFApp> {
  const patch = (): Patch => ({ metadata: { annotations: { [annotations.applying]: `${pushId}@${Date.now()}` } } });
  return patchAsSeen(cluster, app, patch, (live) => isHolder(live, pushId), signal);
}

/** The last patch of a push: sent only while the app is still its own. @throws KfError conflict when a later push has taken over */
export function writeAsHolder(
  cluster: Cluster,
  app: CFApp,
  pushId: string,
  patchFor: (app: CFApp) => Patch,
  signal?: AbortSignal,
): Promise<CFApp> {
  return patchAsSeen(cluster, app, patchFor, (live) => isHolder(live, pushId), signal);
}

function isHolder(app: CFApp, pushId: string): true {
  assertHolder(app, pushId);
  return true;
}
