// Policies for connections to kf's own pods. Their outgoing connections are not restricted, because the controller reads any registry that an app
// names.

import { labels } from '../../lib/api/group.ts';
import type { KubeObject } from '../../lib/api/object.ts';
import { hostRange, namespacePeer, peerNamed, type NetworkPeer, type NetworkPolicy } from '../../lib/api/network-policy.ts';
import { networkPolicy } from '../network-policies.ts';
import { controllerName } from './controller.ts';
import { entryPorts, gatewayName, traefikName } from './gateway.ts';
import { gatewayNamespace } from './namespaces.ts';
import { managedByLabel, systemNamespace, type SetupNetwork, type SetupPlan } from './options.ts';
import { pagesName } from './pages.ts';
import { registryName } from './registry.ts';

const port = (number: number) => ({ protocol: 'TCP' as const, port: number });
const pods = (name: string) => ({ matchLabels: { app: name } });

/**
 * Nodes and the API server: every address that is not a pod. If no Node object names the pods' ranges, that is every address, and the ports are
 * protected only by credentials and by the policies of the spaces.
 */
function nodePeers({ nodes, ipv6 }: SetupNetwork): NetworkPeer[] {
  const block = (cidr: string, isOwn: (range: string) => boolean): NetworkPeer => {
    const except = nodes.podRanges.filter(isOwn);
    return { ipBlock: { cidr, ...(except.length === 0 ? {} : { except }) } };
  };
  const isV6 = (text: string): boolean => text.includes(':');
  return [
    block('0.0.0.0/0', (range) => !isV6(range)),
    ...(ipv6 ? [block('::/0', isV6)] : []),
    ...nodes.addresses.filter((address) => ipv6 || !isV6(address)).map((address) => ({ ipBlock: { cidr: hostRange(address) } })),
    // If the API server runs outside of the cluster, an agent in this namespace connects for it.
    namespacePeer('kube-system'),
  ];
}

/** Any pod of a build, in any space. */
const builds: NetworkPeer = {
  namespaceSelector: { matchLabels: { [managedByLabel]: 'kf' } },
  podSelector: { matchExpressions: [{ key: labels.buildGuid, operator: 'Exists' }] },
};

function registryPolicy(network: SetupNetwork): NetworkPolicy {
  const nodes = nodePeers(network);
  return networkPolicy(systemNamespace, registryName, {
    podSelector: pods(registryName),
    policyTypes: ['Ingress'],
    ingress: [
      { from: [builds, { podSelector: pods(controllerName) }, ...nodes], ports: [port(5000)] },
      { from: nodes, ports: [port(5001)] },
    ],
  });
}

/** Setup's check goes through the gateway to the controller, and requests without an app go to the pages. */
const behindGateway = [controllerName, pagesName];

/** Label of the pods of a Gateway, if its implementation runs them in the Gateway's own namespace (GEP-1762). */
export const servedGatewayLabel = 'gateway.networking.k8s.io/gateway-name';

/** Pods that the operator's GatewayClass may run beside its Gateway. Their ports are not known. */
const classPolicy = networkPolicy(systemNamespace, 'kf-gateway-class', {
  podSelector: { matchLabels: { [servedGatewayLabel]: gatewayName } },
  policyTypes: ['Ingress'],
  ingress: [{}],
});

/** Pods of a gateway: Traefik's, otherwise all of the Gateway's namespace and all sources that the operator names for apps. */
function gatewayPeers({ gateway, network }: SetupPlan, namespace: string): NetworkPeer[] {
  const isOwn = gateway.existing === undefined && gateway.className === undefined;
  if (isOwn) return [namespacePeer(namespace, { app: traefikName })];
  return [namespacePeer(namespace), ...(network?.ingress ?? []).map(peerNamed)];
}

/** Blocks connections to kf's own namespace except the named ones; empty when the plan has no policies. */
export function buildSystemPolicies(plan: SetupPlan): KubeObject[] {
  const { network, gateway } = plan;
  if (network === undefined) return [];
  const namespace = gatewayNamespace(plan);
  const isOwnGateway = gateway.existing === undefined && gateway.className === undefined;
  const closed = networkPolicy(systemNamespace, 'kf-closed', { podSelector: {}, policyTypes: ['Ingress'] });
  const throughGateway = behindGateway.map((name) =>
    networkPolicy(systemNamespace, name, {
      podSelector: pods(name),
      policyTypes: ['Ingress'],
      ingress: [{ from: gatewayPeers(plan, namespace), ports: [port(8080)] }],
    }),
  );
  const entry = networkPolicy(namespace, traefikName, {
    podSelector: pods(traefikName),
    policyTypes: ['Ingress'],
    ingress: [
      { ports: [port(entryPorts.web), ...(gateway.https === undefined ? [] : [port(entryPorts.websecure)])] },
      ...(gateway.https?.redirect === true
        ? [{ from: [namespacePeer(systemNamespace, { app: controllerName })], ports: [port(entryPorts.internal)] }]
        : []),
    ],
  });
  const ofGateway = [...(isOwnGateway ? [entry] : []), ...(gateway.existing === undefined && !isOwnGateway ? [classPolicy] : [])];
  return [closed, ...throughGateway, ...ofGateway, ...(plan.registry === undefined ? [registryPolicy(network)] : [])];
}
