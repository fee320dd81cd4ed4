// Marks a Secret with an app's variables that was made again after it was gone (docs/decisions/0064).

import { hadVariables } from './app.ts';
import type { Secret } from './core.ts';
import { annotations } from './group.ts';
import { changeOf } from './held.ts';
import type { CFApp } from './types.generated.ts';

/** The change that started the app last. A stop is a change too, but it starts nothing: the recorded change is the one before it. */
const lastStart = (app: CFApp): string | undefined => (app.spec.desiredState === 'STARTED' ? changeOf(app) : app.status?.revision?.change);

/** The mark of a Secret that is made now. A revision without settings needs none: it is not the one to return to. */
export function lostVariablesMark(app: CFApp): Record<string, string> {
  const change = lastStart(app);
  if (!hadVariables(app) || change === undefined || app.status?.revision?.lacksSettings === true) return {};
  return { [annotations.variablesLost]: change };
}

/** The app was not started again since its Secret was made again. An earlier version wrote the stop to the Secret of a stopped app. */
export function hasLostVariablesMark(app: CFApp, { metadata }: Secret): boolean {
  const mark = metadata.annotations?.[annotations.variablesLost];
  return mark !== undefined && (mark === changeOf(app) || mark === app.status?.revision?.change);
}
