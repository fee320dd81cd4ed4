// The other choices of gateway and registry that an earlier setup may have made.

import type { SetupPlan } from '../../../templates/setup/options.ts';

/** The plan with each other gateway for which setup installs objects. */
export function otherGateways(plan: SetupPlan): SetupPlan[] {
  const { port } = plan.gateway;
  const choices: SetupPlan['gateway'][] = [
    { exposure: 'hostport', port },
    { exposure: 'loadbalancer', port },
    { exposure: 'hostport', port, className: '' },
  ];
  return choices.map((gateway) => ({ ...plan, gateway }));
}

/** The plan with the registry in the cluster, if it has an outside registry. */
export function otherRegistries(plan: SetupPlan): SetupPlan[] {
  const { registry, ...inCluster } = plan;
  return registry === undefined ? [] : [inCluster];
}
