// Traefik as the Gateway API implementation for clusters that have none.

import type { KubeObject } from '../../lib/api/object.ts';
import { gatewayNamespace, needsHostPorts } from './namespaces.ts';
import { managedByLabel, type SetupPlan } from './options.ts';
import { restrictedContainer, restrictedPod } from '../pod-security.ts';
import { buildDeployment, buildService, buildServiceAccount } from './workload.ts';

export const gatewayName = 'kf';
export const traefikName = 'kf-gateway';
const className = 'kf-traefik';
/** Traefik requires that the listener's port is the entry point's port; outside it is mapped to 80. */
const webPort = 8000;
const adminPort = 8080;

const rules = [
  { apiGroups: [''], resources: ['namespaces', 'services', 'configmaps', 'secrets', 'nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['gateway.networking.k8s.io'],
    resources: [
      'backendtlspolicies',
      'gatewayclasses',
      'gateways',
      'httproutes',
      'grpcroutes',
      'referencegrants',
      'tcproutes',
      'tlsroutes',
    ],
    verbs: ['get', 'list', 'watch'],
  },
  {
    apiGroups: ['gateway.networking.k8s.io'],
    resources: ['backendtlspolicies/status', 'gatewayclasses/status', 'gateways/status', 'httproutes/status', 'grpcroutes/status'],
    verbs: ['update'],
  },
];

function access(namespace: string): KubeObject[] {
  const metadata = { name: traefikName };
  return [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, ...{ rules } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata,
      ...{
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: traefikName },
        subjects: [{ kind: 'ServiceAccount', name: traefikName, namespace }],
      },
    },
  ];
}

/** Limit for all headers of a request together, as in common web servers. */
const headerBytes = 16 * 1024;

function traefik(plan: SetupPlan): Record<string, unknown> {
  return {
    name: 'traefik',
    image: plan.images.traefik,
    imagePullPolicy: 'IfNotPresent',
    args: [
      `--entrypoints.web.address=:${webPort}`,
      `--entrypoints.traefik.address=:${adminPort}`,
      // With the default of 1 MB, 560 connections with endless headers used all of Traefik's memory. With this limit, the connections that one pod
      // can open do not.
      `--entrypoints.web.http.maxheaderbytes=${headerBytes}`,
      '--providers.kubernetesgateway=true',
      // By default Traefik waits 2 s between two configurations, which would delay new routes.
      '--providers.providersthrottleduration=100ms',
      '--ping=true',
      '--global.checknewversion=false',
      '--global.sendanonymoususage=false',
      '--log.level=WARN',
    ],
    ports: [
      { name: 'web', containerPort: webPort, ...(needsHostPorts(plan) ? { hostPort: 80 } : {}) },
      { name: 'admin', containerPort: adminPort },
    ],
    readinessProbe: { httpGet: { path: '/ping', port: adminPort }, periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { httpGet: { path: '/ping', port: adminPort }, periodSeconds: 20, failureThreshold: 3 },
    env: [{ name: 'GOMEMLIMIT', value: '800MiB' }],
    resources: { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '1Gi' } },
    securityContext: restrictedContainer,
    volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
  };
}

function gateway(plan: SetupPlan, gatewayClassName: string, port: number): KubeObject {
  // Otherwise an HTTPRoute of any namespace could take a host. Only kf's namespaces have this label, and only its controller makes routes there.
  const allowedRoutes = {
    namespaces: { from: 'Selector', selector: { matchLabels: { [managedByLabel]: 'kf' } } },
    kinds: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }],
  };
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: { name: gatewayName, namespace: gatewayNamespace(plan) },
    ...{ spec: { gatewayClassName, listeners: [{ name: 'http-apps', port, protocol: 'HTTP', allowedRoutes }] } },
  };
}

/** Nothing for an existing Gateway, a Gateway for an existing class, otherwise Traefik with class, Gateway and Service. */
export function buildGateway(plan: SetupPlan): KubeObject[] {
  if (plan.gateway.existing !== undefined) return [];
  if (plan.gateway.className !== undefined) return [gateway(plan, plan.gateway.className, 80)];
  const namespace = gatewayNamespace(plan);
  const service = buildService(
    { namespace, name: traefikName, app: traefikName },
    plan.gateway.exposure === 'loadbalancer' ? 'LoadBalancer' : 'ClusterIP',
    [{ name: 'web', port: 80, target: webPort }],
  );
  return [
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'GatewayClass',
      metadata: { name: className },
      ...{ spec: { controllerName: 'traefik.io/gateway-controller' } },
    },
    ...access(namespace),
    buildServiceAccount(namespace, traefikName),
    buildDeployment({
      name: traefikName,
      namespace,
      serviceAccount: traefikName,
      token: true,
      podSecurity: restrictedPod,
      containers: [traefik(plan)],
      volumes: [{ name: 'tmp', emptyDir: {} }],
    }),
    service,
    gateway(plan, className, webPort),
  ];
}
