// The code of kf's own programs, which run on a stock Node image.

import { buildBundle } from '../../../../templates/setup/controller.ts';
import type { Part } from '../part.ts';

export const part: Part = {
  name: 'programs',
  requires: ['settings'],
  step: 'registry',
  objects: ({ programs }) => [buildBundle(programs)],
};
