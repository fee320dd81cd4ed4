// The domain apps.internal, by whose names apps reach each other (docs/decisions/0063). Its namespace is one of the part `namespaces`.

import { kinds } from '../../../api/group.ts';
import { controllerName } from '../../../../templates/setup/controller.ts';
import { systemNamespace } from '../../../../templates/setup/options.ts';
import { buildInternalRights, buildInternalService } from '../../../../templates/internal-domain.ts';
import { buildInternalDomain } from '../defaults.ts';
import type { Part } from '../part.ts';
import { waitForCondition } from '../waits.ts';

export const part: Part = {
  name: 'internal-domain',
  // After the default domain, which is the oldest one.
  requires: ['org'],
  step: 'org',
  objects: ({ plan }) => {
    if (plan.internalDomain !== true) return [];
    return [buildInternalService(), buildInternalRights({ namespace: systemNamespace, name: controllerName }), buildInternalDomain()];
  },
  unprinted: true,
  after: async (run) => {
    const domains = run.changes('internal-domain').filter(({ object }) => object.kind === kinds.domain.kind);
    const objects = domains.map(({ object }) => object);
    await waitForCondition(run, objects, 'Ready', 60_000);
  },
};
