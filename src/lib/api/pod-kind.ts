// The kind Pod. Apart from the other kinds: only the rooms that know pods may import it (.dependency-cruiser.mjs); all others ask for instances.

import { resource, type KubeObject } from './object.ts';
import type { PodSpec, PodStatus } from './pod.ts';

export interface Pod extends KubeObject {
  spec?: PodSpec;
  status?: PodStatus;
}

export const podType = resource<Pod>('', 'v1', 'Pod', 'pods');
