// What the API server notes of the writers of an app's objects: caches leave it out, so it is read where an event needs it.

import { desiredInstances } from '../../lib/api/app.ts';
import { seenKey, type AppObjects } from '../../lib/api/app-events.ts';
import { withWriters } from '../../lib/api/changed-at.ts';
import type { Seen } from '../../lib/api/event-log.ts';
import { annotations, kinds, labels } from '../../lib/api/group.ts';
import type { Stored } from '../../lib/api/object.ts';
import type { CFProcess } from '../../lib/api/types.generated.ts';
import type { Context } from '../runtime/reconciler.ts';

/** The objects, with the times of their changes where an event may need one. @param before what was seen of the app */
export async function withTimes({ cluster, signal }: Context, objects: AppObjects, before: Seen): Promise<AppObjects> {
  const { namespace: ns, name } = objects.app.metadata;
  const [app, { items }] = await Promise.all([
    cluster.get(kinds.app, ns, name, signal),
    cluster.list(kinds.process, { ns, labelSelector: `${labels.appGuid}=${name}`, signal }),
  ]);
  const processes = new Map(items.map((process) => [process.metadata.uid, process]));
  const routes: (typeof objects.routes)[number][] = [];
  for (const route of objects.routes) {
    routes.push(
      seenKey(route) in before.routes ? route : withWriters(route, await cluster.get(kinds.route, ns, route.metadata.name, signal)),
    );
  }
  return {
    ...objects,
    app: withWriters(objects.app, app),
    processes: objects.processes.map((process) => withWriters(process, processes.get(process.metadata.uid))),
    routes,
  };
}

const authorOf = ({ metadata }: CFProcess): string | undefined => metadata.annotations?.[annotations.changedBy];

/** Of a process that has changed again since it was cached, nobody knows who made the change that was seen. */
const isAsCached = (cached: CFProcess, live: CFProcess): boolean =>
  desiredInstances(cached) === desiredInstances(live) && authorOf(cached) === authorOf(live);

/** The objects, with the writers of each process whose number of instances has changed. @param before what was seen of the app */
export async function withScalers({ cluster, signal }: Context, objects: AppObjects, before: Seen): Promise<AppObjects> {
  const isScaled = (process: CFProcess): boolean => before.processes[process.spec.processType]?.[0] !== desiredInstances(process);
  const processes: Stored<CFProcess>[] = [];
  for (const process of objects.processes) {
    const { namespace, name } = process.metadata;
    const live = isScaled(process) ? await cluster.get(kinds.process, namespace, name, signal) : undefined;
    processes.push(live !== undefined && isAsCached(process, live) ? withWriters(process, live) : process);
  }
  return { ...objects, processes };
}
