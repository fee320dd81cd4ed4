// Redirects all hosts of a domain from http to https. A route with a more specific host or path still gets its requests with http, such as the one
// with which cert-manager answers an ACME challenge (http-01).

import { listeners, type HttpRoute } from '../lib/api/gateway.ts';
import { kinds, labels } from '../lib/api/group.ts';
import type { HttpsSettings } from '../lib/api/kf-info.ts';
import type { Stored } from '../lib/api/object.ts';
import type { CFDomain } from '../lib/api/types.generated.ts';
import { parentsOf } from './http-route.ts';
import { ownerReference } from './metadata.ts';

export const redirectName = (domain: Stored<CFDomain>): string => `http-redirect-${domain.metadata.name}`;

export function buildDomainRedirect(
  domain: Stored<CFDomain>,
  gateway: { namespace: string; name: string },
  https: HttpsSettings,
): HttpRoute {
  const name = domain.spec.name.replace(/\.$/, '');
  const redirect = { scheme: 'https' as const, port: https.port, statusCode: 301 };
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: {
      name: redirectName(domain),
      namespace: domain.metadata.namespace,
      labels: { [labels.managedBy]: 'kf' },
      ownerReferences: [ownerReference(kinds.domain, domain)],
    },
    spec: {
      parentRefs: parentsOf(gateway, [listeners.http]),
      hostnames: [`*.${name}`, name],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          filters: [{ type: 'RequestRedirect', requestRedirect: redirect }],
        },
      ],
    },
  };
}
