// A pod whose only purpose is that a kubelet pulls its image.

import type { Pod } from '../../lib/api/core.ts';
import { restrictedContainer, restrictedPod } from './pod-security.ts';

export function buildPullTest(namespace: string, name: string, image: string, pullSecret: string): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: { app: 'kf-pull-test' } },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: restrictedPod,
      imagePullSecrets: [{ name: pullSecret }],
      containers: [{ name: 'pull', image, imagePullPolicy: 'Always', command: ['/none'], securityContext: restrictedContainer }],
    },
  } as Pod;
}
