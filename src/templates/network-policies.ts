// The NetworkPolicies of a space: apps and tasks may connect to the gateway, the internet, and pods of their own space that are no apps; builds only to
// the addresses that a build needs. Those of an app: what its network policies allow.

import { kinds, labels } from '../lib/api/group.ts';
import type { KfInfo, NetworkSettings } from '../lib/api/kf-info.ts';
import { internet, namespacePeer, networkPolicyType, peerNamed } from '../lib/api/network-policy.ts';
import type { LabelSelector, NetworkPeer, NetworkPolicy, NetworkPort } from '../lib/api/network-policy.ts';
import { sha224 } from '../lib/api/names.ts';
import { apiVersionOf, type Stored } from '../lib/api/object.ts';
import type { CFApp, CFNetworkPolicy, CFNetworkPolicySpec } from '../lib/api/types.generated.ts';
import { defined } from '../lib/defined.ts';
import { assemble, ownerReference, type Authorship } from './metadata.ts';

/** Names of the policies in every space. */
export const spacePolicyNames = { apps: 'kf-apps', builds: 'kf-builds' } as const;

type Egress = NonNullable<NetworkPolicy['spec']['egress']>[number];

/** Label of setup's gateway, registry and controller pods. */
const app = (name: string): Record<string, string> => ({ app: name });
const tcp = (port: number): NetworkPort => ({ protocol: 'TCP', port });

/** A policy as the API server keeps it: without empty lists of rules. One that has them would differ from it, and be written again and again. */
export function networkPolicy(
  namespace: string,
  name: string,
  { ingress = [], egress = [], ...spec }: NetworkPolicy['spec'],
): NetworkPolicy {
  return {
    apiVersion: apiVersionOf(networkPolicyType),
    kind: networkPolicyType.kind,
    metadata: { name, namespace, labels: { [labels.managedBy]: 'kf' } },
    spec: { ...spec, ...(ingress.length > 0 ? { ingress } : {}), ...(egress.length > 0 ? { egress } : {}) },
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
  const own = gateway.https === undefined ? [8000] : [8000, 8443];
  return (gateway.internalAddress === undefined ? [80, 443, 8000, 8443, 10_080, 10_443] : own).map(tcp);
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

/**
 * Pods of the own space that are no instances of an app, a task or a build, for example those of a database operator. Apps reach each other only as
 * their network policies allow (decision 59).
 */
const besideApps: NetworkPeer = { podSelector: { matchExpressions: [{ key: labels.appGuid, operator: 'DoesNotExist' }] } };

function appsPolicy(namespace: string, { info, settings, closed }: SpaceNetwork): NetworkPolicy {
  return networkPolicy(namespace, spacePolicyNames.apps, {
    podSelector: { matchExpressions: [{ key: labels.buildGuid, operator: 'DoesNotExist' }] },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [besideApps, gatewayPeer(info), controllerPeer(info), ...settings.ingress.map(peerNamed)] }],
    egress: [
      nameService(settings),
      { to: [besideApps, ...internet(closed, settings.ipv6), ...settings.egress.map(peerNamed)] },
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

/** The instances and tasks of an app, without its builds. */
const ofApp = (guid: string): LabelSelector => ({
  matchLabels: { [labels.appGuid]: guid },
  matchExpressions: [{ key: labels.buildGuid, operator: 'DoesNotExist' }],
});

interface AppRule {
  peer: NetworkPeer;
  ports: NetworkPort[];
}

function appRule({ spec: { peer, protocol, port, endPort } }: CFNetworkPolicy): AppRule {
  return {
    peer: { ...namespacePeer(peer.space), podSelector: ofApp(peer.app) },
    ports: [{ protocol: protocol === 'udp' ? 'UDP' : 'TCP', port, ...defined({ endPort }) }],
  };
}

/** Name of the policy of one app. */
export const appPolicyName = (guid: string): string => `kf-app-${guid}`;

/** What these network policies allow to an app, in addition to the policy of its space. */
export function appNetworkPolicy(app: Stored<CFApp>, policies: readonly Stored<CFNetworkPolicy>[]): NetworkPolicy {
  const { namespace, name } = app.metadata;
  // A constant order: a store returns the object that changed last at the end.
  const rules = (wanted: CFNetworkPolicySpec['direction']): AppRule[] =>
    policies
      .filter(({ spec }) => spec.direction === wanted)
      .toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name))
      .map(appRule);
  const policy = networkPolicy(namespace, appPolicyName(name), {
    podSelector: ofApp(name),
    policyTypes: ['Ingress', 'Egress'],
    ingress: rules('accepts').map(({ peer, ports }) => ({ from: [peer], ports })),
    egress: rules('connects').map(({ peer, ports }) => ({ to: [peer], ports })),
  });
  const metadata = {
    ...policy.metadata,
    labels: { ...policy.metadata.labels, [labels.appGuid]: name },
    ownerReferences: [ownerReference(kinds.app, app)],
  };
  return { ...policy, metadata };
}

/** What the name of a half contains of an app. */
type PolicyApp = Pick<Stored<CFApp>['metadata'], 'name' | 'namespace' | 'uid'>;

export interface PolicyPorts {
  protocol: 'tcp' | 'udp';
  port: number;
  endPort?: number;
}

/** The name of one half: two commands that add it at the same time make one object. */
function halfName(app: PolicyApp, direction: CFNetworkPolicySpec['direction'], peer: PolicyApp, ports: PolicyPorts): string {
  const { protocol, port, endPort = port } = ports;
  return sha224([app.uid, direction, peer.namespace, peer.name, peer.uid, protocol, port, endPort].join(' '));
}

/** One half of a network policy, in the space of its app; it is deleted with the app. */
export function buildPolicyHalf(
  app: Stored<CFApp>,
  direction: CFNetworkPolicySpec['direction'],
  { peer, ports }: { peer: Stored<CFApp>; ports: PolicyPorts },
  author: Authorship,
): CFNetworkPolicy {
  const { namespace, name } = app.metadata;
  const { namespace: space, name: guid, uid } = peer.metadata;
  return assemble(kinds.networkPolicy, {
    metadata: {
      name: halfName(app.metadata, direction, peer.metadata, ports),
      namespace,
      labels: { [labels.appGuid]: name },
      ownerReferences: [ownerReference(kinds.app, app, false)],
    },
    body: { spec: { appRef: { name }, direction, peer: { space, app: guid, uid }, ...ports } },
    author,
  });
}
