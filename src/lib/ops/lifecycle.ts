// start, stop, restart: each is one patch of the CFApp; the controller does the rest and judges it.

import { appRevOf } from '../api/app.ts';
import { annotations } from '../api/group.ts';
import type { CFApp } from '../api/types.generated.ts';
import { KfError } from '../errors.ts';
import type { SpaceSession } from '../target/session.ts';
import { changeApp, newDeployId } from './changes.ts';
import { startTimeoutMs, waitForDeployment } from './verdict.ts';

/** The app after a change, and whether there was anything to change. */
export interface Changed {
  app: CFApp;
  changed: boolean;
}

const isStarted = (app: CFApp): boolean => app.spec.desiredState === 'STARTED';

/** The revision that the next generation carries: what is frozen into it is read anew. */
const nextRev = (app: CFApp): string => String(appRevOf(app) + 1);

export async function waitUntilServing(session: SpaceSession, app: CFApp, deployId: string): Promise<CFApp> {
  const { cluster, reporter, signal, env, bin } = session;
  const verdict = await waitForDeployment(cluster, app, deployId, { timeoutMs: startTimeoutMs(env), reporter, signal, bin });
  return verdict.app;
}

function assertDroplet(app: CFApp, bin: string): void {
  if ((app.spec.currentDropletRef?.name ?? '') !== '') return;
  const name = app.spec.displayName;
  throw new KfError('failed', `App '${name}' has nothing to run yet: it has never been built.`, { hints: [`${bin} push ${name}`] });
}

/** Marks the app as started. The wait is {@link waitUntilServing}. */
export async function startApp(session: SpaceSession, app: CFApp): Promise<Changed & { deployId: string }> {
  const deployId = newDeployId();
  if (isStarted(app)) return { app, changed: false, deployId };
  assertDroplet(app, session.bin);
  const started = await changeApp(session, app, (current) =>
    isStarted(current) ? undefined : { spec: { desiredState: 'STARTED' }, annotations: { [annotations.deployId]: deployId } },
  );
  return { app: started, changed: true, deployId };
}

/** Stops the app. The revision moves, so that the next start takes environment and bindings as they are then. */
export async function stopApp(session: SpaceSession, app: CFApp): Promise<Changed> {
  if (!isStarted(app)) return { app, changed: false };
  const stopped = await changeApp(session, app, (current) => {
    if (!isStarted(current)) return undefined;
    const rev = nextRev(current);
    const marks = { [annotations.appRev]: rev, [annotations.lastStopAppRev]: rev, [annotations.deployId]: newDeployId() };
    return { spec: { desiredState: 'STOPPED' }, annotations: marks };
  });
  return { app: stopped, changed: true };
}

/** A new generation beside the old one, also of an app that is stopped. */
export async function restartApp(session: SpaceSession, app: CFApp): Promise<{ app: CFApp; deployId: string }> {
  assertDroplet(app, session.bin);
  const deployId = newDeployId();
  const restarted = await changeApp(session, app, (current) => ({
    spec: { desiredState: 'STARTED' },
    annotations: { [annotations.appRev]: nextRev(current), [annotations.deployId]: deployId },
  }));
  return { app: restarted, deployId };
}
