// Revisions of apps: lists, single ones, and their variables.

import { configMapType } from '../../api/core.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import { readRecords, revisionsName, type RevisionSettings } from '../../api/revisions.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { isForbidden } from '../../kube/errors.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { presentRevision, presentRevisionVariables } from '../../v3/revisions.ts';
import { findRevisions, readSettings, variablesOf, type FoundRevision } from '../apps/revisions.ts';
import { appOf } from './apps.ts';
import { get, type Asked, type V3Route } from './request.ts';

/** The settings, as far as they are kept and the caller may read them. */
async function settingsIfAny(asked: Asked, app: Stored<CFApp>, { record }: FoundRevision): Promise<RevisionSettings | undefined> {
  try {
    return await readSettings(asked.reader.within(app), app, record);
  } catch (error) {
    if (isForbidden(error)) return undefined;
    throw error;
  }
}

async function present(asked: Asked, app: Stored<CFApp>, found: readonly FoundRevision[]): Promise<V3Resource[]> {
  const settings = await Promise.all(found.map((one) => settingsIfAny(asked, app, one)));
  return found.map(({ summary }, at) => presentRevision(app, summary, settings[at], asked.link));
}

async function ofApp(asked: Asked): Promise<unknown> {
  const { query, link, reader } = asked;
  query.allow(['versions']);
  const app = await appOf(asked);
  const found = (await findRevisions(reader.within(app), app)).filter(({ record }) => query.matches('versions', String(record.version)));
  return pageOf(await present(asked, app, found), query, link);
}

/** None, or the one that serves: kf calls a revision deployed when all instances have it. */
async function deployed(asked: Asked): Promise<unknown> {
  const { query, link, reader } = asked;
  query.allow([]);
  const app = await appOf(asked);
  const found = (await findRevisions(reader.within(app), app)).filter(({ summary }) => summary.deployed);
  return pageOf(await present(asked, app, found), query, link);
}

/** The app that has this revision in its record: the roles let nobody list ConfigMaps, so each is read by its name, in the targeted space first. */
async function byGuid(asked: Asked): Promise<{ app: Stored<CFApp>; found: FoundRevision }> {
  const { reader, part } = asked;
  const { cluster, signal, space } = reader.session;
  const apps = (await reader.list(kinds.app)).filter(({ status }) => status?.revision !== undefined);
  const isNear = ({ metadata }: Stored<CFApp>): boolean => metadata.namespace === space?.guid;
  for (const some of [apps.filter(isNear), apps.filter((app) => !isNear(app))]) {
    const [app] = await reader.filterAllowed(some, async ({ metadata }) => {
      const map = await cluster.get(configMapType, metadata.namespace, revisionsName(metadata.name), signal);
      return readRecords(map).some(({ guid }) => guid === part('guid'));
    });
    if (app === undefined) continue;
    const found = (await findRevisions(reader.within(app), app)).find(({ record }) => record.guid === part('guid'));
    if (found !== undefined) return { app, found };
  }
  throw new V3Error('not-found', 'Revision not found');
}

async function oneRevision(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const { app, found } = await byGuid(asked);
  return (await present(asked, app, [found]))[0];
}

async function variables(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const { app, found } = await byGuid(asked);
  const settings = await readSettings(asked.reader.within(app), app, found.record);
  if (settings === undefined)
    throw new V3Error(
      'not-found',
      `The variables of revision ${found.record.version} are not kept any more: kf keeps those of the newest ten, and of the one that served last.`,
    );
  return presentRevisionVariables(app, found.record.guid, variablesOf(settings), asked.link);
}

export const revisionRoutes: readonly V3Route[] = [
  get('/v3/apps/:guid/revisions', ofApp),
  get('/v3/apps/:guid/revisions/deployed', deployed),
  get('/v3/revisions/:guid', oneRevision),
  get('/v3/revisions/:guid/environment_variables', variables),
];
