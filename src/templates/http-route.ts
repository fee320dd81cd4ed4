// The HTTPRoute of a CFRoute: weights over generations, and one rule per generation by which the controller tries it.

import type { BackendReference, HttpRoute, ParentReference, RouteFilter, RouteMatch, RouteRule } from '../lib/api/gateway.ts';
import { kinds, labels } from '../lib/api/group.ts';
import type { CFRoute } from '../lib/api/types.generated.ts';
import { ownerReference } from './metadata.ts';

/** Header that leads a request to one generation, whatever the weights are. */
export const generationHeader = 'kf-generation';

export interface RouteBackend {
  /** Service in the route's namespace. */
  service: string;
  port: number;
  generation: string;
  weight: number;
}

export interface HttpRouteInput {
  route: CFRoute;
  fqdn: string;
  gateway: { namespace: string; name: string };
  backends: readonly RouteBackend[];
  /** `status.serving` of each process as it went into the weights, by process GUID. */
  serving: Readonly<Record<string, string>>;
  /** The gateway can mark answers (feature HTTPRouteResponseHeaderModification): a probe then knows its own answer. */
  marks: boolean;
}

/** Annotation by which a process sees that its weights have reached the route. */
export function servingAnnotation(processGuid: string): string {
  return `serving.kf.cloudfoundry.org/${processGuid}`;
}

/** Rules beyond this are refused by the Gateway API. */
const mostRules = 16;

function marked(generation: string): RouteFilter {
  return { type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [{ name: generationHeader, value: generation }] } };
}

/** Never without backends: the caller deletes the route then. */
export function buildHttpRoute({ route, fqdn, gateway, backends, serving, marks }: HttpRouteInput): HttpRoute {
  const { name = '', namespace = '' } = route.metadata;
  const path = (route.spec.path ?? '').toLowerCase();
  const pathMatch: RouteMatch = { path: { type: 'PathPrefix', value: path === '' ? '/' : path } };
  const reference = ({ service, port }: RouteBackend, weight: number): BackendReference => ({
    group: '',
    kind: 'Service',
    name: service,
    port,
    weight,
  });
  const parent: ParentReference = { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: gateway.namespace, name: gateway.name };
  const probes = backends.slice(0, mostRules - 1).map((backend): RouteRule => ({
    matches: [{ ...pathMatch, headers: [{ type: 'Exact', name: generationHeader, value: backend.generation }] }],
    ...(marks ? { filters: [marked(backend.generation)] } : {}),
    backendRefs: [reference(backend, 1)],
  }));
  // All weights 0 would be "no backend": then every backend gets its share, and the gateway answers for those without pods.
  const isSilent = backends.every(({ weight }) => weight === 0);
  const main: RouteRule = {
    matches: [pathMatch],
    backendRefs: backends.map((backend) => reference(backend, isSilent ? 1 : backend.weight)),
  };
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: {
      name,
      namespace,
      labels: { [labels.routeGuid]: name },
      annotations: Object.fromEntries(Object.entries(serving).map(([guid, text]) => [servingAnnotation(guid), text])),
      ownerReferences: [ownerReference(kinds.route, route)],
    },
    spec: { parentRefs: [parent], hostnames: [fqdn], rules: [...probes, main] },
  };
}
