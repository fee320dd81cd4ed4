// ssh: the instance to connect to, or why there is none.

import { desiredInstances } from '../../api/app.ts';
import type { Stored } from '../../api/object.ts';
import { isSshEnabled } from '../../api/ssh.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { findRunning, type InstanceKey, type RunningInstance } from '../instances/exec.ts';
import { findProcess } from './scale.ts';

export { runIn } from '../instances/exec.ts';
export { openTunnels } from '../instances/tunnels.ts';

/** The running instance. @throws KfError in cf's words: the app is stopped, or there is no such process or instance, or it does not run */
export async function findInstance(session: SpaceSession, app: Stored<CFApp>, key: InstanceKey): Promise<RunningInstance> {
  const { displayName, desiredState } = app.spec;
  if (desiredState !== 'STARTED') {
    throw new KfError('conflict', `Application '${displayName}' is not in the STARTED state`, {
      hints: [`${session.bin} start ${displayName}`],
    });
  }
  if (!isSshEnabled(app))
    throw new KfError('forbidden', `ssh support is disabled for app '${displayName}'.`, {
      hints: [`${session.bin} enable-ssh ${displayName}`],
    });
  const found = await findRunning(session, app, key);
  if (found !== undefined) return found;
  const process = await findProcess(session, app, key.process);
  const hints = [`${session.bin} app ${displayName}`];
  const what = `Instance ${key.index} of process ${key.process}`;
  if (key.index >= desiredInstances(process)) throw new KfError('not-found', `${what} not found`, { hints });
  throw new KfError('conflict', `${what} not running`, { hints });
}
