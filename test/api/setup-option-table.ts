// Every option of `kf setup`, with the objects that it changes, and the changes.

import { expect } from 'vitest';
import type { Objects } from './setup-objects.ts';

export type Settings = Record<string, unknown>;

const info = 'kf-info';
const controller = 'Deployment kf-system/kf-controller';
const registry = 'Deployment kf-system/kf-registry';
const claim = 'PersistentVolumeClaim kf-system/kf-registry';
const [checkRoute, unknownRoutes] = ['HTTPRoute kf-system/kf-setup-check', 'HTTPRoute kf-system/kf-unknown-routes'];
const pages = 'Deployment kf-system/kf-pages';
/** Of the registry in the cluster. */
const registryObjects = [
  'ConfigMap kf-system/kf-registry',
  registry,
  claim,
  'Service kf-system/kf-registry',
  'Service kf-system/kf-registry-pull',
  'ServiceAccount kf-system/kf-registry',
  'NetworkPolicy kf-system/kf-registry',
];
const traefikIn = (namespace: string): string[] => [
  `ConfigMap ${namespace}/kf-gateway-request-id`,
  `Deployment ${namespace}/kf-gateway`,
  `Gateway ${namespace}/kf`,
  `Service ${namespace}/kf-gateway`,
  `ServiceAccount ${namespace}/kf-gateway`,
  `NetworkPolicy ${namespace}/kf-gateway`,
];
/** Of the gateway that setup installs on ports of the nodes. */
const traefikObjects = [
  ...traefikIn('kf-node'),
  'ClusterRole kf-gateway',
  'ClusterRoleBinding kf-gateway',
  'GatewayClass kf-traefik',
  'Namespace kf-node',
];

/** Lets the Gateway in kf-node use the certificate in kf-system. */
const certificateGrant = 'ReferenceGrant kf-system/kf-gateway';
const authority = 'ConfigMap cf/kf-ca-certificate';

const containers = (...images: string[]): object => ({ spec: { template: { spec: { containers: images.map((image) => ({ image })) } } } });
const inPod = (container: object): object => ({ spec: { template: { spec: { containers: [container] } } } });
export const traefikPorts = (web: object, websecure: object): object => inPod({ ports: [web, websecure, { name: 'admin' }] });
/** These policies admit the gateway of that namespace. */
const controllerPolicy = 'NetworkPolicy kf-system/kf-controller';
const pagesPolicy = 'NetworkPolicy kf-system/kf-pages';
const lets = (namespace: string): object => ({
  spec: { ingress: [{ from: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } }] }] },
});
const viaGateway = (namespace: string, name: string): object => ({ spec: { parentRefs: [{ namespace, name }] } });

export interface Option {
  key: string;
  value: unknown;
  /** Its flag; the run with it has `other` in the file. */
  flag?: string;
  other?: unknown;
  /** The objects that differ from those without the option, with the differing fields. */
  changes: Objects;
  adds?: string[];
  lacks?: string[];
  /** Further settings. */
  with?: Settings;
}

