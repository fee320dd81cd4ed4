// The roles of people and of the controller.

import { readManifest } from '../assets.ts';
import type { Part } from '../part.ts';
import { removeLabelled } from '../removal.ts';

export const part: Part = {
  name: 'roles',
  requires: ['policies'],
  step: 'controller',
  objects: () => readManifest('roles.generated.yaml'),
  remove: (removal) => removeLabelled(removal, 'ClusterRoleBinding', 'ClusterRole'),
};
