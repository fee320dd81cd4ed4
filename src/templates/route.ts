// CFRoute and its destinations.

import { isFreeForEveryHost } from '../lib/api/domains.ts';
import { annotations, kinds } from '../lib/api/group.ts';
import { appGuidsOf } from '../lib/api/names.ts';
import type { CFDomain, CFRoute, RouteDestination, RouteOwner } from '../lib/api/types.generated.ts';
import { assemble } from './metadata.ts';
import type { Authorship } from './metadata.ts';
import { defined } from '../lib/defined.ts';

export interface DestinationInput {
  guid: string;
  appGuid: string;
  /** Default: web. */
  processType?: string | undefined;
  /** Default: the controller uses the droplet's first port, otherwise 8080. */
  port?: number | undefined;
  /** What the gateway speaks to the app. Default: http1. */
  protocol?: RouteDestination['protocol'];
}

export function buildDestination({ guid, appGuid, processType = 'web', port, protocol = 'http1' }: DestinationInput): RouteDestination {
  return { guid, appRef: { name: appGuid }, processType, protocol, ...defined({ port }) };
}

export interface RouteInput {
  guid: string;
  namespace: string;
  host: string;
  /** With its leading slash; empty or left out: none. */
  path?: string | undefined;
  domain: CFDomain;
  /** GUID of the space's org; left out: not known. */
  org?: string | undefined;
  destinations?: RouteDestination[];
  /** The route of another space that has this address. */
  sharedFrom?: RouteOwner | undefined;
}

export function buildRoute(input: RouteInput, author: Authorship): CFRoute {
  const { domain, path } = input;
  const spec = {
    host: input.host,
    ...(path === undefined || path === '' ? {} : { path }),
    protocol: 'http' as const,
    domainRef: defined({ name: domain.metadata.name, namespace: domain.metadata.namespace }),
    destinations: input.destinations ?? [],
    ...defined({ sharedFrom: input.sharedFrom }),
  };
  // Only an operator may set this; for all others the API server rejects the route. On a domain of the org it is not needed.
  const wildcard = input.host === '*' && !isFreeForEveryHost(domain, input.org, path) ? { [annotations.wildcard]: 'allowed' } : {};
  const notes = { [annotations.appGuids]: appGuidsOf({ metadata: {}, spec }), ...wildcard };
  return assemble(kinds.route, {
    metadata: { name: input.guid, namespace: input.namespace, annotations: notes },
    body: { spec },
    author,
  });
}
