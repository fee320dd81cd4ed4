// Keeps the settings of `kf setup` in the cluster, where only operators can read and write them.

import { stringify } from 'yaml';
import type { ConfigMap } from '../../lib/api/core.ts';
import { places } from '../../lib/api/group.ts';
import { systemNamespace, type SetupPlan } from './options.ts';

/** A ConfigMap with the settings, as a text that `kf setup -f` accepts. */
export function buildRecord({ settings }: SetupPlan): ConfigMap {
  const data = { [places.settingsKey]: stringify(settings, { lineWidth: 0 }) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: places.settings, namespace: systemNamespace }, data };
}
