// start, stop, restart: each is one patch of the CFApp; the controller does the rest and decides the result. An app without a current build is
// built first.

import { appRevOf } from '../../api/app.ts';
import { annotations, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { rolloutPatch, type RolloutOptions } from '../../api/rollout.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import type { SpaceSession } from '../../session/session.ts';
import { restartDirectly, startDirectly, stopDirectly } from './direct-scaling.ts';
import { absentAfterMs, absentAfterMsWhereDoneDirectly, unlessAbsent } from '../controller-wait.ts';
import { changeApp, newDeployId } from './changes.ts';
import { tellOfCanary } from './deployments.ts';
import { waitForFallback } from './fallback.ts';
import { needsStaging, stageAndStart } from './staging.ts';
import { interruptedRollout, overtaken, startTimeoutMs, startTimeoutOf, waitForRollout } from './rollout-wait.ts';

/** The app after a change, and whether anything had to change. */
export interface Changed {
  app: Stored<CFApp>;
  changed: boolean;
}

const isStarted = (app: Stored<CFApp>): boolean => app.spec.desiredState === 'STARTED';

/** The revision of the next generation; with a new one, its frozen inputs are read again. */
const nextRev = (app: Stored<CFApp>): string => String(appRevOf(app) + 1);

/** What is done when no controller answers, and after how long. */
const withoutController = {
  start: { act: startDirectly, patienceMs: absentAfterMsWhereDoneDirectly },
  // A restart without the controller interrupts an app of one instance, so this waits for a change of the leader.
  restart: { act: restartDirectly, patienceMs: absentAfterMs },
} as const;

export interface WaitOptions {
  /** What to do directly when the controller is down; if left out, `accepted` is thrown. */
  verb?: 'start' | 'restart';
  /** False: the first new instance of web is enough. */
  wait?: boolean;
}

/** Waits until the change serves or has failed. */
export async function waitUntilServing(
  session: SpaceSession,
  app: Stored<CFApp>,
  deployId: string,
  { verb, wait = true }: WaitOptions = {},
): Promise<Stored<CFApp>> {
  const { cluster, report, signal, bin } = session;
  const instead = verb === undefined ? undefined : withoutController[verb];
  try {
    const timeoutMs = await startTimeoutOf(session, app);
    const options = { timeoutMs, report, signal, bin, patienceMs: instead?.patienceMs, firstInstance: !wait };
    return (await waitForRollout(cluster, app, deployId, options)).app;
  } catch (error) {
    if (signal.aborted) throw interruptedRollout(app, bin);
    if (verb === 'start' && error instanceof KfError && error.code === 'start') return waitForFallback(session, app, deployId, error);
    const isAbsent = error instanceof KfError && error.code === 'accepted';
    const done = isAbsent && instead !== undefined && (await instead.act(session, app));
    // A controller may leave again, and a start may end with the version before; a restart is not begun anew.
    if (done === 'taken-up') return waitUntilServing(session, app, deployId, verb === 'start' ? { verb, wait } : { wait });
    if (!done) throw error;
    return app;
  }
}

/** Throws when somebody has started the app again. */
function assertStopped(seen: Stored<CFApp> | undefined): void {
  if (seen !== undefined && isStarted(seen)) throw overtaken(seen);
}

/** Waits until no route leads to the stopped app. @throws KfError `conflict` when it is started meanwhile: its routes lead to it again */
export async function waitWhileRouted(session: SpaceSession, app: Stored<CFApp>): Promise<void> {
  const { waitUntilUnrouted } = await import('../routes/unrouted.ts');
  await waitUntilUnrouted(session, app, assertStopped);
}

/**
 * Waits until the controller has scaled the sets to 0; without a controller, scales them directly.
 * @throws KfError `conflict` when a later change has started the app again
 */
export async function waitUntilStopped(session: SpaceSession, app: Stored<CFApp>, deployId: string): Promise<void> {
  const { cluster, space, signal, env } = session;
  const { name } = app.metadata;
  const check = (seen: Stored<CFApp> | undefined): true | undefined => {
    assertStopped(seen);
    // Another deploy-id is that of another stop.
    return seen === undefined || seen.status?.deployment?.id === deployId || seen.metadata.annotations?.[annotations.deployId] !== deployId
      ? true
      : undefined;
  };
  const how = { timeoutMs: startTimeoutMs(env), describe: `app '${app.spec.displayName}' to stop` };
  const watch = (until: AbortSignal): Promise<true> =>
    watchObject(cluster, kinds.app, { ns: space.guid, name, known: app }, check, { ...how, signal: until });
  const seen = await unlessAbsent({ cluster, signal }, watch, absentAfterMsWhereDoneDirectly);
  if (seen === undefined) return stopDirectly(session, app);
  await waitWhileRouted(session, app);
}

/** Marks the app as started, after a build if one is needed. Wait with {@link waitUntilServing}. */
export async function startApp(session: SpaceSession, app: Stored<CFApp>): Promise<Changed & { deployId: string }> {
  const deployId = newDeployId();
  if (isStarted(app)) return { app, changed: false, deployId };
  if (needsStaging(app)) return { ...(await stageAndStart(session, app, { again: false })), changed: true };
  const started = await changeApp(session, app, (current) =>
    isStarted(current) ? undefined : { spec: { desiredState: 'STARTED' }, annotations: { [annotations.deployId]: deployId } },
  );
  // When another start was first, this one waits for that change.
  return { app: started, changed: true, deployId: started.metadata.annotations?.[annotations.deployId] ?? deployId };
}

/** Stops the app. The revision changes, so that the next start uses the environment and bindings of that time. */
export async function stopApp(session: SpaceSession, app: Stored<CFApp>): Promise<Changed> {
  if (!isStarted(app)) return { app, changed: false };
  const deployId = newDeployId();
  const stopped = await changeApp(session, app, (current) => {
    if (!isStarted(current)) return undefined;
    const rev = nextRev(current);
    const marks = { [annotations.appRev]: rev, [annotations.lastStopAppRev]: rev, [annotations.deployId]: deployId };
    return { spec: { desiredState: 'STOPPED' }, annotations: marks };
  });
  await waitUntilStopped(session, stopped, deployId);
  return { app: stopped, changed: true };
}

/** Makes a new generation beside the old one, also for a stopped app; after a build if one is needed. */
export async function restartApp(
  session: SpaceSession,
  app: Stored<CFApp>,
  rollout: RolloutOptions = {},
): Promise<{ app: Stored<CFApp>; deployId: string }> {
  if (needsStaging(app)) return stageAndStart(session, app, { again: false, rollout });
  const deployId = newDeployId();
  const restarted = await changeApp(session, app, (current) => ({
    spec: { desiredState: 'STARTED', ...defined({ rollout: rolloutPatch(current, deployId, rollout) }) },
    annotations: { [annotations.appRev]: nextRev(current), [annotations.deployId]: deployId },
  }));
  if (rollout.strategy !== 'canary') tellOfCanary(session, app);
  return { app: restarted, deployId };
}
