// The namespaces of the installation itself.

import { internalNamespace } from '../../../../templates/internal-domain.ts';
import { buildNamespaces } from '../../../../templates/setup/namespaces.ts';
import { nodeNamespace, rootNamespace, systemNamespace } from '../../../../templates/setup/options.ts';
import type { Part } from '../part.ts';
import { removeNamespaces } from '../removal.ts';

const own = [internalNamespace, nodeNamespace, systemNamespace, rootNamespace];

export const part: Part = {
  name: 'namespaces',
  requires: [],
  step: 'namespaces',
  objects: ({ plan }) => buildNamespaces(plan),
  remove: (removal) => removeNamespaces(removal, 'the namespaces', ({ metadata }) => own.includes(metadata.name)),
};
