// A pod whose only purpose is that a kubelet pulls its image.

import type { Secret } from '../../lib/api/core.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import { restrictedContainer, restrictedPod } from '../pod-security.ts';

/** @param node the node that pulls; if left out, the scheduler chooses */
export function buildPullTest(namespace: string, name: string, image: string, pullSecret: string, node?: string): Pod {
  const onNode = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [onNode] } } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: 'kf-pull-test' } },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      ...(node === undefined ? {} : { affinity }),
      securityContext: restrictedPod,
      imagePullSecrets: [{ name: pullSecret }],
      containers: [{ name: 'pull', image, imagePullPolicy: 'Always', command: ['/none'], securityContext: restrictedContainer }],
    },
  } as Pod;
}

/** The credential of the pull test, only for this test. */
export function buildPullSecret(namespace: string, name: string, dockerConfig: string): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': dockerConfig },
  };
}
