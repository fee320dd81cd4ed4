// Routes, their destinations, and domains.

import type { Stored } from '../api/object.ts';
import type { CFDomain, CFRoute } from '../api/types.generated.ts';
import { identityOf, metadataOf, toOne, type LinkTo, type V3Resource } from './resource.ts';

function destinationsOf({ spec, status }: Stored<CFRoute>): Record<string, unknown>[] {
  // The controller chooses the port of a destination without one.
  const chosen = new Map(status?.destinations?.map(({ guid, port }) => [guid, port]));
  return (spec.destinations ?? []).map(({ guid, appRef, processType, port = chosen.get(guid), protocol = 'http1' }) => ({
    guid,
    app: { guid: appRef.name, process: { type: processType } },
    weight: null,
    port: port ?? null,
    protocol,
  }));
}

/** @param domain the name of the route's domain */
export function presentRoute(route: Stored<CFRoute>, domain: string, link: LinkTo): V3Resource {
  const { spec, metadata } = route;
  const { host = '', path = '', protocol = 'http' } = spec;
  const self = `/v3/routes/${metadata.name}`;
  return {
    ...identityOf(route),
    protocol,
    host,
    path,
    port: null,
    url: `${host === '' ? '' : `${host.toLowerCase()}.`}${domain}${path}`,
    destinations: destinationsOf(route),
    options: {},
    relationships: { space: toOne(metadata.namespace), domain: toOne(spec.domainRef.name) },
    metadata: metadataOf(route),
    links: {
      self: link(self),
      space: link(`/v3/spaces/${metadata.namespace}`),
      destinations: link(`${self}/destinations`),
      domain: link(`/v3/domains/${spec.domainRef.name ?? ''}`),
    },
  };
}

export function presentDestinations(route: Stored<CFRoute>, link: LinkTo): Record<string, unknown> {
  const self = `/v3/routes/${route.metadata.name}`;
  return { destinations: destinationsOf(route), links: { self: link(`${self}/destinations`), route: link(self) } };
}

/** @param spaces their GUIDs */
export function presentSharedSpaces(route: string, spaces: readonly string[], link: LinkTo): Record<string, unknown> {
  return {
    data: spaces.map((guid) => ({ guid })),
    links: { self: link(`/v3/routes/${route}/relationships/shared_spaces`) },
  };
}

/** A domain: of all orgs, or of one, which may share it with others. */
export function presentDomain(domain: Stored<CFDomain>, link: LinkTo): V3Resource {
  return {
    ...identityOf(domain),
    name: domain.spec.name,
    internal: domain.spec.internal === true,
    router_group: null,
    supported_protocols: ['http'],
    relationships: {
      organization: toOne(domain.spec.org),
      shared_organizations: { data: (domain.spec.sharedWith ?? []).map((guid) => ({ guid })) },
    },
    metadata: metadataOf(domain),
    links: { self: link(`/v3/domains/${domain.metadata.name}`) },
  };
}
