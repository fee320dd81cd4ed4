// The short-lived pod that reads the builder image and reports its contents.

import type { Pod } from '../lib/api/pod-kind.ts';
import { labels } from '../lib/api/group.ts';
import { nonRootContainer } from './pod-security.ts';

export const builderPodName = 'kf-builder-info';
/** The image that a builder pod reads. */
export const builderImageAnnotation = 'kf.cloudfoundry.org/builder-image';

// The kubelet keeps 4096 bytes of it.
const script = `set -u
. /etc/os-release 2>/dev/null || true
O=$(grep -E '^ *(\\[\\[|id|version)' /cnb/order.toml 2>/dev/null | gzip -9c | base64 | tr -d '\\n')
[ -x /cnb/lifecycle/lifecycle ] || [ -x /cnb/lifecycle/builder ] || { echo "ERROR: there is no CNB lifecycle in the image"; exit 1; }
[ \${#O} -le 3600 ] || O=
printf 'uid=%s\\ngid=%s\\nmachine=%s\\nstack=%s\\ndescription=%s\\norder=%s\\n' \\
  "\${CNB_USER_ID:-}" "\${CNB_GROUP_ID:-}" "$(uname -m)" "\${CNB_STACK_ID:-\${ID:-linux}-\${VERSION_ID:-0}}" "\${PRETTY_NAME:-}" "$O" > /dev/termination-log
`;

/** Runs as any user except root, because it only reads. */
export function builderPod(namespace: string, image: string): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: builderPodName, namespace, labels: { [labels.managedBy]: 'kf' }, annotations: { [builderImageAnnotation]: image } },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 1,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'look',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['sh', '-c', script],
          terminationMessagePolicy: 'FallbackToLogsOnError',
          resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
          securityContext: nonRootContainer,
        },
      ],
    },
  };
}
