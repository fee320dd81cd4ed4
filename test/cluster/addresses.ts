// Addresses and ports. Those inside are the same in every cluster: each has a network namespace of its own.

/** The node's address inside: the CNI bridge carries it, so it exists before the API server starts and needs no extra device. */
export const nodeAddress = '10.244.0.1';
export const podRange = '10.244.0.0/24';
export const podRangeOfCluster = '10.244.0.0/16';
export const serviceRange = '10.96.0.0/16';
export const apiServiceAddress = '10.96.0.1';
export const dnsServiceAddress = '10.96.0.10';
export const apiPort = 6443;
export const registryPort = 5000;
export const bridge = 'kf0';
/** The first node's name; it is the object name of the Node and the host name inside. */
export const nodeName = 'kf-node-0';
/** What images are called that lie in the stand-in for a public registry. */
export const nodeRegistry = `${nodeAddress}:${String(registryPort)}`;

/** The two ends of the veth pair between the host and cluster number `n` (1 to 254). */
export function hostLink(n: number): { device: string; hostAddress: string; clusterAddress: string } {
  return { device: `kfh${String(n)}`, hostAddress: `10.99.${String(n)}.1`, clusterAddress: `10.99.${String(n)}.2` };
}
