// NetworkPolicy of networking.k8s.io/v1, as far as kf writes it, and the addresses that no policy allows as internet.

import { BlockList, isIP } from 'node:net';
import { defined } from '../defined.ts';
import { resource } from './object.ts';
import type { KubeObject } from './object.ts';

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[];
}

export interface NetworkPeer {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: { cidr: string; except?: string[] };
}

export interface NetworkPort {
  protocol: 'TCP' | 'UDP';
  port: number;
  /** Last port of a range. */
  endPort?: number;
}

export interface NetworkPolicy extends KubeObject {
  spec: {
    podSelector: LabelSelector;
    policyTypes: ('Ingress' | 'Egress')[];
    ingress?: { from?: NetworkPeer[]; ports?: NetworkPort[] }[];
    egress?: { to?: NetworkPeer[]; ports?: NetworkPort[] }[];
  };
}

export const networkPolicyType = resource<NetworkPolicy>('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies');

/** Addresses of clusters, machines and clouds, never of the internet: private, shared and link-local ones (RFC 1918, 6598, 3927, 4193, 4291). */
const insideIpv4 = ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];

/**
 * The IPv6 ranges that a gateway of the network translates to a range of IPv4 addresses: NAT64 (RFC 6052) and 6to4 (RFC 3056). An app could
 * reach a private IPv4 address by them.
 */
function translated(range: string): string[] {
  const [address = '', bits = ''] = range.split('/');
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const groups = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  // The cluster warns about an address that is not in its shortest form.
  const shortest = (long: string): string => new URL(`http://[${long}]`).hostname.slice(1, -1);
  return [`${shortest(`64:ff9b::${groups}`)}/${96 + Number(bits)}`, `${shortest(`2002:${groups}::`)}/${16 + Number(bits)}`];
}

const insideRanges = {
  ipv4: insideIpv4,
  ipv6: ['::/127', 'fc00::/7', 'fe80::/10', ...insideIpv4.flatMap(translated)],
} as const;

const inside = new BlockList();
for (const family of ['ipv4', 'ipv6'] as const) {
  for (const range of insideRanges[family]) {
    const [address = '', bits] = range.split('/');
    inside.addSubnet(address, Number(bits), family);
  }
}

/** True for an address that does not count as internet. */
export function isInside(address: string): boolean {
  return inside.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** An address as the smallest range. */
export function hostRange(address: string): string {
  return isIP(address) === 6 ? `${address}/128` : `${address}/32`;
}

/**
 * The internet as peers: everything except {@link insideRanges} and the given addresses, which may be any.
 * @param ipv6 without it only IPv4 is named, because the network plugin may not know IPv6
 */
export function internet(closed: readonly string[], ipv6: boolean): NetworkPeer[] {
  const more = [...new Set(closed)].filter((address) => isIP(address) > 0 && !isInside(address)).sort();
  const block = (cidr: string, ranges: readonly string[], version: number): NetworkPeer => ({
    ipBlock: { cidr, except: [...ranges, ...more.filter((address) => isIP(address) === version).map((address) => hostRange(address))] },
  });
  const closedIpv4 = more.filter((address) => isIP(address) === 4).flatMap((address) => translated(hostRange(address)));
  return [block('0.0.0.0/0', insideRanges.ipv4, 4), ...(ipv6 ? [block('::/0', [...insideRanges.ipv6, ...closedIpv4], 6)] : [])];
}

/** True for `10.0.0.0/8`, `fd00::/8`. */
export function isRange(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = isIP(address);
  return version > 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32);
}

/** A range, or all pods of the namespace of that name. */
export function peerNamed(name: string): NetworkPeer {
  return isRange(name) ? { ipBlock: { cidr: name } } : namespacePeer(name);
}

/** Pods of a namespace: all, or those with these labels. */
export function namespacePeer(name: string, matchLabels?: Record<string, string>): NetworkPeer {
  return {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
    ...defined({ podSelector: matchLabels && { matchLabels } }),
  };
}
