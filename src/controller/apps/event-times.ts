// When something happened to an app while no controller looked: only the API server knows it, because caches leave out what it notes of writers.

import { seenKey, type AppObjects } from '../../lib/api/app-events.ts';
import { withWriters } from '../../lib/api/changed-at.ts';
import type { Seen } from '../../lib/api/event-log.ts';
import { kinds, labels } from '../../lib/api/group.ts';
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
