// Why no app answers the requests of a route that the gateway has loaded.

import { desiredInstances, instanceCountsOf, webProcess } from '../../api/app.ts';
import type { CauseCode } from '../../api/causes.ts';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { WhyDetails } from '../../api/results.ts';
import type { CFApp, CFProcess, CFRoute, RouteDestination } from '../../api/types.generated.ts';
import type { SpaceSession } from '../../session/session.ts';

/** A destination without an instance that answers. */
interface Silent {
  state: 'failed' | 'waiting';
  /** Goes on after `the route leads to`. */
  text: string;
  next: string[];
}

/** What keeps a destination from answering; undefined when one of its instances runs, and when nothing is known of it. */
function silentOf(app: Stored<CFApp>, process: Stored<CFProcess> | undefined, bin: string): Silent | undefined {
  const { displayName: name, desiredState } = app.spec;
  if (desiredState !== 'STARTED') return { state: 'waiting', text: `app '${name}', which is stopped`, next: [`${bin} start ${name}`] };
  if (process === undefined) return undefined;
  const { processType } = process.spec;
  const of = processType === webProcess ? '' : ` of its process '${processType}'`;
  const wanted = desiredInstances(process);
  if (wanted === 0) {
    const flag = processType === webProcess ? '' : ` --process ${processType}`;
    const scale = `${bin} scale ${name}${flag} -i 1`;
    return { state: 'failed', text: `app '${name}', which is scaled to 0 instances${of}`, next: [scale, `${bin} why ${name}`] };
  }
  const { running } = instanceCountsOf(process);
  if (running > 0) return undefined;
  const { phase } = app.status?.deployment ?? {};
  const state = phase === 'Pending' || phase === 'Starting' ? 'waiting' : 'failed';
  return { state, text: `app '${name}', of which 0 of ${String(wanted)} instances${of} run`, next: [`${bin} why ${name}`] };
}

async function look({ cluster, space, signal, bin }: SpaceSession, { appRef, processType }: RouteDestination): Promise<Silent | undefined> {
  const labelSelector = `${labels.appGuid}=${appRef.name}`;
  const [app, { items }] = await Promise.all([
    cluster.get(kinds.app, space.guid, appRef.name, signal),
    cluster.list(kinds.process, { ns: space.guid, labelSelector, signal }),
  ]);
  const process = items.find(({ spec }) => spec.processType === processType);
  return app === undefined ? undefined : silentOf(app, process, bin);
}

/** Why no app behind the route answers; undefined when one does. What a shared route leads to in another space is not known here. */
export async function unanswered(
  session: SpaceSession,
  { spec: { destinations = [], sharedFrom, sharedWith = [] } }: Stored<CFRoute>,
): Promise<(Pick<WhyDetails, 'state' | 'message' | 'next'> & { cause?: CauseCode }) | undefined> {
  if (sharedFrom !== undefined || sharedWith.length > 0) return undefined;
  const all = await Promise.all(destinations.map((destination) => look(session, destination)));
  const silent = all.filter((each) => each !== undefined);
  if (silent.length === 0 || silent.length < all.length) return undefined;
  const isFailed = silent.some(({ state }) => state === 'failed');
  return {
    state: isFailed ? 'failed' : 'waiting',
    ...(isFailed ? { cause: 'not-serving' as const } : {}),
    message: `No instance answers: the route leads to ${silent.map(({ text }) => text).join(', and to ')}.`,
    next: [...new Set(silent.flatMap(({ next }) => next))],
  };
}
