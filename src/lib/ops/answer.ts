// Whether a freshly pushed app answers from where the CLI runs. Information only: the controller has judged already, inside the cluster.

import type { KfInfo } from '../api/kf-info.ts';
import { reachThroughGateway, urlOf } from './reach.ts';

/** Longer, and a person would rather open the URL. */
const patienceMs = 2000;

export interface RouteAnswer {
  url: string;
  /** Any HTTP status; left out when there was no answer. */
  status?: number;
  /** Why there was none, for a sentence. */
  problem?: string;
}

/** GETs an app's route (host, domain and path) through the gateway's outside address; undefined when the installation names none. */
export async function askRoute({ gateway }: KfInfo, route: string): Promise<RouteAnswer | undefined> {
  if (gateway.externalUrl === undefined) return undefined;
  const slash = route.indexOf('/');
  const [host, path] = slash === -1 ? [route, '/'] : [route.slice(0, slash), route.slice(slash)];
  const url = urlOf(gateway.externalUrl, host) + (path === '/' ? '' : path);
  if (host.startsWith('*')) return undefined;
  const reached = await reachThroughGateway(gateway.externalUrl, host, path, patienceMs);
  return reached.ok ? { url, status: reached.status } : { url, problem: reached.message };
}