export const options: Option[] = [
  {
    key: 'domain',
    flag: '--domain',
    value: 'apps.example.com',
    other: 'other.example.com',
    changes: {
      [info]: { defaultDomain: 'apps.example.com', gateway: { externalUrl: { scheme: 'http', port: 80 } } },
      [checkRoute]: { spec: { hostnames: ['kf-setup-check.apps.example.com'] } },
    },
  },
  {
    key: 'gatewayPort',
    flag: '--gateway-port',
    value: 8080,
    other: 8081,
    changes: { [info]: { gateway: { externalUrl: { scheme: 'http', port: 8080, address: '127.0.0.1' } } } },
  },
  { key: 'gatewayAddress', value: '192.0.2.7', changes: { [info]: { gateway: { externalUrl: { address: '192.0.2.7' } } } } },
  {
    key: 'gatewayGuard',
    flag: '--gateway-guard',
    value: 'off',
    other: 'on',
    changes: {
      'Deployment kf-node/kf-gateway': {
        spec: {
          template: {
            metadata: { annotations: { 'kf.cloudfoundry.org/guard': 'off' } },
            spec: { containers: [{ args: expect.arrayContaining(['--entrypoints.web.http.middlewares=requestid@file']) as object }] },
          },
        },
      },
    },
  },
  {
    key: 'gatewayExposure',
    value: 'loadbalancer',
    changes: {
      'Service kf-system/kf-gateway': {
        spec: {
          type: 'LoadBalancer',
          ports: [
            { port: 80, targetPort: 8000 },
            { port: 443, targetPort: 8443 },
          ],
        },
      },
      'Deployment kf-system/kf-gateway': traefikPorts(
        expect.not.objectContaining({ hostPort: 80 }) as object,
        expect.not.objectContaining({ hostPort: 443 }) as object,
      ),
      'Gateway kf-system/kf': { spec: { gatewayClassName: 'kf-traefik' } },
      'ClusterRoleBinding kf-gateway': { subjects: [{ name: 'kf-gateway', namespace: 'kf-system' }] },
      [checkRoute]: viaGateway('kf-system', 'kf'),
      [unknownRoutes]: viaGateway('kf-system', 'kf'),
      [controllerPolicy]: lets('kf-system'),
      [pagesPolicy]: lets('kf-system'),
      [info]: { gateway: { namespace: 'kf-system', internalAddress: 'http://kf-gateway.kf-system.svc' } },
    },
    adds: ['ConfigMap kf-system/kf-gateway-request-id', 'ServiceAccount kf-system/kf-gateway', 'NetworkPolicy kf-system/kf-gateway'],
    // The gateway is in the namespace of its Secret.
    lacks: [...traefikIn('kf-node'), 'Namespace kf-node', certificateGrant],
  },
  {
    key: 'https',
    flag: '--https',
    value: 'off',
    other: 'on',
    changes: {
      [info]: { gateway: expect.not.objectContaining({ https: expect.anything() as object }) as object },
      'Deployment kf-node/kf-gateway': inPod({
        ports: [
          { containerPort: 8000, hostPort: 80 },
          expect.not.objectContaining({ hostPort: expect.anything() as number }) as object,
          { name: 'admin' },
        ],
      }),
      'Service kf-node/kf-gateway': { spec: { ports: [{ port: 80 }] } },
      'Gateway kf-node/kf': { spec: { listeners: [{ port: 8000 }] } },
      'NetworkPolicy kf-node/kf-gateway': { spec: { ingress: [{ ports: [{ port: 8000 }] }] } },
    },
    lacks: [certificateGrant, authority],
  },
  { key: 'httpsPort', flag: '--https-port', value: 8443, other: 8444, changes: { [info]: { gateway: { https: { port: 8443 } } } } },
  {
    key: 'httpRedirect',
    flag: '--http-redirect',
    value: 'on',
    other: 'off',
    changes: {
      [info]: {
        gateway: {
          internalAddress: 'http://kf-gateway-internal.kf-node.svc',
          externalUrl: { scheme: 'https', port: 443 },
          https: { redirect: true },
        },
      },
      'Deployment kf-node/kf-gateway': inPod({
        args: expect.arrayContaining(['--entrypoints.web.http.redirections.entrypoint.to=:443']) as object,
        ports: [{ containerPort: 8000 }, { containerPort: 8443 }, { name: 'internal', containerPort: 8001 }, { name: 'admin' }],
      }),
      'Gateway kf-node/kf': { spec: { listeners: [{ port: 8000 }, { name: 'http-internal', port: 8001 }, { port: 8443 }] } },
      // Only the controller reaches the port that does not redirect.
      'NetworkPolicy kf-node/kf-gateway': {
        spec: {
          ingress: [
            { ports: [{ port: 8000 }, { port: 8443 }] },
            { from: [{ podSelector: { matchLabels: { app: 'kf-controller' } } }], ports: [{ port: 8001 }] },
          ],
        },
      },
    },
    adds: ['Service kf-node/kf-gateway-internal'],
  },
  {
    key: 'storageClass',
    flag: '--storage-class',
    value: 'fast',
    other: 'slow',
    changes: { [claim]: { spec: { storageClassName: 'fast' } } },
  },
  { key: 'registrySize', value: '50Gi', changes: { [claim]: { spec: { resources: { requests: { storage: '50Gi' } } } } } },
  {
    key: 'registrySpaceQuotaMB',
    value: 100,
    changes: { [info]: { registry: { spaceQuotaBytes: 104_857_600 } }, [registry]: { spec: { template: expect.anything() as object } } },
  },
  {
    key: 'nodePort',
    value: 32600,
    changes: {
      'Service kf-system/kf-registry-pull': { spec: { type: 'NodePort', ports: [{ name: 'pull', port: 5001, nodePort: 32600 }] } },
      [info]: { registry: { pullPrefix: 'localhost:32600/', pushHost: 'kf-registry.kf-system.svc:5000' } },
    },
  },
  {
    key: 'controllerImage',
    flag: '--controller-image',
    value: 'registry.example.com/node:24',
    other: 'registry.example.com/node:22',
    changes: {
      [controller]: containers('registry.example.com/node:24'),
      [pages]: containers('registry.example.com/node:24'),
      [registry]: containers('docker.io/library/registry:3', 'registry.example.com/node:24'),
      [info]: { programImage: 'registry.example.com/node:24' },
    },
  },
  {
    key: 'imagePrefix',
    flag: '--image-prefix',
    value: 'mirror.example.com/all',
    other: 'mirror.example.com/other',
    with: { images: { run: 'registry.example.com/run:1' } },
    changes: {
      [controller]: containers('mirror.example.com/all/library/node:24-slim'),
      [pages]: containers('mirror.example.com/all/library/node:24-slim'),
      [registry]: containers('mirror.example.com/all/library/registry:3', 'mirror.example.com/all/library/node:24-slim'),
      'Deployment kf-node/kf-gateway': containers('mirror.example.com/all/library/traefik:v3.6'),
      [info]: {
        programImage: 'mirror.example.com/all/library/node:24-slim',
        builder: {
          image: 'mirror.example.com/all/paketobuildpacks/builder-jammy-base:latest',
          runImage: 'registry.example.com/run:1',
        },
      },
    },
  },
  {
    key: 'images',
    value: { node: 'e.example.com/node:1', registry: 'e.example.com/registry:1', traefik: 'e.example.com/traefik:1' },
    changes: {
      [controller]: containers('e.example.com/node:1'),
      [pages]: containers('e.example.com/node:1'),
      [registry]: containers('e.example.com/registry:1', 'e.example.com/node:1'),
      'Deployment kf-node/kf-gateway': containers('e.example.com/traefik:1'),
      [info]: { programImage: 'e.example.com/node:1' },
    },
  },
  {
    key: 'images',
    value: { builder: 'e.example.com/builder:1', run: 'e.example.com/run:1' },
    changes: { [info]: { builder: { image: 'e.example.com/builder:1', runImage: 'e.example.com/run:1' } } },
  },
  {
    key: 'insecureRegistries',
    value: ['plain.example.com:5000'],
    changes: { [info]: { builder: { insecureRegistries: ['plain.example.com:5000'] } } },
  },
  {
    key: 'buildEnv',
    value: { NPM_CONFIG_REGISTRY: 'https://npm.example.com/' },
    changes: {
      [info]: { builder: { envRevision: expect.stringMatching(/^[0-9a-f-]{36}$/) as string } },
      'Secret kf-system/kf-build-env': { data: { NPM_CONFIG_REGISTRY: Buffer.from('https://npm.example.com/').toString('base64') } },
    },
  },
  {
    key: 'networkPolicies',
    flag: '--network-policies',
    value: 'off',
    other: 'on',
    changes: { [info]: expect.not.objectContaining({ network: expect.anything() as object }) as object },
    lacks: ['kf-system/kf-closed', 'kf-system/kf-controller', 'kf-system/kf-pages', 'kf-system/kf-registry', 'kf-node/kf-gateway'].map(
      (name) => `NetworkPolicy ${name}`,
    ),
  },
  {
    key: 'appEgress',
    value: ['10.20.0.0/16', 'databases'],
    changes: { [info]: { network: { egress: ['10.20.0.0/16', 'databases'], ingress: [] } } },
  },
  { key: 'appIngress', value: ['monitoring'], changes: { [info]: { network: { egress: [], ingress: ['monitoring'] } } } },
  { key: 'drainSeconds', value: 9, changes: { [info]: { drainSeconds: 9 } } },
  { key: 'graceSeconds', value: 30, changes: { [info]: { graceSeconds: 30 } } },
  { key: 'staging', value: { memoryMB: 2048 }, changes: { [info]: { staging: { memoryMB: 2048, diskMB: 4096 } } } },
  { key: 'staging', value: { diskMB: 8192 }, changes: { [info]: { staging: { memoryMB: 1024, diskMB: 8192 } } } },
  { key: 'processDefaults', value: { memoryMB: 512 }, changes: { [info]: { processDefaults: { memoryMB: 512, diskQuotaMB: 1024 } } } },
  { key: 'processDefaults', value: { diskQuotaMB: 64 }, changes: { [info]: { processDefaults: { memoryMB: 256, diskQuotaMB: 64 } } } },
  { key: 'limits', value: { space: { pods: 9 } }, changes: { [info]: { limits: { org: {}, space: { pods: '9' }, orgTotal: {} } } } },
  { key: 'tasksKeptPerApp', value: 7, changes: { [info]: { tasksKeptPerApp: 7 } } },
  { key: 'controllerMemoryMB', value: 1000, changes: { [controller]: inPod({ resources: { limits: { memory: '1000Mi' } } }) } },
  { key: 'org', value: 'acme', changes: { [info]: { defaults: { org: { name: 'acme' }, space: { name: 'default' } } } } },
  { key: 'space', value: 'dev', changes: { [info]: { defaults: { org: { name: 'default' }, space: { name: 'dev' } } } } },
];

