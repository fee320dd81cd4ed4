// HTTPRoute of the Gateway API as the wire carries it, cut down to the fields that kf writes or reads.
// Source: https://gateway-api.sigs.k8s.io/reference/spec/

import { resource } from './object.ts';
import type { Condition, KubeObject } from './object.ts';

export interface ParentReference {
  group?: string;
  kind?: string;
  namespace?: string;
  name: string;
  sectionName?: string;
}

export interface RouteMatch {
  path?: { type: 'PathPrefix' | 'Exact' | 'RegularExpression'; value: string };
  headers?: { type?: 'Exact'; name: string; value: string }[];
}

export interface BackendReference {
  group?: string;
  kind?: string;
  name: string;
  port: number;
  weight?: number;
}

export interface RouteFilter {
  type: 'ResponseHeaderModifier' | 'RequestHeaderModifier' | 'RequestRedirect';
  requestRedirect?: { hostname?: string; statusCode?: number };
  responseHeaderModifier?: { set?: { name: string; value: string }[]; add?: { name: string; value: string }[]; remove?: string[] };
  requestHeaderModifier?: { set?: { name: string; value: string }[]; add?: { name: string; value: string }[]; remove?: string[] };
}

export interface RouteRule {
  matches?: RouteMatch[];
  filters?: RouteFilter[];
  backendRefs?: BackendReference[];
}

export interface HttpRoute extends KubeObject {
  spec?: { parentRefs?: ParentReference[]; hostnames?: string[]; rules?: RouteRule[] };
  status?: { parents?: { parentRef: ParentReference; controllerName?: string; conditions?: Condition[] }[] };
}

export const httpRouteType = resource<HttpRoute>('gateway.networking.k8s.io', 'v1', 'HTTPRoute', 'httproutes');

/** Header by which a request asks which form of a route the gateway has loaded. The gateway answers by itself: no app sees it. */
export const revisionHeader = 'kf-route-revision';

/** Below this name, which nobody can have (RFC 6761), lie the addresses that such a request is redirected to. */
const revisionDomain = 'loaded.kf.invalid';

/** The rule by which the gateway tells a form of a route. */
export function revisionRule(revision: string, paths: readonly RouteMatch[]): RouteRule {
  return {
    matches: paths.map((path) => ({ ...path, headers: [{ type: 'Exact', name: revisionHeader, value: '?' }] })),
    filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: `${revision}.${revisionDomain}`, statusCode: 302 } }],
  };
}

function revisionOfHost(host: string | undefined): string | undefined {
  return host?.endsWith(`.${revisionDomain}`) === true ? host.slice(0, -revisionDomain.length - 1) : undefined;
}

/** The revision that a gateway's answer names in its Location. */
export function revisionOfAnswer(location: string | undefined): string | undefined {
  // Traefik leaves the scheme out (`//host/path`).
  const base = 'http://none.invalid';
  return location !== undefined && URL.canParse(location, base) ? revisionOfHost(new URL(location, base).hostname) : undefined;
}

/** The form that a route has now; undefined for one that kf 0.1.0 wrote. */
export function revisionOf(route: HttpRoute | undefined): string | undefined {
  const filters = (route?.spec?.rules ?? []).flatMap((rule) => rule.filters ?? []);
  return revisionOfHost(filters.find(({ type }) => type === 'RequestRedirect')?.requestRedirect?.hostname);
}

/**
 * True when a message of the route's condition `Programmed` is about this revision. The controller ends each such message with the revision; the CLI and
 * the rollout compare it with the revision that the HTTPRoute has now.
 */
export function isAboutRevision(message: string, revision: string): boolean {
  return message.endsWith(`${revision}.`);
}

/** Where requests without a header of kf's go. */
export function mainBackends(route: HttpRoute | undefined): BackendReference[] {
  const main = (route?.spec?.rules ?? []).filter(({ matches = [] }) => matches.every(({ headers }) => headers === undefined));
  return main.flatMap(({ backendRefs = [] }) => backendRefs).filter(({ weight = 1 }) => weight > 0);
}
