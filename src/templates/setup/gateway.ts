// Traefik as the Gateway API implementation for clusters that have none.

import type { KubeObject } from '../../lib/api/object.ts';
import { listeners } from '../../lib/api/gateway.ts';
import { places } from '../../lib/api/group.ts';
import { buildGatewayPlugins, gatewayPlugins } from './gateway-plugins.ts';
import { gatewayNamespace, needsHostPorts } from './namespaces.ts';
import { managedByLabel, rootNamespace, systemNamespace, type SetupPlan } from './options.ts';
import { restrictedContainer, restrictedPod } from '../pod-security.ts';
import { defined } from '../../lib/defined.ts';
import { buildDeployment, buildService, buildServiceAccount, type PortInput } from './workload.ts';

export const gatewayName = 'kf';
export const traefikName = 'kf-gateway';
const className = 'kf-traefik';
/** The Service for requests of the controller, if those from outside are redirected to https. */
export const internalName = 'kf-gateway-internal';
/** Traefik requires that the listener's port is the entry point's port; outside they are mapped to 80 and 443. */
export const entryPorts = { web: 8000, websecure: 8443, internal: 8001 } as const;
const adminPort = 8080;
/** On the pods of a gateway without the guard. */
export const unguarded = { 'kf.cloudfoundry.org/guard': 'off' };

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

type EntryPoint = keyof typeof entryPorts;

/**
 * The entry point for https is there also while https is off: Traefik learns of it only when it starts, and one that is replaced does not answer. While
 * no listener uses it, it has no routes, and nothing leads to its port.
 */
function entryPoints({ gateway: { https } }: SetupPlan): EntryPoint[] {
  return https?.redirect === true ? ['web', 'websecure', 'internal'] : ['web', 'websecure'];
}

function entryPointArguments(plan: SetupPlan): string[] {
  const { https } = plan.gateway;
  return [
    ...entryPoints(plan).flatMap((name) => [
      `--entrypoints.${name}.address=:${entryPorts[name]}`,
      // With the default of 1 MB, 560 connections with endless headers used all of Traefik's memory. With this limit, the connections that one pod
      // can open do not.
      `--entrypoints.${name}.http.maxheaderbytes=${headerBytes}`,
    ]),
    ...(https?.redirect === true
      ? [`--entrypoints.web.http.redirections.entrypoint.to=:${https.port}`, '--entrypoints.web.http.redirections.entrypoint.scheme=https']
      : []),
  ];
}

/** Every answer on a connection that is older than this ends it, by HTTP/2 when the other answers have been sent. */
export const connectionAgeArguments = (plan: SetupPlan, seconds: number): string[] =>
  entryPoints(plan).map((name) => `--entrypoints.${name}.transport.keepalivemaxtime=${seconds}s`);

function containerPorts(plan: SetupPlan, hasHostPorts: boolean): { name: string; containerPort: number; hostPort?: number }[] {
  const websecure = plan.gateway.https === undefined ? undefined : 443;
  const hostPorts: Partial<Record<EntryPoint, number>> = hasHostPorts ? { web: 80, ...defined({ websecure }) } : {};
  const ports = entryPoints(plan).map((name) => ({ name, containerPort: entryPorts[name], ...defined({ hostPort: hostPorts[name] }) }));
  return [...ports, { name: 'admin', containerPort: adminPort }];
}

function traefik(plan: SetupPlan, hasHostPorts: boolean): Record<string, unknown> {
  return {
    name: 'traefik',
    image: plan.images.traefik,
    imagePullPolicy: 'IfNotPresent',
    args: [
      `--entrypoints.traefik.address=:${adminPort}`,
      ...entryPointArguments(plan),
      ...gatewayPlugins.arguments(entryPoints(plan), { isGuarded: plan.gateway.isGuarded !== false }),
      '--providers.kubernetesgateway=true',
      // By default Traefik waits 2 s between two configurations, which would delay new routes.
      '--providers.providersthrottleduration=100ms',
      '--ping=true',
      '--global.checknewversion=false',
      '--global.sendanonymoususage=false',
      '--log.level=WARN',
    ],
    ports: containerPorts(plan, hasHostPorts),
    readinessProbe: { httpGet: { path: '/ping', port: adminPort }, periodSeconds: 1, failureThreshold: 60 },
    // A gateway that gets little CPU time for some seconds must not be restarted: that would end all connections.
    livenessProbe: { httpGet: { path: '/ping', port: adminPort }, periodSeconds: 20, timeoutSeconds: 10, failureThreshold: 3 },
    // So that setup can say why it does not start.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    env: [{ name: 'GOMEMLIMIT', value: '800MiB' }],
    resources: { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '1Gi' } },
    securityContext: restrictedContainer,
    workingDir: gatewayPlugins.workingDir,
    volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }, gatewayPlugins.volumeMount],
  };
}

const gatewayGroup = 'gateway.networking.k8s.io';

/** A listener for each certificate: Traefik, like many others, takes one per listener. The most specific host name counts. */
function httpsListeners({ gateway: { https } }: SetupPlan, port: number, allowedRoutes: object): object[] {
  if (https === undefined) return [];
  const own = { name: listeners.https, secret: { namespace: systemNamespace, name: places.gatewayCertificate } };
  const given = https.secrets.map(({ domain, ...secret }) => ({ name: listeners.httpsOf(domain), hostname: `*.${domain}`, secret }));
  return [own, ...given].map(({ secret, ...listener }) => ({
    ...listener,
    port,
    protocol: 'HTTPS',
    allowedRoutes,
    tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', ...secret }] },
  }));
}

