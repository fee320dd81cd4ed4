// Admission policies of the kinds that the cluster serves. Those that change objects are only a convenience, and not every cluster has them.

import { readManifests } from '../assets.ts';
import type { Part } from '../part.ts';
import { removeLabelled } from '../removal.ts';

export const part: Part = {
  name: 'policies',
  requires: ['kinds'],
  step: 'controller',
  objects: async ({ served }) => {
    const policies = await readManifests('policies');
    return policies.filter(({ kind = '' }) => served.hasMutatingPolicies || !kind.startsWith('MutatingAdmissionPolicy'));
  },
  remove: (removal) =>
    removeLabelled(
      removal,
      'ValidatingAdmissionPolicyBinding',
      'ValidatingAdmissionPolicy',
      'MutatingAdmissionPolicyBinding',
      'MutatingAdmissionPolicy',
    ),
};
