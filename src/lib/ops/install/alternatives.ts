// The other choices that an earlier setup may have had of its gateway and its registry.

import type { SetupPlan } from '../../../templates/setup/options.ts';

/** The plan with each other gateway that setup installs objects of. */
export function otherGateways(plan: SetupPlan): SetupPlan[] {
  const { port } = plan.gateway;
  const choices: SetupPlan['gateway'][] = [
    { exposure: 'hostport', port },
    { exposure: 'loadbalancer', port },
    { exposure: 'hostport', port, className: '' },
  ];
  return choices.map((gateway) => ({ ...plan, gateway }));
}

/** The plan with the registry in the cluster, where it has one outside. */
export function otherRegistries(plan: SetupPlan): SetupPlan[] {
  const { registry, ...inCluster } = plan;
  return registry === undefined ? [] : [inCluster];
}
