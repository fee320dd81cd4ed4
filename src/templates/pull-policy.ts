// When a kubelet asks the registry for an image that its node has.

import type { Container } from '../lib/api/pod.ts';

/** The reference names always the same image. The others are tags of images that the controller could not read. */
export const hasDigest = (image: string): boolean => image.includes('@sha256:');

/** For the containers of apps and tasks: a cached image is the right one by its digest only, and a tag may have moved. */
export const pullPolicyOf = (image: string): NonNullable<Container['imagePullPolicy']> => (hasDigest(image) ? 'IfNotPresent' : 'Always');
