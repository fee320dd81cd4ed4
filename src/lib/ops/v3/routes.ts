// Routes, their destinations, and domains.

import { isUsableBy } from '../../api/domains.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentDestinations, presentDomain, presentRoute } from '../../v3/routes.ts';
import { assertMetadata, type MetadataChange } from '../apps/metadata.ts';
import { changeMetadataOf } from '../labels.ts';
import { listDomainObjects } from '../find.ts';
import { deleteKnownRoute } from '../routes/delete.ts';
import { urlOf } from '../routes/routes.ts';
import { fieldsOf, metadataIn } from './body.ts';
import { oneWithIncluded, withIncluded } from './included.ts';
import { deletionOf } from './jobs.ts';
import { get, patch, remove, type Asked, type V3Route } from './request.ts';

const includes = ['domain', 'space', 'space.organization'];
const filters = ['hosts', 'paths', 'domain_guids', 'app_guids', 'label_selector'];

async function domainNames({ reader }: Asked): Promise<(guid: string | undefined) => string> {
  const names = new Map((await listDomainObjects(reader.session)).map(({ metadata, spec }) => [metadata.name, spec.name]));
  return (guid) => names.get(guid ?? '') ?? '';
}

const appsOf = ({ spec }: CFRoute): string[] => (spec.destinations ?? []).map(({ appRef }) => appRef.name);

/** The page of the routes that fit the filters. */
async function pageOfRoutes(asked: Asked, routes: readonly Stored<CFRoute>[]): Promise<unknown> {
  const { query, link } = asked;
  const nameOf = await domainNames(asked);
  const found = routes.filter(
    (route) =>
      query.matches('guids', route.metadata.name) &&
      query.matches('hosts', route.spec.host ?? '') &&
      query.matches('paths', route.spec.path ?? '') &&
      query.matches('domain_guids', route.spec.domainRef.name) &&
      query.matches('app_guids', ...appsOf(route)) &&
      query.matchesLabels(route),
  );
  const resources = found.map((route) => presentRoute(route, nameOf(route.spec.domainRef.name), link));
  return withIncluded(asked, pageOf(resources, query, link), includes);
}

async function listRoutes(asked: Asked): Promise<unknown> {
  asked.query.allow([...filters, 'guids', 'space_guids', 'organization_guids', 'include']);
  return pageOfRoutes(asked, await asked.reader.list(kinds.route, asked.query));
}

async function routesOfApp(asked: Asked): Promise<unknown> {
  const { reader, query, part } = asked;
  query.allow([...filters, 'guids', 'include']);
  const app = await reader.find(kinds.app, 'App', part('guid'));
  const { cluster, signal } = reader.session;
  const { items } = await cluster.list(kinds.route, { ns: app.metadata.namespace, signal });
  return pageOfRoutes(
    asked,
    items.filter((route) => appsOf(route).includes(app.metadata.name)),
  );
}

const routeOf = ({ reader, part }: Asked): Promise<Stored<CFRoute>> => reader.find(kinds.route, 'Route', part('guid'));

async function oneRoute(asked: Asked): Promise<unknown> {
  asked.query.allow(['include'], { isList: false });
  const [route, nameOf] = await Promise.all([routeOf(asked), domainNames(asked)]);
  return oneWithIncluded(asked, presentRoute(route, nameOf(route.spec.domainRef.name), asked.link), includes);
}

async function destinations(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  return presentDestinations(await routeOf(asked), asked.link);
}

/** The metadata that a request changes. */
function metadataAsked(asked: Asked): MetadataChange {
  const change = metadataIn(fieldsOf(asked.body(), ['metadata'])['metadata']);
  assertMetadata(change);
  return change;
}

async function changeRoute(asked: Asked): Promise<unknown> {
  const change = metadataAsked(asked);
  const [object, nameOf] = await Promise.all([routeOf(asked), domainNames(asked)]);
  const route = await changeMetadataOf(asked.reader.session, { type: kinds.route, object, what: 'The route' }, change);
  return presentRoute(route, nameOf(route.spec.domainRef.name), asked.link);
}

/** As `kf delete-route` deletes it: when this ends, the gateway sends no more requests for it to apps. */
async function removeRoute(asked: Asked): Promise<unknown> {
  const route = await routeOf(asked);
  const [session, nameOf] = await Promise.all([asked.reader.at(route), domainNames(asked)]);
  const { host = '', path = '', domainRef } = route.spec;
  await deleteKnownRoute(session, route, urlOf({ host, path, domain: nameOf(domainRef.name) }));
  return deletionOf('route', route.metadata.name, asked.link);
}

/** @param org left out: the domains of all orgs */
async function pageOfDomains({ reader, query, link }: Asked, org?: string): Promise<unknown> {
  query.allow(['names', 'guids', 'organization_guids', 'label_selector']);
  const found = (await listDomainObjects(reader.session)).filter(
    (domain) =>
      query.matches('names', domain.spec.name) &&
      query.matches('guids', domain.metadata.name) &&
      query.matches('organization_guids', domain.spec.org) &&
      (org === undefined || isUsableBy(domain, org)) &&
      query.matchesLabels(domain),
  );
  return pageOf(
    found.map((domain) => presentDomain(domain, link)),
    query,
    link,
  );
}

const listDomains = (asked: Asked): Promise<unknown> => pageOfDomains(asked);

async function oneDomain({ reader, part, link }: Asked): Promise<unknown> {
  const found = (await listDomainObjects(reader.session)).find(({ metadata }) => metadata.name === part('guid'));
  if (found === undefined) throw new V3Error('not-found', 'Domain not found');
  return presentDomain(found, link);
}

async function changeDomain(asked: Asked): Promise<unknown> {
  const change = metadataAsked(asked);
  const { session } = asked.reader;
  const object = (await listDomainObjects(session)).find(({ metadata }) => metadata.name === asked.part('guid'));
  if (object === undefined) throw new V3Error('not-found', 'Domain not found');
  return presentDomain(await changeMetadataOf(session, { type: kinds.domain, object, what: 'The domain' }, change), asked.link);
}

/** Those that all orgs share, those of the org, and those that others share with it. */
async function domainsOfOrg(asked: Asked): Promise<unknown> {
  await asked.reader.org(asked.part('guid'));
  return pageOfDomains(asked, asked.part('guid'));
}

async function defaultDomain(asked: Asked): Promise<unknown> {
  await asked.reader.org(asked.part('guid'));
  const [info, domains] = await Promise.all([asked.reader.session.info(), listDomainObjects(asked.reader.session)]);
  const found =
    domains.find(({ spec }) => spec.name === info.defaultDomain) ??
    domains.find((domain) => domain.spec.internal !== true && isUsableBy(domain, asked.part('guid')));
  if (found === undefined) throw new V3Error('not-found', 'Domain not found');
  return presentDomain(found, asked.link);
}

export const routeRoutes: readonly V3Route[] = [
  get('/v3/routes', listRoutes),
  get('/v3/routes/:guid', oneRoute),
  get('/v3/routes/:guid/destinations', destinations),
  patch('/v3/routes/:guid', changeRoute),
  remove('/v3/routes/:guid', removeRoute),
  get('/v3/apps/:guid/routes', routesOfApp),
  get('/v3/domains', listDomains),
  get('/v3/domains/:guid', oneDomain),
  patch('/v3/domains/:guid', changeDomain),
  get('/v3/organizations/:guid/domains', domainsOfOrg),
  get('/v3/organizations/:guid/domains/default', defaultDomain),
];
