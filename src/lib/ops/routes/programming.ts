// Waits until the gateway has loaded what was just written: a command that says OK has had its effect.

import { currentCondition, findCondition } from '../../api/conditions.ts';
import { httpRouteType, mainBackends, revisionOf } from '../../api/gateway.ts';
import { conditionTypes, kinds } from '../../api/group.ts';
import type { CFApp, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { watchObject } from '../../kube/watch-list.ts';
import { waitFor } from '../../wait.ts';
import type { SpaceSession } from '../../session/session.ts';

/** How long the gateway may take; the controller itself gives a verdict after 15 s. */
const patienceMs = 20_000;

const programmed = (route: CFRoute): boolean => currentCondition(route, conditionTypes.programmed)?.status === 'True';

function notProgrammed(error: KfError, route: CFRoute, url: string): KfError {
  const ready = currentCondition(route, conditionTypes.ready);
  if (ready !== undefined) {
    const why = ready.message === '' ? '' : ` ${ready.message}`;
    return new KfError('timeout', `Route ${url} is written, but the gateway has not loaded it after ${patienceMs / 1000} s.${why}`, {
      hints: [`kubectl get httproute -n ${route.metadata.namespace ?? ''} ${route.metadata.name ?? ''} -o yaml`],
      cause: error,
    });
  }
  return new KfError('accepted', `Route ${url} is written, but no controller has taken it up; it waits in the cluster.`, {
    hints: ['kubectl get pods -n kf-system'],
    cause: error,
  });
}

/** @throws KfError `accepted` without a controller, `failed` when the gateway refuses the route, `timeout` when it does not load it */
export async function waitUntilProgrammed(session: SpaceSession, route: CFRoute, url: string): Promise<void> {
  const { cluster, space, signal, report } = session;
  let last = route;
  const check = (seen: CFRoute | undefined): true | undefined => {
    if (seen === undefined) throw new KfError('not-found', `Route ${url} was deleted meanwhile.`);
    last = seen;
    if (programmed(seen)) return true;
    const ready = currentCondition(seen, conditionTypes.ready);
    const failed = currentCondition(seen, conditionTypes.programmed);
    if (failed?.status === 'False') throw new KfError('failed', `The gateway does not take the route ${url}: ${failed.message}`);
    report({ type: ready === undefined ? 'awaiting-route' : 'awaiting-gateway', url });
    return undefined;
  };
  try {
    await watchObject(cluster, kinds.route, { ns: space.guid, name: route.metadata.name ?? '', known: route }, check, {
      timeoutMs: patienceMs,
      signal,
      describe: `the gateway to load ${url}`,
    });
  } catch (error) {
    throw error instanceof KfError && error.code === 'timeout' ? notProgrammed(error, last, url) : error;
  } finally {
    report({ type: 'done' });
  }
}

/** The gateway has been asked, and sends no request to the app by this route. */
async function isSilent(session: SpaceSession, app: CFApp, route: CFRoute): Promise<boolean> {
  const { cluster, space, signal } = session;
  const name = route.metadata.name ?? '';
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
export async function waitUntilSilent(session: SpaceSession, app: CFApp): Promise<void> {
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
  try {
    await waitFor(look, { timeoutMs: patienceMs, intervalMs: 150, describe: 'the gateway to send no more requests', signal });
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'timeout') throw error;
    report({ type: 'not-silent', app: app.spec.displayName });
  } finally {
    report({ type: 'done' });
  }
}
