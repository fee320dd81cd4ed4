// What becomes of a pod whose node does not answer.

import type { Toleration } from '../lib/api/pod.ts';

/** How long a pod stays bound to a node that is silent. */
const nodeLossSeconds = 30;

const leave = (key: string): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: nodeLossSeconds });

/** Instead of the five minutes that Kubernetes gives to every pod. */
export const leaveLostNode: Toleration[] = [leave('node.kubernetes.io/not-ready'), leave('node.kubernetes.io/unreachable')];
