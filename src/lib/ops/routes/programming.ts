// Waits until the gateway has loaded what a command wrote, so that the change has its effect when the command prints OK.

import { currentCondition } from '../../api/conditions.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import { nobodyTookUp, unlessAbsent, waitForController } from '../controller-wait.ts';
import type { OpEvent } from '../../events.ts';

/**
 * How long the gateway may need for a route that the controller has taken up. The controller reports a gateway that fails within 15 s, or later if a
 * Service is not known to it yet or the API server was away; its own patience is shorter than this.
 */
const gatewayPatienceMs = 120_000;

/** @returns undefined when no controller has looked at the route */
function notLoaded(route: Stored<CFRoute>, url: string, waitedMs: number): KfError | undefined {
  const ready = currentCondition(route, conditionTypes.ready);
  if (ready === undefined) return undefined;
  const why = ready.message === '' ? '' : ` ${ready.message}`;
  return new KfError('timeout', `Route ${url} is written, but the gateway has not loaded it after ${waitedMs / 1000} s.${why}`, {
    hints: [`kubectl get httproute -n ${route.metadata.namespace} ${route.metadata.name} -o yaml`],
  });
}

/**
 * Waits until the gateway has loaded the route as it is now.
 * @throws KfError `accepted` without a controller, `failed` when the gateway refuses the route, `timeout` when it does not load it
 */
export async function waitUntilProgrammed(session: SpaceSession, route: Stored<CFRoute>, url: string): Promise<void> {
  const hasLoaded = (seen: Stored<CFRoute>): boolean => {
    const loaded = currentCondition(seen, conditionTypes.programmed);
    if (loaded?.status === 'False') throw new KfError('failed', `The gateway does not take the route ${url}: ${loaded.message}`);
    return loaded?.status === 'True';
  };
  const progress = (seen: Stored<CFRoute>): OpEvent => ({
    type: currentCondition(seen, conditionTypes.ready) === undefined ? 'awaiting-route' : 'awaiting-gateway',
    url,
  });
  const late = (seen: Stored<CFRoute>, waitedMs: number): KfError | undefined => notLoaded(seen, url, waitedMs);
  const written = { type: kinds.route, object: route, what: `Route ${url}`, patienceMs: gatewayPatienceMs, late };
  const waited = await unlessAbsent(session, (signal, alive) => {
    const isDone = (seen: Stored<CFRoute>): boolean => {
      if (currentCondition(seen, conditionTypes.ready) !== undefined) alive();
      return hasLoaded(seen);
    };
    return waitForController({ cluster: session.cluster, report: session.report, signal }, written, isDone, progress);
  });
  if (waited === undefined) throw nobodyTookUp(written.what);
}
