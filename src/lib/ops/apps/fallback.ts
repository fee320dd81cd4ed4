// When a version does not start, the controller starts the version that served last (docs/internals.md, Generations). This waits for that version.

import { webProcess } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, GenerationStatus } from '../../api/types.generated.ts';
import type { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { unlessLate } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';

/** The fallback has run before, so it should start soon. After this time the command reports the failed start instead. */
const fallbackTimeoutMs = 90_000;

const isFallback = ({ state, served }: GenerationStatus): boolean => state === 'Old' && served === true;

/**
 * The app once all instances of the fallback are ready; 'none' when there is no fallback; undefined while it starts. That of the process that failed has
 * no instances until those of the failed version have ended, unless its process serves routes and is rolling.
 */
function fallbackOutcome(app: Stored<CFApp> | undefined, deployId: string): Stored<CFApp> | 'none' | undefined {
  const deployment = app?.status?.deployment;
  if (app === undefined || deployment?.id !== deployId || deployment.phase !== 'Failed') return 'none';
  const { process: failed = webProcess, generations = [] } = deployment;
  const fallbacks = generations.filter(isFallback);
  const wanted = fallbacks.filter(({ instances }) => instances > 0);
  const ofFailed = fallbacks.filter(({ process }) => process === failed);
  if (ofFailed.length > 0 && ofFailed.every(({ instances }) => instances === 0)) return undefined;
  if (wanted.length === 0) return 'none';
  return wanted.every(({ ready, instances }) => ready >= instances) ? app : undefined;
}

/**
 * After a failed start: waits until the version that served last runs again, and reports it.
 * @throws KfError `failure` itself when there is no such version, or it is not ready in time
 */
export async function waitForFallback(
  session: SpaceSession,
  app: Stored<CFApp>,
  deployId: string,
  failure: KfError,
): Promise<Stored<CFApp>> {
  const { cluster, space, signal, report } = session;
  const { displayName } = app.spec;
  const options = { timeoutMs: fallbackTimeoutMs, signal, describe: `the version of app '${displayName}' that served last` };
  report({ type: 'awaiting-fallback' });
  const target = { ns: space.guid, name: app.metadata.name };
  const watched = watchObject(cluster, kinds.app, target, (seen) => fallbackOutcome(seen, deployId), options);
  const found = await unlessLate(watched).finally(() => report({ type: 'done' }));
  if (found === undefined || found === 'none') throw failure;
  report({ type: 'fell-back', app: displayName, cause: failure.message.replace(/^Start unsuccessful: /, '') });
  return found;
}
