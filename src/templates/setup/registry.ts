// The in-cluster registry: distribution on a Unix socket behind kf's gate, the only listener.

import { registryKeySecretName } from '../../lib/api/registry-credentials.ts';
import type { KubeObject } from '../../lib/api/object.ts';
import { registryPod, restrictedContainer } from '../pod-security.ts';
import { systemNamespace, type SetupPlan } from './options.ts';
import { buildDeployment, buildService, buildServiceAccount } from './workload.ts';
import { defined } from '../../lib/defined.ts';

export const registryName = 'kf-registry';
const pushPort = 5000;
const pullPort = 5001;
/** Shared by both containers. A Unix socket buffers 208 KiB of an unread answer, a loopback connection 3.9 MB. */
const socketFolder = '/run/kf-registry';
const socketPath = `${socketFolder}/registry.sock`;

// The gate removes unfinished uploads, because it knows which ones continue.
const storageConfig = `version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: /var/lib/registry}
  delete: {enabled: true}
  maintenance: {uploadpurging: {enabled: false}}
http:
  net: unix
  addr: ${socketPath}
  relativeurls: true
`;

/** `localhost:<nodePort>/`: the prefix of images for the kubelet; containerd pulls from it over plain HTTP. */
export function pullPrefix(plan: SetupPlan): string {
  return plan.registry === undefined ? `localhost:${plan.nodePort}/` : `${plan.registry.host}/${plan.registry.prefix}`;
}

/** Host (and port) of the push port for pods and the service proxy. */
export function pushHost(plan: SetupPlan): string {
  return plan.registry === undefined ? `${registryName}.${systemNamespace}.svc:${pushPort}` : plan.registry.host;
}

function claim(plan: SetupPlan): KubeObject {
  const spec = {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: plan.registrySize } },
    ...defined({ storageClassName: plan.storageClass }),
  };
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: registryName, namespace: systemNamespace }, ...{ spec } };
}

function containers(plan: SetupPlan): Record<string, unknown>[] {
  return [
    {
      name: 'registry',
      image: plan.images.registry,
      imagePullPolicy: 'IfNotPresent',
      args: ['/etc/kf-registry/config.yml'],
      // The official image's entrypoint adds `serve` before a file; another image may have no entrypoint, so the program is named.
      command: ['registry', 'serve'],
      env: [
        { name: 'OTEL_TRACES_EXPORTER', value: 'none' },
        // Without it, Go lets its heap grow to twice the memory in use.
        { name: 'GOMEMLIMIT', value: '768MiB' },
      ],
      // The gate allows 128 exchanges at a time, and each holds up to 5 MB: src/controller/gate/exchanges.ts.
      resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '1Gi' } },
      securityContext: restrictedContainer,
      volumeMounts: [
        { name: 'data', mountPath: '/var/lib/registry' },
        { name: 'config', mountPath: '/etc/kf-registry' },
        { name: 'socket', mountPath: socketFolder },
      ],
    },
    {
      name: 'gate',
      image: plan.controllerImage ?? plan.images.node,
      imagePullPolicy: 'IfNotPresent',
      command: ['node', '--max-old-space-size=64', '/kf/gate.mjs'],
      env: [
        { name: 'KF_GATE_PUSH_PORT', value: String(pushPort) },
        { name: 'KF_GATE_PULL_PORT', value: String(pullPort) },
        { name: 'KF_GATE_UPSTREAM', value: `unix:${socketPath}` },
        { name: 'KF_GATE_KEYS', value: '/etc/kf-registry-key' },
        { name: 'KF_GATE_DATA', value: '/var/lib/registry' },
        ...(plan.registrySpaceQuotaBytes > 0 ? [{ name: 'KF_GATE_SPACE_QUOTA', value: String(plan.registrySpaceQuotaBytes) }] : []),
      ],
      ports: [
        { name: 'push', containerPort: pushPort },
        { name: 'pull', containerPort: pullPort },
      ],
      // Ready at once; not ready after it has been nearly full for a while.
      readinessProbe: { httpGet: { path: '/readyz', port: pushPort }, periodSeconds: 1, failureThreshold: 60 },
      // 160 MiB for itself, and up to 4 MiB in the kernel for each of 128 clients that stop reading.
      resources: { requests: { cpu: '10m', memory: '48Mi' }, limits: { memory: '672Mi' } },
      securityContext: restrictedContainer,
      volumeMounts: [
        { name: 'bundle', mountPath: '/kf', readOnly: true },
        { name: 'key', mountPath: '/etc/kf-registry-key', readOnly: true },
        { name: 'data', mountPath: '/var/lib/registry' },
        { name: 'socket', mountPath: socketFolder },
      ],
    },
  ];
}

/** All objects of the registry except its key, which is created once and never overwritten. */
export function buildRegistry(plan: SetupPlan, bundle: { name: string; hash: string }): KubeObject[] {
  const at = (name: string) => ({ namespace: systemNamespace, name, app: registryName });
  return [
    buildServiceAccount(systemNamespace, registryName),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: registryName, namespace: systemNamespace },
      ...{ data: { 'config.yml': storageConfig } },
    },
    claim(plan),
    buildDeployment({
      name: registryName,
      namespace: systemNamespace,
      serviceAccount: registryName,
      token: false,
      podSecurity: registryPod,
      graceSeconds: 5,
      containers: containers(plan),
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: registryName } },
        { name: 'config', configMap: { name: registryName } },
        { name: 'socket', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'bundle', configMap: { name: bundle.name } },
        { name: 'key', secret: { secretName: registryKeySecretName } },
      ],
    }),
    buildService(at(registryName), 'ClusterIP', [{ name: 'push', port: pushPort }], true),
    buildService(at(`${registryName}-pull`), 'NodePort', [{ name: 'pull', port: pullPort, nodePort: plan.nodePort }], true),
  ];
}
