// The other choices of gateway and registry that an earlier setup may have made.

import { defined } from '../../defined.ts';
import { standardHttps } from './https.ts';
import type { SetupPlan } from '../../../templates/setup/options.ts';

/** The plan with each other gateway for which setup installs objects. */
export function otherGateways(plan: SetupPlan): SetupPlan[] {
  const { port, existing } = plan.gateway;
  // A gateway of kf that an operator's replaced may have certificates.
  const https = existing === undefined ? plan.gateway.https : { port: standardHttps.httpsPort, secrets: [] };
  const choices: SetupPlan['gateway'][] = [
    { exposure: 'hostport', port, ...defined({ https }) },
    { exposure: 'loadbalancer', port, ...defined({ https }) },
    { exposure: 'hostport', port, className: '', ...defined({ https }) },
  ];
  return choices.map((gateway) => ({ ...plan, gateway }));
}

/** The plan with the registry in the cluster, if it has an outside registry. */
export function otherRegistries(plan: SetupPlan): SetupPlan[] {
  const { registry, ...inCluster } = plan;
  return registry === undefined ? [] : [inCluster];
}
