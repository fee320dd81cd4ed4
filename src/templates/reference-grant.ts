// The consent of a namespace that HTTPRoutes of another one lead to one of its Services.

import { serviceType, type Service } from '../lib/api/core.ts';
import type { ReferenceGrant } from '../lib/api/gateway.ts';
import { labels } from '../lib/api/group.ts';
import type { Stored } from '../lib/api/object.ts';
import type { CFRoute } from '../lib/api/types.generated.ts';
import { ownerReference } from './metadata.ts';

export interface ReferenceGrantInput {
  route: Stored<CFRoute>;
  service: Stored<Service>;
  /** Namespace of the HTTPRoutes. */
  from: string;
}

/** The grant has the Service's name, and is deleted with it. */
export function buildReferenceGrant({ route, service, from }: ReferenceGrantInput): ReferenceGrant {
  const { name, namespace } = service.metadata;
  return {
    apiVersion: 'gateway.networking.k8s.io/v1beta1',
    kind: 'ReferenceGrant',
    metadata: {
      name,
      namespace,
      labels: { [labels.routeGuid]: route.metadata.name },
      ownerReferences: [ownerReference(serviceType, service)],
    },
    spec: {
      from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: from }],
      to: [{ group: '', kind: 'Service', name }],
    },
  };
}
