// Quotas of a space, as the API server applies them.

import { isDeepStrictEqual } from 'node:util';
import { kubectlJson } from './kf.ts';
import { until } from './until.ts';

interface Quota {
  spec: { hard: Record<string, string> };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/** Waits until a ResourceQuota is in force: the API server uses its status, which a controller writes a moment later. */
export async function untilQuotaHolds(ns: string, name: string): Promise<void> {
  await until(`the quota ${ns}/${name} to hold`, async () => {
    const { spec, status } = await kubectlJson<Quota>('get', 'resourcequota', name, '-n', ns);
    return isDeepStrictEqual(status?.hard, spec.hard) && Object.keys(spec.hard).every((resource) => status?.used?.[resource] !== undefined);
  });
}
