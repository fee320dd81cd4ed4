// Settings of a process or a whole app that take effect when the app is started again, as in cf (docs/decisions/0051).

import { annotations } from './group.ts';
import { isCanceled } from './rollout.ts';
import type { CFApp, CFProcess } from './types.generated.ts';

/** Changes with every start, restart, stop and push of the app, and with nothing else. */
export function changeOf(app: CFApp): string {
  return changeNamed(app, app.metadata.annotations?.[annotations.deployId] ?? '');
}

const changeNamed = ({ metadata }: CFApp, deployId: string): string => `${metadata.annotations?.[annotations.appRev] ?? '0'}/${deployId}`;

/**
 * The annotation to write together with such settings, to a process or, for a droplet, to the app: the process, or all of them, keep their generation
 * until the next change of the app. A stopped app needs none.
 */
export function heldUntilRestart(app: CFApp): Record<string, string | null> {
  return { [annotations.held]: app.spec.desiredState === 'STARTED' ? changeOf(app) : null };
}

/** The process or the app has settings for the next start, and the app was not started again since they were written. */
export function isHeld(app: CFApp, process: CFProcess): boolean {
  return process.metadata.annotations?.[annotations.held] === changeOf(app) || isWhollyHeld(app);
}

/** Variables or services were written since the app was started last: no instance has them, and the next push finds nothing to write. */
export function isUnapplied(app: CFApp): boolean {
  return app.metadata.annotations?.[annotations.unapplied] === changeOf(app);
}

/** The mark of {@link isUnapplied} for a change that starts only some of the app's processes; nothing without it. @param deployId of that change */
export function stillUnapplied(app: CFApp, deployId: string): Record<string, string> {
  return isUnapplied(app) ? { [annotations.unapplied]: changeNamed(app, deployId) } : {};
}

/** All processes wait for the next start: the app has another droplet, or its last change was canceled. */
export function isWhollyHeld(app: CFApp): boolean {
  return app.metadata.annotations?.[annotations.held] === changeOf(app) || isCanceled(app);
}
