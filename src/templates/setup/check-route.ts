// The route with which setup tests that requests from the CLI's machine reach the cluster.

import type { KubeObject } from '../../lib/api/object.ts';
import { controllerName } from './controller.ts';
import { gatewayName } from './gateway.ts';
import { gatewayNamespace } from './namespaces.ts';
import { systemNamespace, type SetupPlan } from './options.ts';

/** A host that only this check of this installation uses, so that another cluster behind the same address does not answer. */
export function checkHost(plan: SetupPlan): string {
  const own = plan.org.guid === undefined ? '' : `-${plan.org.guid.slice(0, 8)}`;
  return `kf-setup-check${own}.${plan.domain}`;
}

/** Routes `checkHost` to the controller's `/healthz`. */
export function buildCheckRoute(plan: SetupPlan): KubeObject {
  const spec = {
    parentRefs: [{ namespace: gatewayNamespace(plan), name: plan.gateway.existing?.name ?? gatewayName }],
    hostnames: [checkHost(plan)],
    rules: [{ matches: [{ path: { type: 'Exact', value: '/healthz' } }], backendRefs: [{ name: controllerName, port: 8080 }] }],
  };
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'kf-setup-check', namespace: systemNamespace },
    ...{ spec },
  };
}