/** The controller writes the certificate of its authority into it; manifests/roles.yaml lets everybody read it. */
const published: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: places.authorityCertificate, namespace: rootNamespace },
};

/** Lets the Gateway use the Secrets of other namespaces, by name, and everybody check the certificate. */
function certificateObjects(plan: SetupPlan): KubeObject[] {
  const { https } = plan.gateway;
  if (https === undefined) return [];
  const namespace = gatewayNamespace(plan);
  const secrets = [{ namespace: systemNamespace, name: places.gatewayCertificate }, ...https.secrets];
  const others = [...new Set(secrets.map((secret) => secret.namespace))].filter((one) => one !== namespace).sort();
  const namesIn = (other: string): string[] =>
    [...new Set(secrets.filter((secret) => secret.namespace === other).map(({ name }) => name))].sort();
  const grants = others.map((other) => ({
    apiVersion: `${gatewayGroup}/v1beta1`,
    kind: 'ReferenceGrant',
    metadata: { name: traefikName, namespace: other },
    ...{
      spec: {
        from: [{ group: gatewayGroup, kind: 'Gateway', namespace }],
        to: namesIn(other).map((name) => ({ group: '', kind: 'Secret', name })),
      },
    },
  }));
  return [published, ...grants];
}

interface ListenerPorts {
  http: number;
  https: number;
  internal?: number;
}

function gateway(plan: SetupPlan, gatewayClassName: string, ports: ListenerPorts): KubeObject {
  // Otherwise an HTTPRoute of any namespace could take a host. Only kf's namespaces have this label, and only its controller makes routes there.
  const allowedRoutes = {
    namespaces: { from: 'Selector', selector: { matchLabels: { [managedByLabel]: 'kf' } } },
    kinds: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' }],
  };
  const http = (name: string, port: number): object => ({ name, port, protocol: 'HTTP', allowedRoutes });
  const all = [
    http(listeners.http, ports.http),
    ...(ports.internal === undefined ? [] : [http('http-internal', ports.internal)]),
    ...httpsListeners(plan, ports.https, allowedRoutes),
  ];
  return {
    apiVersion: `${gatewayGroup}/v1`,
    kind: 'Gateway',
    metadata: { name: gatewayName, namespace: gatewayNamespace(plan) },
    ...{ spec: { gatewayClassName, listeners: all } },
  };
}

/** The Deployment of Traefik. @param hasHostPorts whether its pod takes ports of its node */
export function buildTraefik(plan: SetupPlan, hasHostPorts = needsHostPorts(plan)): ReturnType<typeof buildDeployment> {
  return buildDeployment({
    name: traefikName,
    namespace: gatewayNamespace(plan),
    serviceAccount: traefikName,
    token: true,
    podSecurity: restrictedPod,
    containers: [traefik(plan, hasHostPorts)],
    volumes: [{ name: 'tmp', emptyDir: {} }, gatewayPlugins.volume],
    annotations: { ...gatewayPlugins.annotations, ...(plan.gateway.isGuarded === false ? unguarded : {}) },
  });
}

/** The ports that clients use, and where they lead to in the pod. */
export function entryServicePorts(plan: SetupPlan): PortInput[] {
  return [
    { name: 'web', port: 80, target: entryPorts.web },
    ...(plan.gateway.https === undefined ? [] : [{ name: 'websecure', port: 443, target: entryPorts.websecure }]),
  ];
}

/** Nothing for an existing Gateway, a Gateway for an existing class, otherwise Traefik with class, Gateway and Service. */
export function buildGateway(plan: SetupPlan): KubeObject[] {
  if (plan.gateway.existing !== undefined) return [];
  if (plan.gateway.className !== undefined)
    return [...certificateObjects(plan), gateway(plan, plan.gateway.className, { http: 80, https: 443 })];
  const namespace = gatewayNamespace(plan);
  const points = entryPoints(plan);
  const service = buildService(
    { namespace, name: traefikName, app: traefikName },
    plan.gateway.exposure === 'loadbalancer' ? 'LoadBalancer' : 'ClusterIP',
    entryServicePorts(plan),
  );
  const internal = points.includes('internal')
    ? [
        buildService({ namespace, name: internalName, app: traefikName }, 'ClusterIP', [
          { name: 'internal', port: 80, target: entryPorts.internal },
        ]),
      ]
    : [];
  return [
    {
      apiVersion: `${gatewayGroup}/v1`,
      kind: 'GatewayClass',
      metadata: { name: className },
      ...{ spec: { controllerName: 'traefik.io/gateway-controller' } },
    },
    ...access(namespace),
    buildServiceAccount(namespace, traefikName),
    buildGatewayPlugins(namespace),
    buildTraefik(plan),
    service,
    ...internal,
    ...certificateObjects(plan),
    gateway(plan, className, {
      http: entryPorts.web,
      https: entryPorts.websecure,
      ...(points.includes('internal') ? { internal: entryPorts.internal } : {}),
    }),
  ];
}
