// Apps: lists, single ones, their environment, features and actions. Each change is the op of the command that does it.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFApp } from '../../api/types.generated.ts';
import { assertAppName } from '../../cf/values.ts';
import { presentApp, presentEnv, presentFeatures, presentVariables } from '../../v3/apps.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { isSshEnabled } from '../../api/ssh.ts';
import { readSshState, setAppSsh } from '../apps/ssh-access.ts';
import { deleteApp } from '../apps/delete.ts';
import { assertVariable, readEnv, readVariables, setEnv, unsetEnv } from '../apps/env.ts';
import { restartApp, startApp, stopApp, type Changed } from '../apps/lifecycle.ts';
import { assertMetadata, changeMetadata } from '../apps/metadata.ts';
import { renameApp } from '../apps/rename.ts';
import { fieldsOf, metadataIn, textsOf } from './body.ts';
import { oneWithIncluded, withIncluded } from './included.ts';
import { deletionOf } from './jobs.ts';
import { get, patch, post, remove, type Asked, type V3Route } from './request.ts';
import type { SpaceSession } from '../../session/session.ts';

const includes = ['space', 'space.organization'];

export const appOf = ({ reader, part }: Asked): Promise<Stored<CFApp>> => reader.find(kinds.app, 'App', part('guid'));

async function listApps(asked: Asked): Promise<unknown> {
  const { reader, query, link } = asked;
  query.allow(['names', 'guids', 'space_guids', 'organization_guids', 'stacks', 'lifecycle_type', 'label_selector', 'include']);
  const apps = (await reader.list(kinds.app, query)).filter(
    (app) =>
      query.matches('names', app.spec.displayName) &&
      query.matches('guids', app.metadata.name) &&
      query.matches('stacks', app.spec.lifecycle.data.stack) &&
      query.matches('lifecycle_type', app.spec.lifecycle.type) &&
      query.matchesLabels(app),
  );
  const resources = apps.map((app) => presentApp(app, link));
  return withIncluded(asked, pageOf(resources, query, link), includes);
}

async function oneApp(asked: Asked): Promise<unknown> {
  asked.query.allow(['include'], { isList: false });
  return oneWithIncluded(asked, presentApp(await appOf(asked), asked.link), includes);
}

async function environment(asked: Asked): Promise<unknown> {
  const app = await appOf(asked);
  return presentEnv(await readEnv(asked.reader.within(app), app));
}

async function variables(asked: Asked): Promise<unknown> {
  const app = await appOf(asked);
  return presentVariables(app, await readVariables(asked.reader.within(app), app), asked.link);
}

/** Sets the given variables; null removes one. All are checked before the first is written. */
async function changeVariables(asked: Asked): Promise<unknown> {
  const wanted = textsOf(fieldsOf(asked.body(), ['var'])['var'], 'var');
  for (const [name, value] of Object.entries(wanted)) assertVariable(name, value ?? '');
  let app = await appOf(asked);
  const session = await asked.reader.at(app);
  for (const [index, [name, value]] of Object.entries(wanted).entries()) {
    if (value === null) await unsetEnv(session, app, name);
    else await setEnv(session, app, name, value);
    // The first variable marks the app, and makes the Secret of one that other tools have made.
    if (index === 0) app = await appOf(asked);
  }
  return presentVariables(app, await readVariables(session, app), asked.link);
}

const features = async (asked: Asked) => presentFeatures(isSshEnabled(await appOf(asked)));

async function listFeatures(asked: Asked): Promise<unknown> {
  const all = await features(asked);
  return pageOf(
    all.map((feature) => ({ ...feature })),
    asked.query.allow([]),
    asked.link,
    true,
  );
}

async function oneFeature(asked: Asked): Promise<unknown> {
  const found = (await features(asked)).find(({ name }) => name === asked.part('name'));
  if (found === undefined) throw new V3Error('not-found', 'Feature not found');
  return found;
}

async function changeFeature(asked: Asked): Promise<unknown> {
  const { enabled } = fieldsOf(asked.body(), ['enabled']);
  if (typeof enabled !== 'boolean') throw new V3Error('unprocessable', 'Enabled must be a boolean');
  if (asked.part('name') !== 'ssh') throw new V3Error('unprocessable', `The feature '${asked.part('name')}' cannot be changed.`);
  const app = await appOf(asked);
  await setAppSsh(await asked.reader.at(app), app, enabled);
  return presentFeatures(enabled).find(({ name }) => name === 'ssh');
}

async function sshEnabled(asked: Asked): Promise<unknown> {
  const app = await appOf(asked);
  return readSshState(await asked.reader.at(app), app);
}

/** Sensitive data are the variables, which are in a Secret. */
async function permissions(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const { metadata, spec } = await appOf(asked);
  const { cluster, signal } = asked.reader.session;
  const name = spec.envSecretName ?? '';
  const question = { verb: 'get', resource: 'secrets', ns: metadata.namespace, ...(name === '' ? {} : { name }) };
  return { read_basic_data: true, read_sensitive_data: (await cluster.canI(question, signal)).allowed };
}

/** Name and metadata; other fields are those of a push. */
async function changeApp(asked: Asked): Promise<unknown> {
  const { name, metadata } = fieldsOf(asked.body(), ['name', 'metadata']);
  if (name !== undefined) assertAppName(typeof name === 'string' ? name : '');
  const change = metadataIn(metadata);
  assertMetadata(change);
  let app = await appOf(asked);
  const session = await asked.reader.at(app);
  if (typeof name === 'string') app = await renameApp(session, app, name);
  if (metadata !== undefined) app = await changeMetadata(session, app, change);
  return presentApp(app, asked.link);
}

type Action = (session: SpaceSession, app: Stored<CFApp>) => Promise<Pick<Changed, 'app'>>;

/** As in the API, the answer comes when the change is written; `/v3/processes/…/stats` tells how the instances fare. */
const acting =
  (action: Action) =>
  async (asked: Asked): Promise<unknown> => {
    const app = await appOf(asked);
    const changed = await action(await asked.reader.at(app), app);
    return presentApp(changed.app, asked.link);
  };

async function removeApp(asked: Asked): Promise<unknown> {
  const app = await appOf(asked);
  await deleteApp(await asked.reader.at(app), app, { routes: false, wait: false });
  return deletionOf('app', app.metadata.name, asked.link);
}

export const appRoutes: readonly V3Route[] = [
  get('/v3/apps', listApps),
  get('/v3/apps/:guid', oneApp),
  get('/v3/apps/:guid/env', environment),
  get('/v3/apps/:guid/environment_variables', variables),
  get('/v3/apps/:guid/features', listFeatures),
  get('/v3/apps/:guid/features/:name', oneFeature),
  patch('/v3/apps/:guid/features/:name', changeFeature),
  get('/v3/apps/:guid/ssh_enabled', sshEnabled),
  get('/v3/apps/:guid/permissions', permissions),
  patch('/v3/apps/:guid', changeApp),
  patch('/v3/apps/:guid/environment_variables', changeVariables),
  post('/v3/apps/:guid/actions/start', acting(startApp)),
  post('/v3/apps/:guid/actions/stop', acting(stopApp)),
  post('/v3/apps/:guid/actions/restart', acting(restartApp)),
  remove('/v3/apps/:guid', removeApp),
];
