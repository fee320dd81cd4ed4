// The set that `kf setup` applies, and the mark by which its objects are known later.

import { partOfLabel } from '../../../templates/setup/options.ts';
import type { ObjectSet } from './applier.ts';

export const setupSet: ObjectSet = { manager: 'kf-setup', label: { key: partOfLabel, value: 'setup' } };
