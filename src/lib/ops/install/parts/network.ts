// Policies that decide which pods may connect to kf's own pods.

import { buildSystemPolicies } from '../../../../templates/setup/network-policies.ts';
import { otherGateways, otherRegistries } from '../alternatives.ts';
import type { Part } from '../part.ts';

export const part: Part = {
  name: 'network',
  requires: ['namespaces'],
  step: 'registry',
  objects: ({ plan }) => buildSystemPolicies(plan),
  // A registry or a gateway that stays must stay reachable.
  alternatives: ({ plan }) => [...otherGateways(plan), ...otherRegistries(plan)].flatMap((other) => buildSystemPolicies(other)),
};
