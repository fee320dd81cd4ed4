// Lists domains and routes, and shows one route with its destinations.

import { issueProblem } from '../../api/cert-manager.ts';
import { findCondition } from '../../api/conditions.ts';
import { isPrivate } from '../../api/domains.ts';
import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { DomainSummary, RouteDetails, RouteSummary } from '../../api/results.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { OrgSession, Session, SpaceSession } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { listSpaces } from '../../session/places.ts';
import { findDomain, listDomainObjects, usableDomains } from '../find.ts';
import { appNames } from '../rows.ts';
import { protocolOf } from './destinations.ts';
import { isLive, otherHolder } from './holders.ts';
import { noRouteText, routesAt, urlOf, type RouteAddress } from './routes.ts';

/** The domains that the targeted org may use, by name. @param labels a label selector */
export async function listDomains(session: Session, labels?: string): Promise<DomainSummary[]> {
  const domains = await usableDomains(session, labels);
  return domains
    .map((domain) => ({ domain, ...domain }))
    .map(({ domain, metadata, spec, status }): DomainSummary => ({
      name: spec.name,
      guid: metadata.name,
      availability: isPrivate(domain) ? 'private' : 'shared',
      internal: spec.internal === true,
      protocols: ['http'],
      ...(spec.httpRedirect === true ? { httpRedirect: true as const } : {}),
      ...defined({ certificate: status?.certificate, certificateProblem: issueProblem(domain) }),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function problemOf(route: Stored<CFRoute>): string | undefined {
  const failed = [findCondition(route, 'Claimed'), findCondition(route, 'Ready')].find((condition) => condition?.status === 'False');
  return failed?.message;
}

interface Names {
  space: string;
  domain: string;
  /** Names of the space's apps by GUID. */
  apps: ReadonlyMap<string, string>;
}

function summaryOf(route: Stored<CFRoute>, { space, domain, apps }: Names): RouteSummary {
  const { host = '', path = '', protocol = 'http', destinations = [] } = route.spec;
  const problem = problemOf(route);
  return {
    guid: route.metadata.name,
    space,
    host,
    domain,
    path,
    protocol,
    appProtocols: [...new Set(destinations.map(protocolOf))].toSorted(),
    apps: [...new Set(destinations.flatMap(({ appRef }) => apps.get(appRef.name) ?? []))].toSorted(),
    url: urlOf({ host, domain, path }),
    ...defined({ problem }),
  };
}

type Domains = ReadonlyMap<string | undefined, string>;

async function domainNames(session: Session): Promise<Domains> {
  return new Map((await listDomainObjects(session)).map(({ metadata, spec }) => [metadata.name, spec.name]));
}

async function routesOfSpace(
  { cluster, signal, bin }: Session,
  space: NameAndGuid,
  domains: Promise<Domains>,
  labelSelector: string | undefined,
): Promise<RouteSummary[]> {
  const [routes, apps, names] = await Promise.all([
    cluster.list(kinds.route, { ns: space.guid, signal, ...defined({ labelSelector }) }),
    appNames({ cluster, signal, bin, space }),
    domains,
  ]);
  return routes.items
    .filter((route) => route.metadata.deletionTimestamp === undefined)
    .map((route) => summaryOf(route, { space: space.name, domain: names.get(route.spec.domainRef.name) ?? '', apps }))
    .toSorted((a, b) => (a.url < b.url ? -1 : 1));
}

/** The space's routes by URL, with the apps behind each. @param labels a label selector */
export function listRoutes(session: SpaceSession, labels?: string): Promise<RouteSummary[]> {
  return routesOfSpace(session, session.space, domainNames(session), labels);
}

export interface OrgRoutes {
  routes: RouteSummary[];
  /** Names of the spaces whose routes the caller may not list. */
  hidden: string[];
}

/** The routes of all spaces of the org, by space and URL. @param labels a label selector */
export async function listOrgRoutes(session: OrgSession, labels?: string): Promise<OrgRoutes> {
  const [spaces, { default: pLimit }] = await Promise.all([listSpaces(session, session.org), import('p-limit')]);
  const domains = domainNames(session);
  const found = await pLimit(parallelSpaces).map(spaces, (space) =>
    routesOfSpace(session, space, domains, labels).catch((error: unknown) => {
      if (isForbidden(error)) return undefined;
      throw error;
    }),
  );
  return {
    routes: found.flatMap((routes) => routes ?? []),
    hidden: spaces.filter((_, index) => found[index] === undefined).map(({ name }) => name),
  };
}

/** Each needs two requests. */
const parallelSpaces = 5;

/** The space's route with this address. @throws KfError `not-found` in cf's words; it names another space that has the host */
export async function showRoute(session: SpaceSession, address: RouteAddress): Promise<RouteDetails> {
  const domain = await findDomain(session, address.domain);
  const [present, apps] = await Promise.all([routesAt(session, domain, address), appNames(session)]);
  const alive = present.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const route = alive.find(isLive) ?? alive[0];
  if (route === undefined) {
    const other = await otherHolder(session, { ...address, domain });
    throw new KfError('not-found', noRouteText({ ...address, domain: domain.spec.name }), {
      hints: [...(other === undefined ? [] : [`${other} has this host, with all its paths.`]), `${session.bin} routes`],
    });
  }
  const effective = new Map(route.status?.destinations?.map(({ guid, port }) => [guid, port]));
  const destinations = (route.spec.destinations ?? []).map(
    ({ guid, appRef, processType, port = effective.get(guid), protocol = 'http1' }) => ({
      app: apps.get(appRef.name) ?? '',
      process: processType,
      protocol,
      ...defined({ port }),
    }),
  );
  return { ...summaryOf(route, { space: session.space.name, domain: domain.spec.name, apps }), destinations };
}
