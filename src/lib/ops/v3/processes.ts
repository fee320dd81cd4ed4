// Processes: lists, single ones, statistics and scaling.

import { instanceLimits, webProcess } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp, CFProcess } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentProcess, presentStats } from '../../v3/processes.ts';
import type { V3Query } from '../../v3/query.ts';
import { restartInstance } from '../apps/restart-instance.ts';
import { findProcess, scaleApp } from '../apps/scale.ts';
import { LiveInstances } from '../instances/live.ts';
import { appOf } from './apps.ts';
import { fieldsOf, wholeNumber } from './body.ts';
import { get, post, remove, V3Answer, type Asked, type V3Route } from './request.ts';

interface Found {
  app: Stored<CFApp>;
  process: Stored<CFProcess>;
}

/** In cf a web process has the GUID of its app, and scripts use one for the other. */
const hasGuid = (query: V3Query, { metadata, spec }: Stored<CFProcess>): boolean =>
  query.matches('guids', metadata.name) || (spec.processType === webProcess && query.matches('guids', spec.appRef.name));

async function listProcesses({ reader, query, link }: Asked): Promise<unknown> {
  query.allow(['guids', 'types', 'app_guids', 'space_guids', 'organization_guids', 'label_selector']);
  const found = (await reader.list(kinds.process, query)).filter(
    (process) =>
      hasGuid(query, process) &&
      query.matches('types', process.spec.processType) &&
      query.matches('app_guids', process.spec.appRef.name) &&
      query.matchesLabels(process),
  );
  return pageOf(
    found.map((process) => presentProcess(process, link)),
    query,
    link,
  );
}

/** The process by its own GUID, or the web process by that of its app, with the app. */
async function byGuid({ reader, part }: Asked): Promise<Found> {
  const process = await reader.findIfAny(kinds.process, part('guid'));
  if (process === undefined) {
    const app = await reader.find(kinds.app, 'Process', part('guid'));
    return { app, process: await findProcess(reader.within(app), app, webProcess) };
  }
  const { cluster, signal } = reader.session;
  const app = await cluster.get(kinds.app, process.metadata.namespace, process.spec.appRef.name, signal);
  if (app === undefined) throw new V3Error('not-found', 'App not found');
  return { app, process };
}

/** The process of an app by its type. */
async function byType(asked: Asked): Promise<Found> {
  const app = await appOf(asked);
  return { app, process: await findProcess(asked.reader.within(app), app, asked.part('type')) };
}

async function ofApp(asked: Asked): Promise<unknown> {
  const { reader, query, link } = asked;
  query.allow(['guids', 'types', 'label_selector']);
  const app = await appOf(asked);
  const { cluster, signal } = reader.session;
  const { items } = await cluster.list(kinds.process, { ns: app.metadata.namespace, signal });
  const found = items.filter(
    (process) =>
      process.spec.appRef.name === app.metadata.name &&
      hasGuid(query, process) &&
      query.matches('types', process.spec.processType) &&
      query.matchesLabels(process),
  );
  return pageOf(
    found.map((process) => presentProcess(process, link)),
    query,
    link,
  );
}

type Find = (asked: Asked) => Promise<Found>;

const showing =
  (find: Find) =>
  async (asked: Asked): Promise<unknown> =>
    presentProcess((await find(asked)).process, asked.link);

const measuring =
  (find: Find) =>
  async (asked: Asked): Promise<unknown> => {
    const { app, process } = await find(asked);
    const live = await LiveInstances.read(asked.reader.within(app), app, { withPods: true });
    return presentStats(process, live.of(process), new Date());
  };

/** Megabytes: a petabyte, beyond every node. */
const mostMegabytes = 1024 ** 3;

/** The new sizes are written; what the instances make of them is told by their statistics. */
const scaling =
  (find: Find) =>
  async (asked: Asked): Promise<unknown> => {
    const fields = fieldsOf(asked.body(), ['instances', 'memory_in_mb', 'disk_in_mb']);
    const instances = wholeNumber(fields['instances'], 'Instances', 0, instanceLimits.most);
    const memoryMB = wholeNumber(fields['memory_in_mb'], 'Memory in mb', 1, mostMegabytes);
    const diskMB = wholeNumber(fields['disk_in_mb'], 'Disk in mb', 1, mostMegabytes);
    const { app, process } = await find(asked);
    const session = await asked.reader.at(app);
    try {
      await scaleApp(session, app, { process: process.spec.processType, instances, memoryMB, diskMB });
    } catch (error) {
      if (!(error instanceof KfError) || !['start', 'timeout', 'accepted'].includes(error.code)) throw error;
      session.report({ type: 'warning', message: error.message });
    }
    const now = await asked.reader.find(kinds.process, 'Process', process.metadata.name);
    return new V3Answer(202, presentProcess(now, asked.link));
  };

/** As `kf restart-app-instance`; another instance starts in its place. */
const ending =
  (find: Find) =>
  async (asked: Asked): Promise<unknown> => {
    const index = /^\d{1,6}$/.test(asked.part('index')) ? Number(asked.part('index')) : -1;
    const { app, process } = await find(asked);
    await restartInstance(await asked.reader.at(app), app, process.spec.processType, index);
    return new V3Answer(204);
  };

export const processRoutes: readonly V3Route[] = [
  get('/v3/processes', listProcesses),
  get('/v3/processes/:guid', showing(byGuid)),
  get('/v3/processes/:guid/stats', measuring(byGuid)),
  post('/v3/processes/:guid/actions/scale', scaling(byGuid)),
  remove('/v3/processes/:guid/instances/:index', ending(byGuid)),
  get('/v3/apps/:guid/processes', ofApp),
  get('/v3/apps/:guid/processes/:type', showing(byType)),
  get('/v3/apps/:guid/processes/:type/stats', measuring(byType)),
  post('/v3/apps/:guid/processes/:type/actions/scale', scaling(byType)),
  remove('/v3/apps/:guid/processes/:type/instances/:index', ending(byType)),
];
