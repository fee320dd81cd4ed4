// The HTTPRoute of the Gateway API, reduced to the fields that kf writes or reads.
// Source: https://gateway-api.sigs.k8s.io/reference/spec/

import { isIssued } from './cert-manager.ts';
import { reasons } from './group.ts';
import type { HttpsSettings } from './kf-info.ts';
import { resource } from './object.ts';
import type { Condition, KubeObject } from './object.ts';
import type { CFDomain } from './types.generated.ts';

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
  /** Left out: that of the HTTPRoute. */
  namespace?: string;
  port: number;
  weight?: number;
}

export interface RouteFilter {
  type: 'ResponseHeaderModifier' | 'RequestHeaderModifier' | 'RequestRedirect';
  requestRedirect?: { scheme?: 'https'; port?: number; hostname?: string; statusCode?: number };
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

export interface Listener {
  name: string;
  hostname?: string;
  port: number;
  protocol: string;
  allowedRoutes?: { namespaces?: { from?: string; selector?: unknown } };
  tls?: { mode?: string; certificateRefs?: { group?: string; kind?: string; namespace?: string; name: string }[] };
}

export interface Gateway extends KubeObject {
  spec?: { gatewayClassName?: string; listeners?: Listener[] };
  status?: { listeners?: { name: string; conditions?: Condition[] }[] };
}

export const gatewayType = resource<Gateway>('gateway.networking.k8s.io', 'v1', 'Gateway', 'gateways');

/** Lets routes of another namespace lead to a Service of this one. */
export interface ReferenceGrant extends KubeObject {
  spec?: { from: { group: string; kind: string; namespace: string }[]; to: { group: string; kind: string; name?: string }[] };
}

export const referenceGrantType = resource<ReferenceGrant>('gateway.networking.k8s.io', 'v1beta1', 'ReferenceGrant', 'referencegrants');

export const httpRouteType = resource<HttpRoute>('gateway.networking.k8s.io', 'v1', 'HTTPRoute', 'httproutes');

/** Listeners of the Gateway that setup makes: for http, for https, and for the https of a domain whose certificate the operator or cert-manager gives. */
export const listeners = { http: 'http-apps', https: 'https-apps', httpsOf: (domain: string) => `https-${domain}` } as const;

/** True when requests for hosts of the domain are redirected from http to https, and not all requests are. */
export function isRedirected(domain: CFDomain | undefined, https: HttpsSettings | undefined): https is HttpsSettings {
  return domain?.spec.httpRedirect === true && domain.spec.internal !== true && https !== undefined && https.redirect !== true;
}

/** The listeners for https that take requests for the domain. */
export function httpsListenersOf(domain: CFDomain, { secrets, issuer }: HttpsSettings): string[] {
  const name = domain.spec.name.replace(/\.$/, '');
  const hasOwn = secrets.some((secret) => secret.domain === name) || (issuer !== undefined && isIssued(domain));
  return [listeners.https, ...(hasOwn ? [listeners.httpsOf(name)] : [])];
}

/** Header of a request that asks which form of a route the gateway has loaded. The gateway answers it itself: no app sees it. */
export const revisionHeader = 'kf-route-revision';

/** Such a request is redirected to an address below this name, which nobody can register (RFC 6761). */
const revisionDomain = 'loaded.kf.invalid';

/** The rule with which the gateway reports its form of a route. */
export function revisionRule(revision: string, paths: readonly RouteMatch[]): RouteRule {
  return {
    matches: paths.map((path) => ({ ...path, headers: [{ type: 'Exact', name: revisionHeader, value: '?' }] })),
    filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: `${revision}.${revisionDomain}`, statusCode: 302 } }],
  };
}

function revisionOfHost(host: string | undefined): string | undefined {
  return host?.endsWith(`.${revisionDomain}`) === true ? host.slice(0, -revisionDomain.length - 1) : undefined;
}

/** The revision in the Location of a gateway's answer. */
export function revisionOfAnswer(location: string | undefined): string | undefined {
  // Traefik leaves out the scheme (`//host/path`).
  const base = 'http://none.invalid';
  return location !== undefined && URL.canParse(location, base) ? revisionOfHost(new URL(location, base).hostname) : undefined;
}

/** The present form of a route; undefined for one that kf 0.1.0 wrote. */
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

/**
 * True when a route's condition `Programmed` says that the gateway has loaded this revision, or that something else answers in its place, so that there
 * is nothing to wait for. A statement about another revision, or that the gateway still has an earlier one, does not count.
 */
export function isLoaded(programmed: Condition | undefined, revision: string): boolean {
  if (programmed === undefined || !isAboutRevision(programmed.message, revision)) return false;
  return programmed.status === 'True' || programmed.reason === reasons.notAnswered;
}

/** All backends of the route, of requests with and without kf's headers. */
export const backendsIn = (route: HttpRoute | undefined): BackendReference[] =>
  (route?.spec?.rules ?? []).flatMap(({ backendRefs = [] }) => backendRefs);

/** The backends of requests without kf's headers. */
export function mainBackends(route: HttpRoute | undefined): BackendReference[] {
  const main = (route?.spec?.rules ?? []).filter(({ matches = [] }) => matches.every(({ headers }) => headers === undefined));
  return main.flatMap(({ backendRefs = [] }) => backendRefs).filter(({ weight = 1 }) => weight > 0);
}
