// The cluster's registry, with its gate, goes away and comes back; its volume stays.

import { kubectl } from './kf.ts';

/** Returns when nothing of the registry runs any more. */
export async function stopRegistry(): Promise<void> {
  await kubectl('-n', 'kf-system', 'scale', 'deployment/kf-registry', '--replicas=0');
  await kubectl('-n', 'kf-system', 'wait', '--for=delete', 'pod', '-l', 'app=kf-registry', '--timeout=120s');
}

/** Returns when the registry serves again; it may have been there all the time. */
export async function startRegistry(): Promise<void> {
  await kubectl('-n', 'kf-system', 'scale', 'deployment/kf-registry', '--replicas=1');
  await kubectl('-n', 'kf-system', 'rollout', 'status', 'deployment/kf-registry', '--timeout=120s');
}
