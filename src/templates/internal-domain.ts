// The internal domain apps.internal (docs/decisions/0063): the search list of every pod turns X.apps.internal into X.apps.internal.svc.ZONE, which is
// the instance X of the headless Service `apps` in the namespace `internal`. Its EndpointSlices are those of internal routes.

import { isIP } from 'node:net';
import type { EndpointSlice, Namespace, RoleBinding, Service } from '../lib/api/core.ts';
import { labels } from '../lib/api/group.ts';
import type { Stored } from '../lib/api/object.ts';
import type { CFRoute } from '../lib/api/types.generated.ts';
import { sha224 } from '../lib/api/names.ts';

export const internalDomain = 'apps.internal';
export const internalNamespace = 'internal';
const internalService = 'apps';
/** The ClusterRole with the controller's rights in the namespace `internal`. */
const internalRole = 'kf-controller-internal';

const managed = { [labels.managedBy]: 'kf' };

export function buildInternalNamespace(): Namespace {
  const level = 'restricted';
  const marks = { ...managed, 'pod-security.kubernetes.io/enforce': level, 'pod-security.kubernetes.io/audit': level };
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: internalNamespace, labels: marks } };
}

/** Without a selector: the controller writes its EndpointSlices. */
export function buildInternalService(): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: internalService, namespace: internalNamespace, labels: managed },
    spec: { type: 'ClusterIP', clusterIP: 'None', ports: [{ name: 'app', port: 8080, targetPort: 8080, protocol: 'TCP' }] },
  };
}

/** Lets the controller write EndpointSlices in the namespace `internal`. */
export function buildInternalRights(account: { namespace: string; name: string }): RoleBinding {
  const group = 'rbac.authorization.k8s.io';
  return {
    apiVersion: `${group}/v1`,
    kind: 'RoleBinding',
    metadata: { name: internalRole, namespace: internalNamespace, labels: managed },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: internalRole },
    subjects: [{ kind: 'ServiceAccount', name: account.name, namespace: account.namespace }],
  };
}

export const addressFamilies = ['IPv4', 'IPv6'] as const;
export type AddressFamily = (typeof addressFamilies)[number];

/** The API allows no more. */
const mostEndpoints = 1_000;

/** Routes of two spaces may have the same GUID, so the space is part of the name. */
export function sliceName(route: { namespace: string; name: string }, family: AddressFamily): string {
  return `${sha224(`${route.namespace}/${route.name}`)}-${family.toLowerCase()}`;
}

/** The addresses of one family that the name of an internal route leads to; undefined when there are none. */
export function buildSlice(
  route: Stored<CFRoute>,
  family: AddressFamily,
  { addresses, port }: { addresses: readonly string[]; port: number },
): EndpointSlice | undefined {
  const version = family === 'IPv4' ? 4 : 6;
  const own = [...new Set(addresses)].filter((address) => isIP(address) === version).toSorted();
  if (own.length === 0) return undefined;
  const hostname = (route.spec.host ?? '').toLowerCase();
  const { namespace, name } = route.metadata;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: sliceName(route.metadata, family),
      namespace: internalNamespace,
      labels: {
        ...managed,
        'kubernetes.io/service-name': internalService,
        'endpointslice.kubernetes.io/managed-by': 'kf.cloudfoundry.org',
        [labels.spaceGuid]: namespace,
        [labels.routeGuid]: name,
      },
    },
    addressType: family,
    endpoints: own.slice(0, mostEndpoints).map((address) => ({ addresses: [address], hostname, conditions: { ready: true } })),
    ports: [{ name: 'app', port, protocol: 'TCP' }],
  };
}
