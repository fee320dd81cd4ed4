// The gateway: Traefik with a Gateway, a Gateway of the operator's class, or nothing if the operator has a Gateway already. A route to the
// controller shows that it answers.

import { buildCheckRoute } from '../../../../templates/setup/check-route.ts';
import { buildGateway, traefikName } from '../../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../../templates/setup/namespaces.ts';
import { otherGateways } from '../alternatives.ts';
import type { Part } from '../part.ts';
import { proveReach } from '../proofs.ts';
import { removeLabelled } from '../removal.ts';
import { startMs, waitForDeployment } from '../waits.ts';

export const part: Part = {
  name: 'gateway',
  // Policies prevent that others take hosts with routes of their own.
  requires: ['network', 'policies'],
  step: 'gateway',
  objects: ({ plan }) => [...buildGateway(plan), buildCheckRoute(plan)],
  // DNS or load balancers may point to the other gateways.
  alternatives: ({ plan }) => otherGateways(plan).flatMap((other) => buildGateway(other)),
  after: async (run) => {
    const { plan } = run;
    if (plan.gateway.existing !== undefined || plan.gateway.className !== undefined) return;
    await waitForDeployment(run, { namespace: gatewayNamespace(plan), name: traefikName, timeoutMs: startMs });
  },
  prove:
    ({ plan, report, signal }) =>
    async () => {
      report({ type: 'install-step', step: 'gateway-proof' });
      return { reach: await proveReach(plan, 20_000, signal) };
    },
  remove: async (removal) => {
    removal.report({ type: 'install-step', step: 'remove-programs' });
    await removeLabelled(removal, 'HTTPRoute', 'Gateway', 'GatewayClass');
  },
};
