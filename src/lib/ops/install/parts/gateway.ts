// The gateway: Traefik with a Gateway, a Gateway of the operator's class, or none where there is one already. A route to the controller shows that it answers.

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
  // Policies keep strangers from taking hosts by routes of their own.
  requires: ['network', 'policies'],
  step: 'gateway',
  objects: ({ plan }) => [...buildGateway(plan), buildCheckRoute(plan)],
  // Others may have been pointed at it.
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