const shopSecret = { domain: 'shop.localhost', namespace: 'infra', name: 'shop' };
const listenerOf = (domain: string, secret: object): object => ({
  name: `https-${domain}`,
  hostname: `*.${domain}`,
  tls: { certificateRefs: [secret] },
});

/** Options whose objects must exist in the cluster first; their tests create them. */
export const ofOutside: Record<
  'registry' | 'insecureRegistry' | 'gateway' | 'gatewayClass' | 'tlsSecret' | 'tlsSecrets' | 'tlsIssuer',
  Option
> = {
  registry: {
    key: 'registry',
    flag: '--registry',
    value: 'registry.example.com/team/kf',
    other: 'other.example.com',
    changes: { [info]: { registry: { pushHost: 'registry.example.com', pullPrefix: 'registry.example.com/team/kf/' } } },
    lacks: registryObjects,
  },
  insecureRegistry: {
    key: 'insecureRegistry',
    value: true,
    with: { registry: 'registry.example.com/team/kf' },
    changes: { [info]: { builder: { insecureRegistries: ['registry.example.com'] } } },
  },
  gateway: {
    key: 'gateway',
    flag: '--gateway',
    value: 'infra/public',
    other: 'infra/other',
    changes: {
      [info]: { gateway: { namespace: 'infra', name: 'public', features: ['HTTPRouteBackendWeight'] } },
      [checkRoute]: viaGateway('infra', 'public'),
      [unknownRoutes]: { spec: { parentRefs: [{ namespace: 'infra', name: 'public' }], hostnames: ['*.apps.localhost'] } },
      [controllerPolicy]: lets('infra'),
      [pagesPolicy]: lets('infra'),
    },
    lacks: [...traefikObjects, certificateGrant, authority],
  },
  gatewayClass: {
    key: 'gatewayClass',
    flag: '--gateway-class',
    value: 'edge',
    other: 'other',
    changes: {
      'Gateway kf-system/kf': {
        spec: {
          gatewayClassName: 'edge',
          listeners: [
            { port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Selector' } } },
            { port: 443, protocol: 'HTTPS', allowedRoutes: { namespaces: { from: 'Selector' } } },
          ],
        },
      },
      [info]: { gateway: { namespace: 'kf-system', name: 'kf', features: ['HTTPRouteBackendWeight'] } },
      [checkRoute]: viaGateway('kf-system', 'kf'),
      [unknownRoutes]: viaGateway('kf-system', 'kf'),
      [controllerPolicy]: lets('kf-system'),
      [pagesPolicy]: lets('kf-system'),
    },
    adds: ['NetworkPolicy kf-system/kf-gateway-class'],
    lacks: [...traefikObjects, certificateGrant],
  },
  tlsSecret: {
    key: 'tlsSecret',
    flag: '--tls-secret',
    value: 'infra/apps',
    with: { tlsSecrets: { 'shop.localhost': 'infra/shop' } },
    changes: {
      [info]: { gateway: { https: { secrets: [{ domain: 'apps.localhost', namespace: 'infra', name: 'apps' }, shopSecret] } } },
      'Gateway kf-node/kf': {
        spec: {
          listeners: [
            { port: 8000 },
            { port: 8443, name: 'https-apps' },
            listenerOf('apps.localhost', { namespace: 'infra', name: 'apps' }),
            listenerOf('shop.localhost', { namespace: 'infra', name: 'shop' }),
          ],
        },
      },
      'ReferenceGrant infra/kf-gateway': { spec: { to: [{ name: 'apps' }, { name: 'shop' }] } },
    },
  },
  tlsSecrets: {
    key: 'tlsSecrets',
    value: { 'shop.localhost': 'infra/shop' },
    changes: {
      [info]: { gateway: { https: { secrets: [shopSecret] } } },
      'Gateway kf-node/kf': {
        spec: {
          listeners: [
            { port: 8000 },
            { port: 8443, name: 'https-apps' },
            listenerOf('shop.localhost', { namespace: 'infra', name: 'shop' }),
          ],
        },
      },
    },
    adds: ['ReferenceGrant infra/kf-gateway'],
  },
  tlsIssuer: {
    key: 'tlsIssuer',
    flag: '--tls-issuer',
    value: 'an-authority',
    other: 'kf-node/another',
    changes: { [info]: { gateway: { https: { issuer: { name: 'an-authority' } } } } },
    adds: ['RoleBinding kf-node/kf-controller-certificates'],
  },
};
