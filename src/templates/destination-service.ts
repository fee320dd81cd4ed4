// The Service from a route destination to one generation of its process.

import type { Stored } from '../lib/api/object.ts';
import type { Service } from '../lib/api/core.ts';
import { kinds, labels } from '../lib/api/group.ts';
import { serviceName } from '../lib/api/names.ts';
import type { CFRoute, RouteDestination } from '../lib/api/types.generated.ts';
import { ownerReference } from './metadata.ts';

export interface DestinationServiceInput {
  route: Stored<CFRoute>;
  destinationGuid: string;
  appGuid: string;
  processGuid: string;
  generation: string;
  port: number;
  protocol?: RouteDestination['protocol'];
}

/** HTTP/2 without TLS (KEP-3726). */
const h2c = 'kubernetes.io/h2c';

export function buildDestinationService(input: DestinationServiceInput): Service {
  const { name, namespace } = input.route.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: serviceName(input.destinationGuid, input.generation, input.protocol),
      namespace,
      labels: {
        [labels.appGuid]: input.appGuid,
        [labels.routeGuid]: name,
        [labels.processGuid]: input.processGuid,
        [labels.generation]: input.generation,
      },
      ownerReferences: [ownerReference(kinds.route, input.route)],
    },
    spec: {
      type: 'ClusterIP',
      selector: { [labels.guid]: input.processGuid, [labels.generation]: input.generation },
      ports: [
        {
          name: 'http',
          port: input.port,
          targetPort: input.port,
          protocol: 'TCP',
          ...(input.protocol === 'http2' ? { appProtocol: h2c } : {}),
        },
      ],
    },
  };
}
