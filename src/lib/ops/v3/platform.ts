// The roots of the API, info, buildpacks and stacks.

import { kinds } from '../../api/group.ts';
import { defined } from '../../defined.ts';
import { featureFlags } from '../../cf/feature-flags.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentBuildpacks, presentInfo, presentRoot, presentStacks, presentV3Root } from '../../v3/platform.ts';
import { identityOf, type V3Resource } from '../../v3/resource.ts';
import { readFeatureFlag, readFeatureFlags, setFeatureFlag, type KnownFlag } from '../tenancy/feature-flags.ts';
import { fieldsOf } from './body.ts';
import { get, patch, type Asked, type V3Route } from './request.ts';

async function info({ reader, link }: Asked): Promise<unknown> {
  const { controller } = await reader.session.info();
  return presentInfo(controller.version, link);
}

/** What the installation's builder offers; nothing until the controller has read its image. */
async function builder({ reader, link }: Asked): Promise<{ buildpacks: V3Resource[]; stacks: V3Resource[] }> {
  const { cluster, signal, root } = reader.session;
  const { name } = (await reader.session.info()).builder;
  const found = await cluster.get(kinds.builderInfo, root, name, signal);
  if (found === undefined) return { buildpacks: [], stacks: [] };
  return { buildpacks: presentBuildpacks(found, link), stacks: presentStacks(found, link) };
}

const listing =
  (what: 'buildpacks' | 'stacks', filters: readonly string[]) =>
  async (asked: Asked): Promise<unknown> => {
    const { query, link } = asked;
    query.allow(filters);
    const fits = ({ guid, name, stack }: V3Resource): boolean =>
      query.matches('names', String(name)) && query.matches('guids', guid) && query.matches('stacks', String(stack));
    return pageOf((await builder(asked))[what].filter(fits), query, link, true);
  };

const showing =
  (what: 'buildpacks' | 'stacks', sentence: string) =>
  async (asked: Asked): Promise<unknown> => {
    const found = (await builder(asked))[what].find(({ guid }) => guid === asked.part('guid'));
    if (found === undefined) throw new V3Error('not-found', sentence);
    return found;
  };

const presentFlag = ({ flag: { name, enabled }, object }: KnownFlag, { link }: Asked): V3Resource => ({
  ...(object === undefined ? { created_at: '', updated_at: '' } : identityOf(object)),
  guid: name,
  name,
  enabled,
  custom_error_message: object?.spec.errorMessage ?? null,
  links: { self: link(`/v3/feature_flags/${name}`) },
});

async function listFlags(asked: Asked): Promise<unknown> {
  asked.query.allow([]);
  const flags = await readFeatureFlags(asked.reader.session);
  return pageOf(
    flags.map((flag) => presentFlag(flag, asked)),
    asked.query,
    asked.link,
    true,
  );
}

/** The name of the flag in the path. @throws V3Error 404 */
function flagName(asked: Asked): string {
  const name = asked.part('name');
  if (!featureFlags.some((flag) => flag.name === name)) throw new V3Error('not-found', 'Feature flag not found');
  return name;
}

async function oneFlag(asked: Asked): Promise<unknown> {
  return presentFlag(await readFeatureFlag(asked.reader.session, flagName(asked)), asked);
}

async function changeFlag(asked: Asked): Promise<unknown> {
  const name = flagName(asked);
  const { enabled, custom_error_message: errorMessage } = fieldsOf(asked.body(), ['enabled', 'custom_error_message']);
  if (typeof enabled !== 'boolean') throw new V3Error('unprocessable', 'Enabled must be a boolean');
  if (errorMessage !== undefined && errorMessage !== null && typeof errorMessage !== 'string')
    throw new V3Error('unprocessable', 'Custom error message must be a string');
  return presentFlag(await setFeatureFlag(asked.reader.session, name, { enabled, ...defined({ errorMessage }) }), asked);
}

export const platformRoutes: readonly V3Route[] = [
  get('/', ({ link }) => Promise.resolve(presentRoot(link))),
  get('/v3', ({ link }) => Promise.resolve(presentV3Root(link))),
  get('/v3/info', info),
  get('/v3/buildpacks', listing('buildpacks', ['names', 'guids', 'stacks'])),
  get('/v3/buildpacks/:guid', showing('buildpacks', 'Buildpack not found')),
  get('/v3/stacks', listing('stacks', ['names', 'guids'])),
  get('/v3/stacks/:guid', showing('stacks', 'Stack not found')),
  get('/v3/feature_flags', listFlags),
  get('/v3/feature_flags/:name', oneFlag),
  patch('/v3/feature_flags/:name', changeFlag),
];
