// `create-app`: an app with its name, its environment and its web process, but without a source. A push, `set-env` or `map-route` continues from it.

import { randomUUID } from 'node:crypto';
import { webProcess } from '../../api/app.ts';
import { currentCondition } from '../../api/conditions.ts';
import { secretType } from '../../api/core.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import { requireCompatible } from '../../api/kf-info.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { kfVersion } from '../../version.ts';
import { buildApp, buildEnvSecret } from '../../../templates/app.ts';
import { waitForController } from '../controller-wait.ts';
import { findAppIfAny, nameInOtherCapitals } from '../find.ts';
import { assertOffered } from './builder-offers.ts';
import { writeProcesses } from './settings.ts';

export interface NewApp {
  name: string;
  lifecycle: 'buildpack' | 'docker';
  /** Empty: detect. */
  buildpacks: readonly string[];
}

export interface CreatedApp {
  name: string;
  /** Left out when the app exists under the same name in other capitals. */
  guid?: string;
  /** False: an app of that name existed already, and nothing was changed. */
  created: boolean;
}

/** The app that has the name already; names that differ only in capitals are the same. */
async function existing(session: SpaceSession, name: string): Promise<CreatedApp | undefined> {
  const found = await findAppIfAny(session, name);
  if (found !== undefined) return { name, guid: found.metadata.name, created: false };
  const other = await nameInOtherCapitals(session, name);
  return other === undefined ? undefined : { name: other, created: false };
}

/** Waits until the app has its name; false when another app has it. */
async function claims(session: SpaceSession, app: Stored<CFApp>): Promise<boolean> {
  const claimed = (seen: Stored<CFApp>): string => currentCondition(seen, conditionTypes.claimed)?.status ?? 'Unknown';
  const written = { type: kinds.app, object: app, what: `App '${app.spec.displayName}'` };
  const judged = await waitForController(
    session,
    written,
    (seen) => claimed(seen) !== 'Unknown',
    () => ({ type: 'awaiting-controller' }),
  );
  return claimed(judged) === 'True';
}

/** Creates the app with all its parts. Returns undefined, and leaves nothing behind, when another app got the name in the meantime. */
async function make(session: SpaceSession, { name, lifecycle, buildpacks }: NewApp): Promise<Stored<CFApp> | undefined> {
  const { cluster, space, signal } = session;
  const info = await session.info();
  requireCompatible(info, kfVersion());
  if (lifecycle === 'buildpack') await assertOffered(session, info, { name, buildpacks });
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const data = { stack: '', ...(buildpacks.length === 0 ? {} : { buildpacks: [...buildpacks] }) };
  // With the id of a push, the controller removes an app that never got its name.
  const input = {
    guid: randomUUID(),
    namespace: space.guid,
    displayName: name,
    lifecycle: { type: lifecycle, data },
    pushId: randomUUID(),
  };
  const app = await cluster.create(kinds.app, buildApp(input, author), { signal });
  const { namespace, name: guid, uid } = app.metadata;
  try {
    await Promise.all([
      cluster.create(secretType, buildEnvSecret(app, {}, author), { signal }),
      writeProcesses(session, info, app, [{ plan: { type: webProcess }, changes: {} }]),
    ]);
    if (await claims(session, app)) return app;
  } catch (error) {
    if (error instanceof KfError && error.code === 'accepted') throw error;
    await cluster.delete(kinds.app, namespace, guid, { uid }).catch(() => undefined);
    throw error;
  }
  await cluster.delete(kinds.app, namespace, guid, { uid });
  return undefined;
}

/**
 * Creates a stopped app, unless one of that name exists.
 * @throws KfError `usage` for an unknown buildpack, `forbidden`, `quota`, `accepted` (no controller)
 */
export async function createApp(session: SpaceSession, app: NewApp): Promise<CreatedApp> {
  const found = await existing(session, app.name);
  if (found !== undefined) return found;
  const made = await make(session, app);
  if (made !== undefined) return { name: app.name, guid: made.metadata.name, created: true };
  return (await existing(session, app.name)) ?? { name: app.name, created: false };
}
