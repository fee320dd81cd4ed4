// The default space.

import { buildDefaults } from '../defaults.ts';
import type { Part } from '../part.ts';
import { waitForCondition } from '../waits.ts';

export const part: Part = {
  name: 'space',
  requires: ['org'],
  step: 'space',
  objects: ({ plan }) => buildDefaults(plan).space,
  unprinted: true,
  after: async (run) => {
    const objects = run.changes('space').map(({ object }) => object);
    await waitForCondition(run, objects, 'Ready', 60_000);
  },
};
