// Waits until the gateway has loaded what was just written: a command that says OK has had its effect.

import { currentCondition, findCondition } from '../../api/conditions.ts';
import { httpRouteType, mainBackends, revisionOf } from '../../api/gateway.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { unlessLate, waitFor } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';
import { waitForController } from '../controller-wait.ts';
import type { OpEvent } from '../events.ts';

/** How long the gateway may take to send no more requests. */
const silenceMs = 20_000;

/** @returns undefined where no controller has looked at the route */
function notLoaded(route: Stored<CFRoute>, url: string, waitedMs: number): KfError | undefined {
  const ready = currentCondition(route, conditionTypes.ready);
  if (ready === undefined) return undefined;
  const why = ready.message === '' ? '' : ` ${ready.message}`;
  return new KfError('timeout', `Route ${url} is written, but the gateway has not loaded it after ${waitedMs / 1000} s.${why}`, {
    hints: [`kubectl get httproute -n ${route.metadata.namespace} ${route.metadata.name} -o yaml`],
  });
}

/** @throws KfError `accepted` without a controller, `failed` when the gateway refuses the route, `timeout` when it does not load it */
export async function waitUntilProgrammed(session: SpaceSession, route: Stored<CFRoute>, url: string): Promise<void> {
  const isLoaded = (seen: Stored<CFRoute>): boolean => {
    const loaded = currentCondition(seen, conditionTypes.programmed);
    if (loaded?.status === 'False') throw new KfError('failed', `The gateway does not take the route ${url}: ${loaded.message}`);
    return loaded?.status === 'True';
  };
  const awaited = (seen: Stored<CFRoute>): OpEvent => ({
    type: currentCondition(seen, conditionTypes.ready) === undefined ? 'awaiting-route' : 'awaiting-gateway',
    url,
  });
  const late = (seen: Stored<CFRoute>, waitedMs: number): KfError | undefined => notLoaded(seen, url, waitedMs);
  await waitForController(session, { type: kinds.route, object: route, what: `Route ${url}`, late }, isLoaded, awaited);
}

/** The gateway has been asked, and sends no request to the app by this route. */
async function isSilent(session: SpaceSession, app: Stored<CFApp>, route: Stored<CFRoute>): Promise<boolean> {
  const { cluster, space, signal } = session;
  const name = route.metadata.name;
  const [fresh, live] = await Promise.all([
    cluster.get(kinds.route, space.guid, name, signal),
    cluster.get(httpRouteType, space.guid, name, signal),
  ]);
  if (fresh === undefined || live === undefined) return true;
  const own = (fresh.spec.destinations ?? []).filter(({ appRef }) => appRef.name === app.metadata.name);
  const leads = mainBackends(live).some((backend) => own.some(({ guid }) => backend.name.startsWith(`s-${guid}-`)));
  const said = findCondition(fresh, conditionTypes.programmed)?.message ?? '';
  return !leads && said.endsWith(`${revisionOf(live) ?? '?'}.`);
}

/** After a stop: until no route leads to the app any more. A gateway that does not follow is no reason to fail: the instances end in any case. */
export async function waitUntilSilent(session: SpaceSession, app: Stored<CFApp>): Promise<void> {
  const { cluster, space, signal, report } = session;
  const { items } = await cluster.list(kinds.route, { ns: space.guid, signal });
  const own = items.filter(({ spec }) => (spec.destinations ?? []).some(({ appRef }) => appRef.name === app.metadata.name));
  if (own.length === 0) return;
  const look = async (): Promise<true | undefined> => {
    const silent = await Promise.all(own.map((route) => isSilent(session, app, route)));
    if (silent.every(Boolean)) return true;
    report({ type: 'awaiting-silence' });
    return undefined;
  };
  const how = { timeoutMs: silenceMs, intervalMs: 150, describe: 'the gateway to send no more requests', signal };
  const isSo = await unlessLate(waitFor(look, how)).finally(() => report({ type: 'done' }));
  if (isSo === undefined) report({ type: 'not-silent', app: app.spec.displayName });
}
