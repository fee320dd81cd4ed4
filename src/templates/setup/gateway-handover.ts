// A second gateway that answers while the pod of the first one, which has ports of its node, is replaced.

import type { Service } from '../../lib/api/core.ts';
import type { Pod } from '../../lib/api/pod-kind.ts';
import type { PodTemplateSpec } from '../../lib/api/pod.ts';
import { buildTraefik, connectionAgeArguments, entryServicePorts, traefikName } from './gateway.ts';
import { gatewayNamespace } from './namespaces.ts';
import { partOfLabel, type SetupPlan } from './options.ts';

export const handoverName = 'kf-gateway-handover';
export const handoverLabel = 'kf.cloudfoundry.org/gateway-handover';

/** The Services and policies of the gateway select it too, by `app`; the selector of the Deployment also has the hash of its pods. */
const labels = { app: traefikName, [handoverLabel]: 'true', [partOfLabel]: 'setup' };

/** Its connections end with an answer soon after they began: none is left on which a client sends a request at the moment in which the pod ends. */
export const handoverConnectionMs = 1_000;

/** The next gateway without ports of the node. @param node where clients connect to */
export function buildHandoverPod(plan: SetupPlan, node: string): Pod {
  const { template } = (buildTraefik(plan, false) as { spec: { template: PodTemplateSpec } }).spec;
  const [traefik, ...others] = template.spec.containers;
  const args = [...(traefik?.args ?? []), ...connectionAgeArguments(plan, handoverConnectionMs / 1_000)];
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: handoverName, namespace: gatewayNamespace(plan), labels },
    spec: { ...template.spec, containers: traefik === undefined ? [] : [{ ...traefik, args }, ...others], nodeName: node },
  };
  return pod;
}

/**
 * Leads connections to ports 80 and 443 of these addresses to the second gateway. kube-proxy decides before the ports of pods do, and for every
 * node by itself; `Local` keeps the addresses of clients.
 */
export function buildHandoverService(plan: SetupPlan, addresses: string[]): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: handoverName, namespace: gatewayNamespace(plan), labels },
    spec: {
      type: 'ClusterIP',
      ipFamilyPolicy: 'PreferDualStack',
      externalIPs: addresses,
      externalTrafficPolicy: 'Local',
      selector: { app: traefikName, [handoverLabel]: 'true' },
      ports: entryServicePorts(plan).map(({ name, port, target = port }) => ({ name, port, targetPort: target, protocol: 'TCP' })),
    },
  };
}
