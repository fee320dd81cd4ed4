// Packages, builds and droplets.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFBuild, CFPackage } from '../../api/types.generated.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { presentBuild, presentDroplet, presentPackage } from '../../v3/sources.ts';
import { setDroplet } from '../apps/droplets.ts';
import { appOf } from './apps.ts';
import { fieldsOf } from './body.ts';
import { get, patch, type Asked, type V3Route } from './request.ts';

const places = ['guids', 'app_guids', 'space_guids', 'organization_guids', 'label_selector'];

const fits = ({ query }: Asked, object: Stored<CFBuild> | Stored<CFPackage>): boolean =>
  query.matches('guids', object.metadata.name) && query.matches('app_guids', object.spec.appRef.name) && query.matchesLabels(object);

const isStaged = ({ status }: CFBuild): boolean => status?.state === 'STAGED';

/** One page of what was found and fits. */
function page<T extends Stored<CFBuild> | Stored<CFPackage>>(
  asked: Asked,
  found: readonly T[],
  present: (object: T, link: Asked['link']) => V3Resource,
  states: (resource: V3Resource) => boolean = ({ state }) => asked.query.matches('states', String(state)),
): unknown {
  const resources = found.filter((object) => fits(asked, object)).map((object) => present(object, asked.link));
  return pageOf(resources.filter(states), asked.query, asked.link);
}

async function listPackages(asked: Asked): Promise<unknown> {
  asked.query.allow([...places, 'states', 'types']);
  const found = (await asked.reader.list(kinds.package, asked.query)).filter(({ spec }) => asked.query.matches('types', spec.type));
  return page(asked, found, presentPackage);
}

async function listBuilds(asked: Asked): Promise<unknown> {
  asked.query.allow([...places, 'states', 'package_guids']);
  const found = await asked.reader.list(kinds.build, asked.query);
  const chosen = found.filter(({ spec }) => asked.query.matches('package_guids', spec.packageRef.name));
  return page(asked, chosen, presentBuild);
}

async function listDroplets(asked: Asked): Promise<unknown> {
  asked.query.allow([...places, 'states']);
  return page(asked, (await asked.reader.list(kinds.build, asked.query)).filter(isStaged), presentDroplet);
}

/** What belongs to the app of the path. */
async function ofApp<T extends Stored<CFBuild> | Stored<CFPackage>>(
  asked: Asked,
  list: (options: { ns: string; signal: AbortSignal }) => Promise<{ items: T[] }>,
): Promise<T[]> {
  const app = await appOf(asked);
  const { items } = await list({ ns: app.metadata.namespace, signal: asked.reader.session.signal });
  return items.filter(({ spec, metadata }) => spec.appRef.name === app.metadata.name && metadata.deletionTimestamp === undefined);
}

async function packagesOfApp(asked: Asked): Promise<unknown> {
  asked.query.allow(['guids', 'states', 'types', 'label_selector']);
  const found = await ofApp(asked, (options) => asked.reader.session.cluster.list(kinds.package, options));
  return page(
    asked,
    found.filter(({ spec }) => asked.query.matches('types', spec.type)),
    presentPackage,
  );
}

async function buildsOfApp(asked: Asked): Promise<unknown> {
  asked.query.allow(['guids', 'states', 'label_selector']);
  const found = await ofApp(asked, (options) => asked.reader.session.cluster.list(kinds.build, options));
  return page(asked, found, presentBuild);
}

async function dropletsOfApp(asked: Asked): Promise<unknown> {
  const { query, reader } = asked;
  query.allow(['guids', 'states', 'current', 'label_selector']);
  const [app, found] = await Promise.all([
    query.has('current') ? appOf(asked) : undefined,
    ofApp(asked, (options) => reader.session.cluster.list(kinds.build, options)),
  ]);
  const isCurrent = ({ metadata }: Stored<CFBuild>): string => String(metadata.name === app?.spec.currentDropletRef?.name);
  return page(
    asked,
    found.filter((build) => isStaged(build) && query.matches('current', isCurrent(build))),
    presentDroplet,
  );
}

async function dropletsOfPackage(asked: Asked): Promise<unknown> {
  const { query, reader, part } = asked;
  query.allow(['guids', 'states', 'label_selector']);
  const { metadata } = await reader.find(kinds.package, 'Package', part('guid'));
  const builds = await reader.listWhole(kinds.build, [metadata.namespace]);
  return page(
    asked,
    builds.filter((build) => isStaged(build) && build.spec.packageRef.name === metadata.name),
    presentDroplet,
  );
}

async function currentBuild(asked: Asked): Promise<Stored<CFBuild>> {
  const { spec, metadata } = await appOf(asked);
  const name = spec.currentDropletRef?.name ?? '';
  const { cluster, signal } = asked.reader.session;
  const build = name === '' ? undefined : await cluster.get(kinds.build, metadata.namespace, name, signal);
  if (build === undefined) throw new V3Error('not-found', 'Droplet not found');
  return build;
}

async function currentDroplet(asked: Asked): Promise<unknown> {
  return presentDroplet(await currentBuild(asked), asked.link);
}

async function currentDropletLink(asked: Asked): Promise<unknown> {
  const { metadata } = await currentBuild(asked);
  const self = `/v3/apps/${asked.part('guid')}`;
  return {
    data: { guid: metadata.name },
    links: { self: asked.link(`${self}/relationships/current_droplet`), related: asked.link(`${self}/droplets/current`) },
  };
}

/** As `kf set-droplet`: what runs stays as it is until the app is started again. */
async function changeCurrentDroplet(asked: Asked): Promise<unknown> {
  const { guid } = fieldsOf(fieldsOf(asked.body(), ['data'])['data'], ['guid']);
  if (typeof guid !== 'string' || guid === '') throw new V3Error('unprocessable', 'Data must have the guid of a droplet');
  const app = await appOf(asked);
  await setDroplet(await asked.reader.at(app), app, guid);
  return currentDropletLink(asked);
}

async function onePackage({ reader, part, link }: Asked): Promise<unknown> {
  return presentPackage(await reader.find(kinds.package, 'Package', part('guid')), link);
}

async function oneBuild({ reader, part, link }: Asked): Promise<unknown> {
  return presentBuild(await reader.find(kinds.build, 'Build', part('guid')), link);
}

async function oneDroplet({ reader, part, link }: Asked): Promise<unknown> {
  const build = await reader.find(kinds.build, 'Droplet', part('guid'));
  if (!isStaged(build)) throw new V3Error('not-found', 'Droplet not found');
  return presentDroplet(build, link);
}

export const sourceRoutes: readonly V3Route[] = [
  get('/v3/packages', listPackages),
  get('/v3/packages/:guid', onePackage),
  get('/v3/packages/:guid/droplets', dropletsOfPackage),
  get('/v3/builds', listBuilds),
  get('/v3/builds/:guid', oneBuild),
  get('/v3/droplets', listDroplets),
  get('/v3/droplets/:guid', oneDroplet),
  get('/v3/apps/:guid/packages', packagesOfApp),
  get('/v3/apps/:guid/builds', buildsOfApp),
  get('/v3/apps/:guid/droplets', dropletsOfApp),
  get('/v3/apps/:guid/droplets/current', currentDroplet),
  get('/v3/apps/:guid/relationships/current_droplet', currentDropletLink),
  patch('/v3/apps/:guid/relationships/current_droplet', changeCurrentDroplet),
];
