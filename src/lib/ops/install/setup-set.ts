// The object set of `kf setup`, and the label that marks its objects.

import { partOfLabel } from '../../../templates/setup/options.ts';
import type { ObjectSet } from './applier.ts';

export const setupSet: ObjectSet = { manager: 'kf-setup', label: { key: partOfLabel, value: 'setup' } };
