// `target`, `orgs`, `spaces`, `domains`, `routes`: short lists and rows.

import type { DomainSummary, PlaceSummary, RouteSummary, TargetDetails } from '../api/results.ts';
import { line, pairs, table, type Block, type Cell } from './block.ts';

export function renderTarget(target: TargetDetails, bin: string): Block[] {
  const rows: [string, string][] = [
    ['API endpoint:', target.endpoint],
    ['API version:', target.apiVersion],
    ['user:', target.user],
  ];
  if (target.org !== undefined) rows.push(['org:', target.org.name]);
  if (target.space !== undefined) rows.push(['space:', target.space.name]);
  rows.push(['context:', target.context]);
  if (target.org === undefined) return [pairs(...rows), line(`No org or space targeted, use '${bin} target -o ORG -s SPACE'`)];
  if (target.space === undefined) return [pairs(...rows), line(`No space targeted, use '${bin} target -s SPACE'`)];
  return [pairs(...rows)];
}

/** @param none cf's text when there are none */
export function renderNames(places: readonly PlaceSummary[], none: string): Block[] {
  return places.length === 0
    ? [line(none)]
    : [
        table(
          ['name'],
          places.map(({ name }) => [name]),
        ),
      ];
}

export function renderDomains(domains: readonly DomainSummary[]): Block[] {
  if (domains.length === 0) return [line('No domains found.')];
  const rows = domains.map(({ name, availability, internal, protocols }): Cell[] => [
    name,
    availability,
    internal ? 'true' : '',
    protocols.join(', '),
  ]);
  return [table(['name', 'availability', 'internal', 'protocols'], rows)];
}

const routeHeader = [
  'space',
  'host',
  'domain',
  'port',
  'path',
  'protocol',
  'app-protocol',
  'app-port',
  'apps',
  'service instance',
  'options',
];

export function renderRoutes(routes: readonly RouteSummary[]): Block[] {
  if (routes.length === 0) return [line('No routes found.')];
  const rows = routes.map(({ space, host, domain, path, protocol, apps }): Cell[] => {
    const appProtocol = apps.length === 0 ? '' : 'http1';
    return [space, host, domain, '', path, protocol, appProtocol, '', apps.join(', '), '', ''];
  });
  const problems = routes.flatMap(({ url, problem }) => (problem === undefined ? [] : [line(`${url}: ${problem}`)]));
  return [table(routeHeader, rows), ...(problems.length === 0 ? [] : [line(), ...problems])];
}
