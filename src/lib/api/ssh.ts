// Whether people may open shells in instances, and connect to their ports (docs/decisions/0060).

import { labels } from './group.ts';
import type { CFApp, CFSpace } from './types.generated.ts';

/** As in cf, ssh is enabled until somebody disables it. */
export const isSshEnabled = ({ metadata }: CFApp | CFSpace): boolean => metadata.labels?.[labels.ssh] !== 'disabled';
