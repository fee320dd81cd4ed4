// The common Deployment of the controller, the registry and the gateway.

import type { KubeObject } from '../../lib/api/object.ts';
import { defined } from '../../lib/defined.ts';

export interface DeploymentInput {
  name: string;
  namespace: string;
  serviceAccount: string;
  containers: Record<string, unknown>[];
  volumes?: Record<string, unknown>[];
  podSecurity?: Record<string, unknown>;
  annotations?: Record<string, string>;
  strategy?: 'Recreate' | 'RollingUpdate';
  /** Mounts the account's token; only for programs that use the API server. */
  token: boolean;
  graceSeconds?: number;
}

export interface PortInput {
  name: string;
  port: number;
  target?: number;
  nodePort?: number;
}

/** One replica, replaced in place, with the label `app` = its name. */
export function buildDeployment(input: DeploymentInput): KubeObject & { spec: unknown } {
  const labels = { app: input.name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: input.name, namespace: input.namespace, labels },
    spec: {
      replicas: 1,
      revisionHistoryLimit: 2,
      selector: { matchLabels: labels },
      strategy: { type: input.strategy ?? 'Recreate' },
      template: {
        metadata: { labels, ...defined({ annotations: input.annotations }) },
        spec: {
          serviceAccountName: input.serviceAccount,
          automountServiceAccountToken: input.token,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: input.graceSeconds ?? 10,
          ...defined({ securityContext: input.podSecurity }),
          containers: input.containers,
          ...defined({ volumes: input.volumes }),
        },
      },
    },
  };
}

export function buildServiceAccount(namespace: string, name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace }, ...{ automountServiceAccountToken: false } };
}

/** A Service for the pods of `buildDeployment`. */
export function buildService(
  where: { namespace: string; name: string; app: string },
  type: 'ClusterIP' | 'NodePort' | 'LoadBalancer',
  ports: PortInput[],
  /** Also sends requests to pods that are not ready, because they report why. */
  publishNotReady = false,
): KubeObject & { spec: unknown } {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: where.name, namespace: where.namespace, labels: { app: where.app } },
    spec: {
      type,
      ...(publishNotReady ? { publishNotReadyAddresses: true } : {}),
      selector: { app: where.app },
      ports: ports.map((port) => ({
        name: port.name,
        port: port.port,
        targetPort: port.target ?? port.port,
        protocol: 'TCP',
        ...defined({ nodePort: port.nodePort }),
      })),
    },
  };
}
