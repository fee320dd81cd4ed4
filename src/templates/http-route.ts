// The HTTPRoute of a CFRoute: weights of the generations, and one rule per generation for the controller's probes.

import type { Stored } from '../lib/api/object.ts';
import { createHash } from 'node:crypto';
import { revisionOf, revisionRule } from '../lib/api/gateway.ts';
import type { BackendReference, HttpRoute, ParentReference, RouteFilter, RouteMatch, RouteRule } from '../lib/api/gateway.ts';
import { kinds, labels } from '../lib/api/group.ts';
import type { CFRoute } from '../lib/api/types.generated.ts';
import { ownerReference } from './metadata.ts';
import { mainOf, probedOf, type RouteBackend } from './route-room.ts';
import { defined } from '../lib/defined.ts';

/** Header that sends a request to one generation, whatever the weights are. */
export const generationHeader = 'kf-generation';

export interface HttpRouteInput {
  route: Stored<CFRoute>;
  fqdn: string;
  gateway: { namespace: string; name: string };
  /** Listeners of the Gateway; left out: all. */
  sections?: readonly string[];
  backends: readonly RouteBackend[];
  /** The `status.serving` of each process that the weights were computed from, by its `uid`. */
  serving: Readonly<Record<string, string>>;
  /** Some process behind the route wants instances. */
  serves: boolean;
  /** The gateway can mark answers (feature HTTPRouteResponseHeaderModification), so a probe can identify the generation that answered. */
  marks: boolean;
  /** The gateway accepts regular expressions for paths, so that `/Pay` and `/pay` are the same, as they are one name. */
  pathExpressions: boolean;
  /** The HTTPRoute as it is now. */
  live?: Stored<HttpRoute> | undefined;
}

/**
 * Annotation that shows a process that its weights have reached the route, and a half of a shared route that its destinations have.
 * @param uid of the process or the half: spaces share a route, and each of them chooses its GUIDs
 */
export function servingAnnotation(uid: string): string {
  return `serving.kf.cloudfoundry.org/${uid}`;
}

function marked(generation: string): RouteFilter {
  return { type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [{ name: generationHeader, value: generation }] } };
}

/**
 * The matches for a path. Names of routes do not distinguish capitals, so matching must not either. If the gateway knows only prefixes, the path
 * is matched as it was written and in small letters.
 */
function pathMatches(path: string, pathExpressions: boolean): RouteMatch[] {
  let length = path.length;
  while (path[length - 1] === '/') length -= 1;
  const plain = path.slice(0, length);
  if (plain === '') return [{ path: { type: 'PathPrefix', value: '/' } }];
  if (plain.toLowerCase() === plain.toUpperCase()) return [{ path: { type: 'PathPrefix', value: plain } }];
  if (!pathExpressions) return [...new Set([plain, plain.toLowerCase()])].map((value) => ({ path: { type: 'PathPrefix', value } }));
  const quoted = plain.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return [{ path: { type: 'RegularExpression', value: `(?i)^${quoted}(/.*)?$` } }];
}

/**
 * A form that comes back after another one gets a new revision: the gateway may still have its first occurrence loaded, and load the other form
 * before it.
 */
function revisionFor(form: string, live: Stored<HttpRoute> | undefined): string {
  const before = revisionOf(live);
  if (before === undefined) return form;
  return before.split('-')[0] === form ? before : `${form}-${String(live?.metadata.generation ?? 0)}`;
}

/** @param sections listeners of the Gateway; left out: all */
export function parentsOf({ namespace, name }: HttpRouteInput['gateway'], sections?: readonly string[]): ParentReference[] {
  const parent: ParentReference = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace, name };
  return sections === undefined ? [parent] : sections.map((sectionName) => ({ ...parent, sectionName }));
}

/** The HTTPRoute of a route that has its host, also while nothing serves it: the gateway then reports that it has loaded the route. */
export function buildHttpRoute({
  route,
  fqdn,
  gateway,
  sections,
  backends,
  serving,
  serves,
  marks,
  pathExpressions,
  live,
}: HttpRouteInput): HttpRoute {
  const { name, namespace } = route.metadata;
  const paths = pathMatches(route.spec.path ?? '', pathExpressions);
  const reference = ({ service, namespace: other, port }: RouteBackend, weight: number): BackendReference => ({
    group: '',
    kind: 'Service',
    name: service,
    ...defined({ namespace: other }),
    port,
    weight,
  });
  const parents = parentsOf(gateway, sections);
  const probes = probedOf(backends).map((backend): RouteRule => ({
    matches: paths.map((path) => ({ ...path, headers: [{ type: 'Exact', name: generationHeader, value: backend.generation }] })),
    ...(marks ? { filters: [marked(backend.generation)] } : {}),
    backendRefs: [reference(backend, 1)],
  }));
  const main: RouteRule = { matches: paths, backendRefs: mainOf(backends).map((backend) => reference(backend, backend.weight)) };
  // If the route must not answer, there is no rule for plain requests: they get the page for unknown routes.
  const rules = serves && backends.length > 0 ? [...probes, main] : probes;
  const form = createHash('sha256')
    .update(JSON.stringify([fqdn, ...parents, paths, rules]))
    .digest('hex')
    .slice(0, 10);
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: {
      name,
      namespace,
      labels: { [labels.routeGuid]: name },
      annotations: Object.fromEntries(Object.entries(serving).map(([uid, text]) => [servingAnnotation(uid), text])),
      ownerReferences: [ownerReference(kinds.route, route)],
    },
    spec: { parentRefs: parents, hostnames: [fqdn], rules: [...rules, revisionRule(revisionFor(form, live), paths)] },
  };
}
