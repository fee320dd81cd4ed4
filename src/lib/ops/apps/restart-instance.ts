// `restart-app-instance`: ends one instance; the others stay, and another one starts in its place.

import { desiredInstances } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { deleteInstance } from '../instances/pods.ts';
import { findProcess } from './scale.ts';

/**
 * Ends the instance of that index, also while the controller is down. Does not wait for the next one.
 * @returns false when there was none to end: another one is on its way already
 * @throws KfError `not-found` for an unknown process, or one without that instance
 */
export async function restartInstance(session: SpaceSession, app: Stored<CFApp>, type: string, index: number): Promise<boolean> {
  const process = await findProcess(session, app, type);
  if (await deleteInstance(session, app, process, index)) return true;
  if (app.spec.desiredState === 'STARTED' && index >= 0 && index < desiredInstances(process)) return false;
  const { displayName } = app.spec;
  throw new KfError('not-found', `Instance ${index} of process ${type} not found`, { hints: [`${session.bin} app ${displayName}`] });
}
