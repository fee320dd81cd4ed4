// `domains`, `routes`, `route`.

import type { DomainSummary, RouteDetails, RouteSummary } from '../api/results.ts';
import { line, pairs, table, type Block, type Cell } from './block.ts';

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

/** A certificate with less time left was not renewed: kf and others do it earlier. */
const shortMs = 21 * 24 * 3_600_000;

/** What certificates the domains have and which are redirected to https, which cf does not print, and which certificates end soon. */
export function certificateLines(domains: readonly DomainSummary[], now: number): { lines: string[]; warnings: string[] } {
  const known = domains.flatMap(({ name, certificate }) => (certificate === undefined ? [] : [{ name, ...certificate }]));
  const isShort = ({ notAfter }: { notAfter: string }): boolean => Date.parse(notAfter) - now < shortMs;
  const redirected = domains.filter(({ httpRedirect }) => httpRedirect === true);
  return {
    lines: [
      ...known.map(({ name, issuer, notAfter }) => `Certificate of ${name}: by ${issuer}, valid until ${notAfter.slice(0, 10)}`),
      ...redirected.map(({ name }) => `Requests to ${name} with http are redirected to https`),
    ],
    warnings: [
      ...domains.flatMap(({ certificateProblem: problem }) =>
        problem === undefined ? [] : [`${problem} Meanwhile the gateway shows a certificate of kf.`],
      ),
      ...known
        .filter(isShort)
        .map(({ name, notAfter }) => `The certificate of ${name} ends on ${notAfter.slice(0, 10)} and was not renewed.`),
    ],
  };
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
  const rows = routes.map(({ space, host, domain, path, protocol, appProtocols, apps }): Cell[] => [
    space,
    host,
    domain,
    '',
    path,
    protocol,
    appProtocols.join(', '),
    '',
    apps.join(', '),
    '',
    '',
  ]);
  return [table(routeHeader, rows), ...problemsOf(routes)];
}

function problemsOf(routes: readonly RouteSummary[]): Block[] {
  const problems = routes.flatMap(({ url, problem }) => (problem === undefined ? [] : [line(`${url}: ${problem}`)]));
  return problems.length === 0 ? [] : [line(), ...problems];
}

/** cf leaves the cells of a missing port, and of the options that kf does not have, empty. */
export function renderRoute(route: RouteDetails): Block[] {
  const { domain, host, path, protocol, destinations } = route;
  const rows = destinations.map(({ app, process, port, protocol: spoken }): Cell[] => [app, process, String(port ?? ''), spoken]);
  const header = ['app', 'process', 'port', 'app-protocol'];
  const listed: Block[] = rows.length === 0 ? [] : [{ type: 'table', header: false, indent: '\t', rows: [header, ...rows] }];
  return [
    pairs(['domain:', domain], ['host:', host], ['port:', ''], ['path:', path], ['protocol:', protocol], ['options:', '']),
    line(),
    line('Destinations:'),
    ...listed,
    ...problemsOf([route]),
  ];
}
