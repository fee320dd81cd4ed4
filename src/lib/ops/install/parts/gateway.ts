// The gateway: Traefik with a Gateway, or a Gateway of the operator's class, or the operator's own Gateway. A route to the controller, which setup
// always adds, shows that the gateway answers.

import { buildCheckRoute } from '../../../../templates/setup/check-route.ts';
import { buildGateway, traefikName } from '../../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../../templates/setup/namespaces.ts';
import { otherGateways } from '../alternatives.ts';
import type { Part } from '../part.ts';
import { proveReach } from '../proofs.ts';
import { removeLabelled } from '../removal.ts';
import { startMs, waitForDeployment } from '../waits.ts';

/** How long the gateway may take to answer the first request from here. */
const reachMs = 20_000;

export const part: Part = {
  name: 'gateway',
  // Policies prevent that others take hosts with routes of their own.
  requires: ['network', 'policies', 'roles'],
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
      return { reach: await proveReach(plan, reachMs, signal) };
    },
  remove: async (removal) => {
    removal.report({ type: 'install-step', step: 'remove-programs' });
    await removeLabelled(removal, 'HTTPRoute', 'Gateway', 'GatewayClass');
  },
};
