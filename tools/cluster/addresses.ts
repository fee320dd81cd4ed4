// Addresses and ports. Those inside are the same in every cluster, because each has its own network namespace.

export const podRangeOfCluster = '10.244.0.0/16';
export const serviceRange = '10.96.0.0/16';
export const apiServiceAddress = '10.96.0.1';
export const dnsServiceAddress = '10.96.0.10';
export const apiPort = 6443;
export const registryPort = 5000;
export const privateRegistryPort = 5001;
export const npmMirrorPort = 4873;
export const bridge = 'kf0';

/** A node with its number in the cluster. */
export interface NodePlace {
  /** Name of its Node object, and the host name inside. */
  name: string;
  /** The CNI bridge has this address, so it exists before anything is started and needs no further device. */
  address: string;
  podRange: string;
}

/** The node with this number; the control plane runs on number 0. */
export function nodePlace(index: number): NodePlace {
  return { name: `kf-node-${String(index)}`, address: `10.244.${String(index)}.1`, podRange: `10.244.${String(index)}.0/24` };
}

/** The device of the first node that leads to the node with this number. */
export function nodeDevice(index: number): string {
  return `kfn${String(index)}`;
}

export const firstNode = nodePlace(0);
/** The registry in the names of images that are in the replacement of a public registry. */
export const nodeRegistry = `${firstNode.address}:${String(registryPort)}`;
/** The same images, for this user only. */
export const privateRegistry = `${firstNode.address}:${String(privateRegistryPort)}`;
export const privateRegistryUser = { name: 'kf-user', password: 's3cret-of-tests' };

/** The two ends of the veth pair between the host and cluster number `n` (1 to 254). */
export function hostLink(n: number): { device: string; hostAddress: string; clusterAddress: string } {
  return { device: `kfh${String(n)}`, hostAddress: `10.99.${String(n)}.1`, clusterAddress: `10.99.${String(n)}.2` };
}
