// The server of the page for hosts without an app. It is a separate program, so that requests of strangers reach neither the controller nor the
// registry, and apps do not depend on it.

import type { KubeObject } from '../../lib/api/object.ts';
import { buildDeployment, buildService, buildServiceAccount } from './workload.ts';
import { gatewayName } from './gateway.ts';
import { gatewayNamespace } from './namespaces.ts';
import { systemNamespace, type SetupPlan } from './options.ts';
import { restrictedContainer, restrictedPod } from '../pod-security.ts';

export const pagesName = 'kf-pages';
const httpPort = 8080;

/**
 * The route with the lowest priority. With kf's own gateway it matches every host; an operator's Gateway may serve other hosts too, so there it
 * matches only the default domain's.
 */
function unknownRoutes(plan: SetupPlan): KubeObject {
  const isForeign = plan.gateway.existing !== undefined;
  const spec = {
    parentRefs: [{ namespace: gatewayNamespace(plan), name: plan.gateway.existing?.name ?? gatewayName }],
    ...(isForeign ? { hostnames: [`*.${plan.domain}`] } : {}),
    rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/' } }], backendRefs: [{ name: pagesName, port: 80 }] }],
  };
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'kf-unknown-routes', namespace: systemNamespace },
    ...{ spec },
  };
}

export function buildPages(plan: SetupPlan, bundle: { name: string }): KubeObject[] {
  const container = {
    name: 'pages',
    image: plan.controllerImage ?? plan.images.node,
    imagePullPolicy: 'IfNotPresent',
    command: ['node', '--max-old-space-size=24', '/kf/pages.mjs'],
    env: [{ name: 'KF_PAGES_PORT', value: String(httpPort) }],
    ports: [{ name: 'http', containerPort: httpPort }],
    readinessProbe: { tcpSocket: { port: httpPort }, periodSeconds: 1, failureThreshold: 60 },
    resources: { requests: { cpu: '5m', memory: '16Mi' }, limits: { memory: '96Mi' } },
    securityContext: restrictedContainer,
    volumeMounts: [{ name: 'bundle', mountPath: '/kf', readOnly: true }],
  };
  return [
    buildServiceAccount(systemNamespace, pagesName),
    buildDeployment({
      name: pagesName,
      namespace: systemNamespace,
      serviceAccount: pagesName,
      token: false,
      podSecurity: restrictedPod,
      containers: [container],
      volumes: [{ name: 'bundle', configMap: { name: bundle.name } }],
      strategy: 'RollingUpdate',
    }),
    buildService({ namespace: systemNamespace, name: pagesName, app: pagesName }, 'ClusterIP', [
      { name: 'http', port: 80, target: httpPort },
    ]),
    unknownRoutes(plan),
  ];
}
