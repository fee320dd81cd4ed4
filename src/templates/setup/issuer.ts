// The controller's right to make certificates by cert-manager, in the namespace of the gateway: an issuer's Secret is in the namespace of its
// Certificate, and the gateway needs no grant for Secrets of its own namespace.

import type { KubeObject } from '../../lib/api/object.ts';
import { controllerName } from './controller.ts';
import { gatewayNamespace } from './namespaces.ts';
import { systemNamespace, type SetupPlan } from './options.ts';

const role = 'kf-controller-certificates';

/** Nothing without an issuer. */
export function buildIssuerRights(plan: SetupPlan): KubeObject[] {
  if (plan.gateway.https?.issuer === undefined) return [];
  const group = 'rbac.authorization.k8s.io';
  return [
    {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: role, namespace: gatewayNamespace(plan) },
      ...{
        roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
        subjects: [{ kind: 'ServiceAccount', name: controllerName, namespace: systemNamespace }],
      },
    },
  ];
}
