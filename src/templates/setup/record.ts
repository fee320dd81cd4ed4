// What `kf setup` was asked for, kept where only operators read and write.

import { stringify } from 'yaml';
import { places } from '../../lib/api/group.ts';
import type { KubeObject } from '../../lib/api/object.ts';
import { systemNamespace, type SetupPlan } from './options.ts';

/** The ConfigMap whose text could be given to `kf setup -f`. */
export function buildRecord({ settings }: SetupPlan): KubeObject {
  const data = { [places.settingsKey]: stringify(settings, { lineWidth: 0 }) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: places.settings, namespace: systemNamespace }, ...{ data } };
}
