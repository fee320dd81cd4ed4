// The NetworkPolicies of a space: apps and tasks may connect to their own space, the gateway and the internet; builds only to the addresses that a
// build needs.

import { labels } from '../lib/api/group.ts';
import type { KfInfo, NetworkSettings } from '../lib/api/kf-info.ts';
import { internet, namespacePeer, networkPolicyType, peerNamed } from '../lib/api/network-policy.ts';
import type { NetworkPeer, NetworkPolicy, NetworkPort } from '../lib/api/network-policy.ts';
import { apiVersionOf } from '../lib/api/object.ts';

/** Names of the policies in every space. */
export const spacePolicyNames = { apps: 'kf-apps', builds: 'kf-builds' } as const;

type Egress = NonNullable<NetworkPolicy['spec']['egress']>[number];

/** Label of setup's gateway, registry and controller pods. */
const app = (name: string): Record<string, string> => ({ app: name });
const tcp = (port: number): NetworkPort => ({ protocol: 'TCP', port });

export function networkPolicy(namespace: string, name: string, spec: NetworkPolicy['spec']): NetworkPolicy {
  return {
    apiVersion: apiVersionOf(networkPolicyType),
    kind: networkPolicyType.kind,
    metadata: { name, namespace, labels: { [labels.managedBy]: 'kf' } },
    spec,
  };
}

/** The gateway's pods: setup's own by their label, others by their namespace. */
function gatewayPeer({ gateway }: KfInfo): NetworkPeer {
  return gateway.internalAddress === undefined ? namespacePeer(gateway.namespace) : namespacePeer(gateway.namespace, app('kf-gateway'));
}

/**
 * The controller sends requests directly to an instance when kf's own gateway does not serve it: with a gateway of the operator, and for an app
 * without a route.
 */
function controllerPeer({ controller }: KfInfo): NetworkPeer {
  return namespacePeer(controller.namespace, app('kf-controller'));
}

/** Ports at which a gateway accepts requests for apps: that of setup's own, and the usual ones of others. */
function gatewayPorts({ gateway }: KfInfo): NetworkPort[] {
  return (gateway.internalAddress === undefined ? [80, 443, 8000, 8443, 10_080, 10_443] : [8000]).map(tcp);
}

/** NodeLocal DNSCache listens here on every node that has it; nothing else uses this address. */
const nodeLocalDns = '169.254.20.10/32';

function nameService(settings: NetworkSettings): Egress {
  const addresses = [nodeLocalDns, ...settings.dns.map((address) => `${address}/${address.includes(':') ? '128' : '32'}`)];
  return {
    to: [namespacePeer('kube-system'), ...addresses.map((cidr) => ({ ipBlock: { cidr } }))],
    ports: [
      { protocol: 'UDP', port: 53 },
      { protocol: 'TCP', port: 53 },
    ],
  };
}

export interface SpaceNetwork {
  info: KfInfo;
  settings: NetworkSettings;
  /** Addresses of nodes and of the API server; those that would count as internet are excluded from it. */
  closed: readonly string[];
  builds: readonly BuildTarget[];
}

/** A target that builds may reach in addition to DNS and the push port. */
export interface BuildTarget {
  /** A range, a namespace, or the internet. */
  to: { range: string } | { namespace: string } | 'internet';
  /** Left out: any. */
  port?: number;
}

function appsPolicy(namespace: string, { info, settings, closed }: SpaceNetwork): NetworkPolicy {
  return networkPolicy(namespace, spacePolicyNames.apps, {
    podSelector: { matchExpressions: [{ key: labels.buildGuid, operator: 'DoesNotExist' }] },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [{ podSelector: {} }, gatewayPeer(info), controllerPeer(info), ...settings.ingress.map(peerNamed)] }],
    egress: [
      nameService(settings),
      { to: [{ podSelector: {} }, ...internet(closed, settings.ipv6), ...settings.egress.map(peerNamed)] },
      { to: [gatewayPeer(info)], ports: gatewayPorts(info) },
    ],
  });
}

function targetRule({ to, port }: BuildTarget, { closed, settings }: SpaceNetwork): Egress {
  const peers = to === 'internet' ? internet(closed, settings.ipv6) : [peerNamed('range' in to ? to.range : to.namespace)];
  return { to: peers, ...(port === undefined ? {} : { ports: [tcp(port)] }) };
}

function buildsPolicy(namespace: string, network: SpaceNetwork): NetworkPolicy {
  const { registry } = network.info;
  return networkPolicy(namespace, spacePolicyNames.builds, {
    podSelector: { matchExpressions: [{ key: labels.buildGuid, operator: 'Exists' }] },
    policyTypes: ['Ingress', 'Egress'],
    egress: [
      nameService(network.settings),
      { to: [namespacePeer(registry.namespace, app(registry.service))], ports: [tcp(registry.port)] },
      ...network.builds.map((target) => targetRule(target, network)),
    ],
  });
}

/** The policies of one space. */
export function spacePolicies(namespace: string, network: SpaceNetwork): NetworkPolicy[] {
  return [appsPolicy(namespace, network), buildsPolicy(namespace, network)];
}
