// Whether a freshly pushed app answers from where the CLI runs. Information only: the controller has judged already, inside the cluster.

import { webProcess } from '../../api/app.ts';
import { revisionHeader, revisionOfAnswer } from '../../api/gateway.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import type { AppDetails } from '../../api/results.ts';
import { reachThroughGateway, urlOf } from './http-probe.ts';

/** Longer, and a person would rather open the URL. */
const patienceMs = 2000;

export interface RouteAnswer {
  url: string;
  /** The gateway answered for this very route. The app was asked by the controller before; it need not be asked again. */
  reachable: boolean;
  /** Nobody has asked the app: its health check is that its process runs. */
  unchecked?: true;
  /** What something else than the route's gateway answered. */
  status?: number;
  /** Why there was none, for a sentence. */
  problem?: string;
}

/** The first route of an app of which an instance shall answer, and what is known of the answer beforehand. */
export function routeToAsk({ state, routes, processes }: AppDetails): { route: string; about: Pick<RouteAnswer, 'unchecked'> } | undefined {
  const [route] = routes;
  const web = processes.find(({ type }) => type === webProcess);
  if (route === undefined || state !== 'started' || web === undefined || web.instances === 0) return undefined;
  return { route, about: web.healthCheck === 'process' ? { unchecked: true } : {} };
}

/** Asks the gateway at its outside address for a route (host, domain and path); undefined when the installation names none. No app sees the request. */
export async function askRoute({ gateway }: KfInfo, route: string): Promise<RouteAnswer | undefined> {
  if (gateway.externalUrl === undefined) return undefined;
  const slash = route.indexOf('/');
  const [host, path] = slash === -1 ? [route, '/'] : [route.slice(0, slash), route.slice(slash)];
  const url = urlOf(gateway.externalUrl, host) + (path === '/' ? '' : path);
  if (host.startsWith('*')) return undefined;
  const reached = await reachThroughGateway(gateway.externalUrl, host, path, patienceMs, { [revisionHeader]: '?' });
  if (!reached.ok) return { url, reachable: false, problem: reached.message };
  return revisionOfAnswer(reached.location) === undefined ? { url, reachable: false, status: reached.status } : { url, reachable: true };
}
