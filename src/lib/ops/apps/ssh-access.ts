// enable-ssh, disable-ssh, allow-space-ssh, disallow-space-ssh: labels of the app and of the space, which admission policies enforce.

import { findCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { isSshEnabled } from '../../api/ssh.ts';
import type { CFApp, CFSpace } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { findSpace } from '../../session/places.ts';
import type { OrgSession, Session, SpaceSession } from '../../session/session.ts';
import { waitForController } from '../controller-wait.ts';
import { awaitedOf, notReady } from '../tenancy/orgs-and-spaces.ts';
import { changeLabels } from '../labels.ts';

/** @returns false when it was so already */
export async function setAppSsh(session: Session, app: Stored<CFApp>, enabled: boolean): Promise<boolean> {
  const what = `App '${app.spec.displayName}'`;
  const { changed } = await changeLabels(session, { type: kinds.app, object: app, what }, { [labels.ssh]: enabled ? null : 'disabled' });
  return changed;
}

/** Whether ssh works for the app, and if not, why: in the words of the CF API. */
export interface SshState {
  enabled: boolean;
  reason: '' | 'Disabled for app' | 'Disabled for space';
}

const missing = (name: string): KfError => new KfError('not-found', `Space '${name}' not found.`);

async function readSpace(
  { cluster, signal }: Session,
  org: string,
  { guid, name }: { guid: string; name: string },
): Promise<Stored<CFSpace>> {
  const space = await cluster.get(kinds.space, org, guid, signal);
  if (space === undefined) throw missing(name);
  return space;
}

/** The app and its space together. */
export async function readSshState(session: SpaceSession, app: Stored<CFApp>): Promise<SshState> {
  const space = await readSpace(session, session.org.guid, session.space);
  if (!isSshEnabled(space)) return { enabled: false, reason: 'Disabled for space' };
  return isSshEnabled(app) ? { enabled: true, reason: '' } : { enabled: false, reason: 'Disabled for app' };
}

/** @throws KfError `not-found` */
export async function findSpaceObject(session: OrgSession, name: string): Promise<Stored<CFSpace>> {
  return readSpace(session, session.org.guid, await findSpace(session, session.org, name));
}

/** Ends when the cluster enforces it. @returns false when it was so already */
export async function setSpaceSsh(session: Session, space: Stored<CFSpace>, enabled: boolean): Promise<boolean> {
  if (isSshEnabled(space) === enabled) return false;
  const what = `Space '${space.spec.displayName}'`;
  const wanted = { [labels.ssh]: enabled ? 'enabled' : 'disabled' };
  await changeLabels(session, { type: kinds.space, object: space, what }, wanted);
  const isDone = (seen: Stored<CFSpace>): boolean =>
    findCondition(seen, conditionTypes.sshAllowed)?.status === (enabled ? 'True' : 'False');
  await waitForController(session, { type: kinds.space, object: space, what, late: notReady }, isDone, awaitedOf);
  return true;
}
