// Checks whether a newly pushed app answers from the machine of the CLI. This is only information: the controller has already checked it inside
// the cluster.

import { webProcess } from '../../api/app.ts';
import { revisionHeader, revisionOfAnswer } from '../../api/gateway.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { AppDetails } from '../../api/results.ts';
import { internalDomain } from '../../../templates/internal-domain.ts';
import { reachThroughGateway, urlOf } from './http-probe.ts';

/** After this time a user would rather open the URL. */
const patienceMs = 2000;

export interface RouteAnswer {
  url: string;
  /** The gateway answered for this route. The controller has requested the app before, so this does not do it again. */
  reachable: boolean;
  /** Nobody has requested the app: its health check is only that its process runs. */
  unchecked?: true;
  /** The status of an answer that did not come from the route's gateway. */
  status?: number;
  /** Why there was no answer, for a sentence. */
  problem?: string;
}

/** Names of the internal domain are for apps only: the gateway does not know them. */
function isInternal(route: string): boolean {
  const [host = ''] = route.split('/');
  return host.endsWith(`.${internalDomain}`);
}

/** The first route to the outside of an app with wanted instances, and what is known about the answer beforehand. */
export function routeToAsk({ state, routes, processes }: AppDetails): { route: string; about: Pick<RouteAnswer, 'unchecked'> } | undefined {
  const route = routes.find((one) => !isInternal(one));
  const web = processes.find(({ type }) => type === webProcess);
  if (route === undefined || state !== 'started' || web === undefined || web.instances === 0) return undefined;
  return { route, about: web.healthCheck === 'process' ? { unchecked: true } : {} };
}

/** True for an address of the host with https. */
function isSecureAddress(location: string | undefined, host: string): boolean {
  if (location === undefined || !URL.canParse(location)) return false;
  const { protocol, hostname } = new URL(location);
  return protocol === 'https:' && hostname === host;
}

/**
 * Asks the gateway at its outside address for a route (host, domain and path); undefined when the installation has no such address. The request
 * does not reach an app.
 */
export async function askRoute(info: KfInfo, route: string): Promise<RouteAnswer | undefined> {
  const { gateway } = info;
  if (gateway.externalUrl === undefined) return undefined;
  const slash = route.indexOf('/');
  const [host, path] = slash === -1 ? [route, '/'] : [route.slice(0, slash), route.slice(slash)];
  const url = urlOf(gateway.externalUrl, host) + (path === '/' ? '' : path);
  if (host.startsWith('*')) return undefined;
  const reached = await reachThroughGateway(gateway.externalUrl, host, path, patienceMs, { headers: { [revisionHeader]: '?' } });
  if (!reached.ok) return { url, reachable: false, problem: reached.message };
  const { https, externalUrl } = gateway;
  if (https !== undefined && externalUrl.scheme === 'http' && isSecureAddress(reached.location, host)) {
    // The domain's requests with http are redirected.
    return askRoute({ ...info, gateway: { ...gateway, externalUrl: { ...externalUrl, scheme: 'https', port: https.port } } }, route);
  }
  return revisionOfAnswer(reached.location) === undefined ? { url, reachable: false, status: reached.status } : { url, reachable: true };
}
