// The roots of the API, info, buildpacks and stacks.

import { featureFlags, type FeatureFlag } from '../../cf/feature-flags.ts';
import { kinds } from '../../api/group.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentBuildpacks, presentInfo, presentRoot, presentStacks, presentV3Root } from '../../v3/platform.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { get, type Asked, type V3Route } from './request.ts';

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

const flagOf = ({ name, enabled }: FeatureFlag, { link }: Asked): V3Resource => ({
  guid: name,
  name,
  enabled,
  created_at: '',
  updated_at: '',
  custom_error_message: null,
  links: { self: link(`/v3/feature_flags/${name}`) },
});

async function listFlags(asked: Asked): Promise<unknown> {
  return Promise.resolve(
    pageOf(
      featureFlags.map((flag) => flagOf(flag, asked)),
      asked.query.allow([]),
      asked.link,
      true,
    ),
  );
}

async function oneFlag(asked: Asked): Promise<unknown> {
  const found = featureFlags.find(({ name }) => name === asked.part('name'));
  if (found === undefined) throw new V3Error('not-found', 'Feature flag not found');
  return Promise.resolve(flagOf(found, asked));
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
];
