// What keeps a container of a pod from starting: an image that cannot be pulled, or a container that cannot be created. Pure.

import type { Pod } from '../../lib/api/pod-kind.ts';
import type { ContainerStatus } from '../../lib/api/pod.ts';

/**
 * Time for more than one try of a kubelet that could not read a Secret or a ConfigMap. It waits 1 s for the API server, and tries again after 10 s to 30 s
 * (kubernetes/pkg/kubelet: `watch_based_manager.go`, `backOffPeriod`, `imageBackOffPeriod`).
 */
const kubeletPatienceMs = 45_000;

const imageReasons = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);
const createReasons = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'PreCreateHookError',
  'PreStartHookError',
  'PostStartHookError',
]);
const hopelessImage =
  /not found|manifest unknown|unauthorized|denied|forbidden|no match for platform|invalid reference|InvalidImageName|Never/i;
/** In the words of containerd and CRI-O: no credential was used. If the pod names one, the kubelet pulls without it when it cannot read its Secret. */
const withoutCredential = /no basic auth credentials|anonymous token|insufficient_scope|authentication required/i;
const credentialUnread = 'ImagePull without credential';
/** Before Kubernetes 1.32, a kubelet that waits for its next try does not say why the last one failed. */
const backOffAlone = /^(Back-off pulling image "[^"]*")?$/;
const unreadObject = /failed to sync (secret|configmap) cache|object "[^"]*"\/"[^"]*" not registered/i;
const hopelessContainer = /non-root|runAsNonRoot|will run as root/i;

export interface Obstacle {
  reason: 'ImagePull' | 'CreateContainer';
  /** What its first sight on the pod is remembered by. */
  cause: string;
  /** It does not pass by itself. */
  isHopeless: boolean;
  /** How long it may last, if that is not as long as others may. */
  patienceMs?: number;
}

/**
 * What the container waits for although it should start; undefined when nothing is in its way.
 * @param wasSeen tells whether a cause was seen on the container before
 */
export function obstacleOf({ spec }: Pod, { state }: ContainerStatus, wasSeen: (cause: string) => boolean): Obstacle | undefined {
  const { reason = '', message = '' } = state?.waiting ?? {};
  if (imageReasons.has(reason)) {
    const isRepeated = reason === 'ImagePullBackOff' && backOffAlone.test(message) && wasSeen(credentialUnread);
    if (isRepeated || ((spec?.imagePullSecrets ?? []).length > 0 && withoutCredential.test(message)))
      return { reason: 'ImagePull', cause: credentialUnread, isHopeless: false, patienceMs: kubeletPatienceMs };
    return { reason: 'ImagePull', cause: 'ImagePull', isHopeless: hopelessImage.test(`${reason} ${message}`) };
  }
  if (createReasons.has(reason)) {
    if (unreadObject.test(message))
      return { reason: 'CreateContainer', cause: `${reason} unread`, isHopeless: false, patienceMs: kubeletPatienceMs };
    return { reason: 'CreateContainer', cause: reason, isHopeless: hopelessContainer.test(message) };
  }
  return undefined;
}

/** The Secrets that the pod names for its pulls, for an image that its registry has refused; the credential may be another one, of the node. */
export function credentialOfPulls({ spec }: Pod): string {
  const names = (spec?.imagePullSecrets ?? []).map(({ name }) => `'${name}'`);
  if (names.length === 0) return 'The pod names no Secret with a credential.';
  return `The pod names ${names.length === 1 ? 'Secret' : 'the Secrets'} ${names.join(', ')} for its pulls.`;
}
