// The gateway: Traefik with a Gateway, or a Gateway of the operator's class, or the operator's own Gateway. A route to the controller, which setup
// always adds, shows that the gateway answers.

import { defined } from '../../../defined.ts';
import { buildCheckRoute } from '../../../../templates/setup/check-route.ts';
import { buildGateway, traefikName } from '../../../../templates/setup/gateway.ts';
import { gatewayNamespace } from '../../../../templates/setup/namespaces.ts';
import { buildIssuerRights } from '../../../../templates/setup/issuer.ts';
import { beginHandover, endHandover } from '../gateway-handover.ts';
import { removeFormerIssued } from '../issuer.ts';
import { otherGateways } from '../alternatives.ts';
import type { Part } from '../part.ts';
import { proveHttps, proveReach } from '../proofs.ts';
import { removeLabelled } from '../removal.ts';
import { ensureCertificateSecrets } from '../tls-secrets.ts';
import { startMs, waitForDeployment } from '../waits.ts';

/** How long the gateway may take to answer the first request from here. */
const reachMs = 20_000;

export const part: Part = {
  name: 'gateway',
  // Policies prevent that others take hosts with routes of their own.
  requires: ['network', 'policies', 'roles'],
  step: 'gateway',
  objects: ({ plan }) => [...buildGateway(plan), ...buildIssuerRights(plan), buildCheckRoute(plan)],
  // DNS or load balancers may point to the other gateways.
  alternatives: ({ plan }) => otherGateways(plan).flatMap((other) => buildGateway(other)),
  before: async (run) => {
    if (run.plan.gateway.https !== undefined) await ensureCertificateSecrets(run.cluster);
    await beginHandover(run);
  },
  after: async (run) => {
    const { plan } = run;
    if (plan.gateway.existing !== undefined || plan.gateway.className !== undefined) return;
    await waitForDeployment(run, { namespace: gatewayNamespace(plan), name: traefikName, timeoutMs: startMs });
    await endHandover(run);
  },
  prove: (run) => async () => {
    const { cluster, plan, report, signal } = run;
    await removeFormerIssued(run);
    report({ type: 'install-step', step: 'gateway-proof' });
    const reach = await proveReach(plan, reachMs, signal);
    // A gateway that cannot be reached from here at all was reported.
    const https = reach.reachable ? await proveHttps(cluster, plan, reachMs, signal) : undefined;
    return { reach: { ...reach, ...defined({ https }) } };
  },
  remove: async (removal) => {
    removal.report({ type: 'install-step', step: 'remove-programs' });
    await removeLabelled(removal, 'HTTPRoute', 'Gateway', 'GatewayClass', 'ReferenceGrant');
  },
};
