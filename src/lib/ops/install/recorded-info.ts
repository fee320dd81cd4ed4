// The description of an installation that the previous setup wrote. It may be broken; setup repairs it.

import { configMapType } from '../../api/core.ts';
import { places } from '../../api/group.ts';
import { parseKfInfo, type KfInfo } from '../../api/kf-info.ts';
import { KfError } from '../../errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { rootNamespace } from '../../../templates/setup/options.ts';

export interface RecordedInfo {
  /** Undefined when it does not exist or cannot be read. */
  info?: KfInfo;
  /** Why it cannot be read, as a sentence. */
  fault?: string;
}

/** `kf-info` of the cluster. @throws KfError `conflict` for one of a newer kf */
export async function recordedInfo(cluster: Cluster): Promise<RecordedInfo> {
  const text = (await cluster.get(configMapType, rootNamespace, places.info))?.data?.[places.infoKey];
  if (text === undefined) return {};
  try {
    return { info: parseKfInfo(text) };
  } catch (error) {
    if (!(error instanceof KfError) || error.code !== 'failed') throw error;
    return { fault: error.message };
  }
}
