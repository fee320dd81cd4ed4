// The namespaces of the installation itself.

import type { KubeObject } from '../../lib/api/object.ts';
import { buildInternalNamespace } from '../internal-domain.ts';
import { managedByLabel, nodeNamespace, rootNamespace, systemNamespace, type SetupPlan } from './options.ts';

function namespace(name: string, level: 'restricted' | 'privileged'): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      labels: {
        [managedByLabel]: 'kf',
        'pod-security.kubernetes.io/enforce': level,
        'pod-security.kubernetes.io/audit': level,
      },
    },
  };
}

/** True when setup's gateway binds ports of the nodes. */
export function needsHostPorts(plan: SetupPlan): boolean {
  return plan.gateway.existing === undefined && plan.gateway.className === undefined && plan.gateway.exposure === 'hostport';
}

/** Traefik's namespace: the controller's, or a separate one when it needs host ports. */
export function gatewayNamespace(plan: SetupPlan): string {
  return plan.gateway.existing?.namespace ?? (needsHostPorts(plan) ? nodeNamespace : systemNamespace);
}

export function buildNamespaces(plan: SetupPlan): KubeObject[] {
  const names = [namespace(rootNamespace, 'restricted'), namespace(systemNamespace, 'restricted')];
  if (plan.internalDomain === true) names.push(buildInternalNamespace());
  return needsHostPorts(plan) ? [...names, namespace(nodeNamespace, 'privileged')] : names;
}
