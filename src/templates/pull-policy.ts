// When a kubelet asks the registry for an image that its node has.

import type { Container } from '../lib/api/pod.ts';

/** The reference names always the same image. The others are tags of images that the controller could not read. */
export const hasDigest = (image: string): boolean => image.includes('@sha256:');

/** `latest`, which is also the tag of a reference without one. */
const isLatest = (image: string): boolean => {
  const [, tag = 'latest'] = /:([\w.-]+)$/.exec(image.slice(image.lastIndexOf('/') + 1)) ?? [];
  return tag === 'latest';
};

/**
 * For the containers of apps and tasks, the default of Kubernetes: a node asks for `latest` at each start, and other tags may be only on the nodes
 * (kubernetes.io/docs/concepts/containers/images).
 */
export const pullPolicyOf = (image: string): NonNullable<Container['imagePullPolicy']> =>
  !hasDigest(image) && isLatest(image) ? 'Always' : 'IfNotPresent';
