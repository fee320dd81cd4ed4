// The apps of a space, from three lists of rows.

import { processDefaults, webProcess } from '../../api/app.ts';
import { kinds } from '../../api/group.ts';
import type { AppSummary, ProcessCount } from '../../api/results.ts';
import type { SpaceSession } from '../../session/session.ts';
import { rowsOf, type Row } from '../rows.ts';

function countsOf(isStarted: boolean, processes: readonly Row[]): ProcessCount[] {
  if (processes.length === 0) return [{ type: webProcess, running: 0, instances: 1 }];
  const rank = ({ type }: ProcessCount): number => (type === webProcess ? 0 : 1);
  return processes
    .map((row) => {
      const type = row['Type'] ?? '';
      const instances = row['Desired'] === '' ? processDefaults.instances(type) : Number(row['Desired']);
      return { type, running: isStarted ? Number(row['Actual'] ?? 0) : 0, instances };
    })
    .toSorted((a, b) => rank(a) - rank(b) || (a.type < b.type ? -1 : 1));
}

/** URLs by app GUID, in alphabetical order. */
function urlsByApp(routes: readonly Row[]): Map<string, string[]> {
  const urls = new Map<string, string[]>();
  for (const { URI: url = '', AppGUIDs: guids = '' } of routes.toSorted((a, b) => ((a['URI'] ?? '') < (b['URI'] ?? '') ? -1 : 1))) {
    if (url === '') continue;
    for (const guid of new Set(guids.split('\n'))) urls.set(guid, [...(urls.get(guid) ?? []), url]);
  }
  return urls;
}

/**
 * The space's apps by name, with their numbers of running instances and their URLs.
 * @param labels a label selector
 */
export async function listApps(session: SpaceSession, labels?: string): Promise<AppSummary[]> {
  const [apps, processes, routes] = await Promise.all([
    rowsOf(session, kinds.app, ['Name', 'Display Name', 'State'], labels),
    rowsOf(session, kinds.process, ['AppGUID', 'Type', 'Desired', 'Actual']),
    rowsOf(session, kinds.route, ['URI', 'AppGUIDs']),
  ]);
  if (apps.length === 0) await session.assertPlaceExists();
  const byApp = Map.groupBy(processes, (row) => row['AppGUID']);
  const urls = urlsByApp(routes);
  return apps
    .map((row): AppSummary => {
      const guid = row['Name'] ?? '';
      const isStarted = row['State'] === 'STARTED';
      return {
        name: row['Display Name'] ?? '',
        guid,
        state: isStarted ? 'started' : 'stopped',
        processes: countsOf(isStarted, byApp.get(guid) ?? []),
        routes: urls.get(guid) ?? [],
      };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
