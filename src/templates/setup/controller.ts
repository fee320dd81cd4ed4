// The controller: its bundle in an immutable ConfigMap named by its content, and a Deployment that runs it on a stock Node image.

import { createHash } from 'node:crypto';
import type { KubeObject } from '../../lib/api/object.ts';
import { restrictedContainer, restrictedPod } from '../pod-security.ts';
import { rootNamespace, systemNamespace, type SetupPlan } from './options.ts';
import { buildDeployment, buildService, buildServiceAccount } from './workload.ts';

export const controllerName = 'kf-controller';
const httpPort = 8080;
/** The rest is for Node itself, new objects, and buffers of requests. */
const heapShare = 0.7;

/** Program name (`controller.mjs`, `gate.mjs`, `fetch.mjs`) to its text. */
export type ControllerPrograms = Record<string, string>;

/** `kf-bundle-<10 hex of the content's hash>`. */
export function bundleName(programs: ControllerPrograms): { name: string; hash: string } {
  const hash = createHash('sha256')
    .update(JSON.stringify(Object.entries(programs).sort()))
    .digest('hex')
    .slice(0, 10);
  return { name: `kf-bundle-${hash}`, hash };
}

export function buildBundle(programs: ControllerPrograms): KubeObject {
  const metadata = { name: bundleName(programs).name, namespace: systemNamespace };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...{ immutable: true, data: programs } };
}

/**
 * The heap limit is well below the container's limit, so that the process collects garbage before the kernel kills it. New objects get little room, and
 * garbage is collected early: by itself Node took 290 MiB for 1,000 apps, of which 50 MiB were in use.
 */
const heapFlags = (memoryMB: number): string[] => [
  `--max-old-space-size=${Math.floor(memoryMB * heapShare)}`,
  '--max-semi-space-size=1',
  '--optimize-for-size',
];

const env = [
  // Otherwise glibc keeps freed memory separately for each thread.
  { name: 'MALLOC_ARENA_MAX', value: '1' },
  // Each read of a connection takes a buffer of 64 KiB for a moment. Small objects between such buffers keep glibc from giving them back.
  { name: 'MALLOC_MMAP_THRESHOLD_', value: '32768' },
  { name: 'MALLOC_TRIM_THRESHOLD_', value: '65536' },
  { name: 'MALLOC_TOP_PAD_', value: '65536' },
  { name: 'KF_ROOT_NAMESPACE', value: rootNamespace },
  { name: 'KF_SYSTEM_NAMESPACE', value: systemNamespace },
  { name: 'KF_BUNDLE_DIR', value: '/kf' },
  { name: 'KF_HTTP_PORT', value: String(httpPort) },
  { name: 'KF_POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
];

export function buildController(plan: SetupPlan, bundle: { name: string }): KubeObject[] {
  const container = {
    name: 'controller',
    image: plan.controllerImage ?? plan.images.node,
    imagePullPolicy: 'IfNotPresent',
    command: ['node', ...heapFlags(plan.controllerMemoryMB), '/kf/controller.mjs'],
    env,
    ports: [{ name: 'http', containerPort: httpPort }],
    readinessProbe: { httpGet: { path: '/readyz', port: httpPort }, periodSeconds: 1, failureThreshold: 60 },
    // A node that gives it little CPU time must not restart it as well: its successor first waits for the Lease and reads everything again.
    livenessProbe: { httpGet: { path: '/healthz', port: httpPort }, periodSeconds: 20, timeoutSeconds: 10, failureThreshold: 3 },
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: `${plan.controllerMemoryMB}Mi` } },
    securityContext: restrictedContainer,
    volumeMounts: [
      { name: 'bundle', mountPath: '/kf', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ],
  };
  return [
    buildServiceAccount(systemNamespace, controllerName),
    buildDeployment({
      name: controllerName,
      namespace: systemNamespace,
      serviceAccount: controllerName,
      token: true,
      podSecurity: restrictedPod,
      containers: [container],
      volumes: [
        { name: 'bundle', configMap: { name: bundle.name } },
        { name: 'tmp', emptyDir: {} },
      ],
      strategy: 'RollingUpdate',
    }),
    buildService({ namespace: systemNamespace, name: controllerName, app: controllerName }, 'ClusterIP', [
      { name: 'http', port: httpPort },
    ]),
  ];
}
