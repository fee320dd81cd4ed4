// Setup's knowledge about the cluster's network: the operator's settings, the existing network, and the input of the policies.

import { nodeType, serviceType, type Node, type Service } from '../../api/core.ts';
import type { KfInfo } from '../../api/kf-info.ts';
import { isRange } from '../../api/network-policy.ts';
import { resource, type KubeObject } from '../../api/object.ts';
import { defined } from '../../defined.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { NodeNetwork, SetupNetwork } from '../../../templates/setup/options.ts';

/** Keys of `setup.yaml`, and the flag `--network-policies`. */
export interface NetworkRequest {
  networkPolicies?: string | boolean;
  appEgress?: string[];
  appIngress?: string[];
}

interface EndpointSlice extends KubeObject {
  endpoints?: { addresses?: string[] }[];
}

const endpointSliceType = resource<EndpointSlice>('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices');

/** The existing network, before any settings. */
export type NetworkFacts = Omit<SetupNetwork, 'egress' | 'ingress'>;

interface WithPodRanges extends Node {
  spec?: Node['spec'] & { podCIDR?: string; podCIDRs?: string[] };
}

/** The first two addresses of a range: bridges and tunnels use them, and traffic of nodes then comes from there. */
function firstAddresses(range: string): string[] {
  const [base = ''] = range.split('/');
  const octets = base.split('.');
  return octets.length === 4 ? [base, [...octets.slice(0, 3), String(Number(octets[3]) + 1)].join('.')] : [base];
}

function nodeNetwork(nodes: WithPodRanges[]): NodeNetwork {
  const podRanges = nodes.flatMap(({ spec }) => spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR]));
  const isAddress = ({ type }: { type: string }): boolean => type === 'InternalIP' || type === 'ExternalIP';
  const own = nodes.flatMap(({ status }) => (status?.addresses ?? []).filter(isAddress).map(({ address }) => address));
  return {
    addresses: [...new Set([...own, ...podRanges.flatMap((range) => firstAddresses(range))])].sort(),
    podRanges: [...new Set(podRanges)].sort(),
  };
}

const clusterAddresses = (service: Service | undefined): string[] =>
  ((service?.spec as { clusterIPs?: string[] } | undefined)?.clusterIPs ?? []).filter((address) => address !== 'None');

/**
 * Reads nodes, name service and API server.
 * @param recorded the result of the last setup, so that a second one does not test again
 */
export async function readNetwork(cluster: Cluster, recorded: KfInfo | undefined): Promise<NetworkFacts> {
  const [nodes, dns, slices] = await Promise.all([
    cluster.list(nodeType),
    cluster.get(serviceType, 'kube-system', 'kube-dns'),
    cluster.list(endpointSliceType, { ns: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' }),
  ]);
  const own = nodeNetwork(nodes.items);
  const enforced = recorded?.network?.enforced;
  return {
    nodes: own,
    ipv6: [...own.podRanges, ...own.addresses].some((text) => text.includes(':')),
    dns: clusterAddresses(dns),
    apiServer: slices.items.flatMap(({ endpoints = [] }) => endpoints.flatMap(({ addresses = [] }) => addresses)).sort(),
    ...defined({ enforced }),
  };
}

/** True for a range of addresses, or for a valid name of a namespace. */
export function isPeer(entry: string): boolean {
  return isRange(entry) || /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(entry);
}

/** @throws KfError usage naming the entry that is neither a range nor a namespace */
function checkedPeers(key: string, entries: unknown): string[] {
  if (entries === undefined || entries === null) return [];
  const list: unknown[] = Array.isArray(entries) ? entries : [entries];
  return list.map((entry) => {
    if (typeof entry === 'string' && isPeer(entry)) return entry;
    throw new KfError('usage', `Incorrect Usage: ${key} takes ranges and names of namespaces, not '${String(entry)}'.`, {
      hints: [`${key}: ['10.20.0.0/16', databases]`],
    });
  });
}

/** `on` and `off`, also as YAML's truth values. */
function wantsPolicies(value: string | boolean | undefined): boolean {
  if (value === undefined || value === 'on' || value === true) return true;
  if (value === 'off' || value === false) return false;
  throw new KfError('usage', `Incorrect Usage: --network-policies takes on or off, not '${value}'.`);
}

/** The network part of the plan; empty when policies are switched off, or when nothing is known. @throws KfError usage */
export function resolveNetwork(request: NetworkRequest, facts: NetworkFacts | undefined): { network?: SetupNetwork } {
  const egress = checkedPeers('appEgress', request.appEgress);
  const ingress = checkedPeers('appIngress', request.appIngress);
  return wantsPolicies(request.networkPolicies) && facts !== undefined ? { network: { ...facts, egress, ingress } } : {};
}
