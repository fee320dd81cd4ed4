// A version that does not start gives way to the one that served last (docs/internals.md, Generations): the wait for that one.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, GenerationStatus } from '../../api/types.generated.ts';
import type { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { unlessLate } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';

/** The version has run before: longer than this, and it is no help. */
const patienceMs = 90_000;

const isFallback = ({ state, served, instances }: GenerationStatus): boolean => state === 'Old' && served === true && instances > 0;

/** The app once all instances of the fallback are ready; 'none' when nothing stands in for what failed. */
function judge(app: Stored<CFApp> | undefined, deployId: string): Stored<CFApp> | 'none' | undefined {
  const deployment = app?.status?.deployment;
  if (app === undefined || deployment?.id !== deployId || deployment.phase !== 'Failed') return 'none';
  const fallbacks = (deployment.generations ?? []).filter(isFallback);
  if (fallbacks.length === 0) return 'none';
  return fallbacks.every(({ ready, instances }) => ready >= instances) ? app : undefined;
}

/**
 * After a start that failed: waits until the version that served last runs in its place, and says so.
 * @throws KfError `failure` itself when there is no such version, or it does not come
 */
export async function waitForFallback(
  session: SpaceSession,
  app: Stored<CFApp>,
  deployId: string,
  failure: KfError,
): Promise<Stored<CFApp>> {
  const { cluster, space, signal, report } = session;
  const { displayName } = app.spec;
  const how = { timeoutMs: patienceMs, signal, describe: `the version of app '${displayName}' that served last` };
  report({ type: 'awaiting-fallback' });
  const where = { ns: space.guid, name: app.metadata.name };
  const watched = watchObject(cluster, kinds.app, where, (seen) => judge(seen, deployId), how);
  const found = await unlessLate(watched).finally(() => report({ type: 'done' }));
  if (found === undefined || found === 'none') throw failure;
  report({ type: 'fell-back', app: displayName, cause: failure.message.replace(/^Start unsuccessful: /, '') });
  return found;
}
