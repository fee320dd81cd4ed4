// `feature-flags`, `feature-flag`.

import type { FeatureFlag } from '../cf/feature-flags.ts';
import { table, type Block } from './block.ts';

export function renderFeatureFlags(flags: readonly FeatureFlag[], headings: [string, string] = ['name', 'state']): Block[] {
  return [
    table(
      headings,
      flags.map(({ name, enabled }) => [name, enabled ? 'enabled' : 'disabled']),
    ),
  ];
}
