// Settings of a process that take effect when the app is started again, as in cf (docs/decisions/0051).

import { annotations } from './group.ts';
import type { CFApp, CFProcess } from './types.generated.ts';

/** Changes with every start, restart, stop and push of the app, and with nothing else. */
function changeOf({ metadata }: CFApp): string {
  const { [annotations.deployId]: deployId = '', [annotations.appRev]: rev = '0' } = metadata.annotations ?? {};
  return `${rev}/${deployId}`;
}

/**
 * The annotation to write together with such settings: the process keeps its generation until the next change of the app. A stopped app needs none.
 */
export function heldUntilRestart(app: CFApp): Record<string, string | null> {
  return { [annotations.held]: app.spec.desiredState === 'STARTED' ? changeOf(app) : null };
}

/** The process has settings for the next start, and the app was not started again since they were written. */
export function isHeld(app: CFApp, process: CFProcess): boolean {
  return process.metadata.annotations?.[annotations.held] === changeOf(app);
}
