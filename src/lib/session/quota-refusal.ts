// Names the quota of the org or space when a ResourceQuota of kf refuses something: the API server knows only the ResourceQuota.

import { resourceQuotaType, type ResourceQuota } from '../api/core.ts';
import type { KubeObject } from '../api/object.ts';
import { limitOf, readApplied, type EnforcedLimit } from '../api/quotas.ts';
import { counted, formatBytes, megabyte, parseQuantity } from '../api/sizes.ts';
import { KfError } from '../errors.ts';
import type { Cluster } from '../kube/cluster.ts';
import { KubeError } from '../kube/errors.ts';
import { readExceeded } from '../kube/refusals.ts';

const nouns: Record<EnforcedLimit, string> = {
  totalMemoryMB: 'memory',
  routes: 'route',
  serviceInstances: 'service instance',
  appInstances: 'app instance',
};

const show = (limit: EnforcedLimit, amount: number): string => (limit === 'totalMemoryMB' ? formatBytes(amount) : String(amount));

/** The quota that decides about a resource. */
export interface Deciding {
  scope: 'org' | 'space';
  name: string;
  limit: EnforcedLimit;
  /** What it allows, in bytes or objects: to the space, or to all spaces of the org. */
  most: number;
}

/**
 * The quota of the org or space that sets a limit of a ResourceQuota; undefined when the limit is the installation's.
 * @param hard the limit in force: of a quota of the org, it is the part of this space
 */
export function decidingQuota(quota: KubeObject, resource: string, hard: number): Deciding | undefined {
  const limit = limitOf(quota.metadata.name ?? '', resource);
  if (limit === undefined) return undefined;
  const { org, space } = readApplied(quota);
  const amount = (most: number | undefined): number | undefined =>
    most === undefined ? undefined : limit === 'totalMemoryMB' ? most * megabyte : most;
  const [inSpace, inOrg] = [amount(space?.limits[limit]), amount(org?.limits[limit])];
  if (space !== undefined && inSpace === hard) return { scope: 'space', name: space.name, limit, most: inSpace };
  if (org !== undefined && inOrg !== undefined && hard <= inOrg) return { scope: 'org', name: org.name, limit, most: inOrg };
  return undefined;
}

/** `space quota 'small' allows 2 routes` */
export function allowance({ scope, name, limit, most }: Deciding): string {
  const what = limit === 'totalMemoryMB' ? `${formatBytes(most)} of memory` : counted(most, nouns[limit]);
  return `${scope} quota '${name}' allows ${what}`;
}

function sentence(deciding: Deciding, hard: number, used: number, asked: number): string {
  const { limit, most } = deciding;
  const part = hard < most ? `, ${show(limit, hard)} of them in this space at the moment` : '';
  return `The ${allowance(deciding)}${part}; used: ${show(limit, used)}, asked: ${show(limit, asked)}.`;
}

function sentences(quota: ResourceQuota, text: string): { deciding: Deciding; text: string; isShared: boolean }[] {
  return (readExceeded(text)?.lacking ?? []).flatMap(({ resource, ...amounts }) => {
    const [hard, used, asked] = [amounts.most, amounts.used, amounts.asked].map((amount) => parseQuantity(amount) ?? 0);
    const deciding = decidingQuota(quota, resource, hard ?? 0);
    if (deciding === undefined) return [];
    return [{ deciding, text: sentence(deciding, hard ?? 0, used ?? 0, asked ?? 0), isShared: (hard ?? 0) < deciding.most }];
  });
}

async function readQuota(cluster: Cluster, ns: string, name: string, signal: AbortSignal): Promise<ResourceQuota | undefined> {
  try {
    return await cluster.get(resourceQuotaType, ns, name, signal);
  } catch (error) {
    // Without the right to read it, the API server's own text stays.
    if (error instanceof KfError) return undefined;
    throw error;
  }
}

interface Reader {
  readonly cluster: Cluster;
  readonly signal: AbortSignal;
  readonly bin: string;
}

/** The error of a full ResourceQuota, with the quota of the org or space that set the limit. */
export async function nameQuota({ cluster, signal, bin }: Reader, ns: string, error: KfError): Promise<KfError> {
  const text = error instanceof KubeError ? (error.body?.message ?? error.message) : error.message;
  const exceeded = readExceeded(text);
  if (exceeded === undefined) return error;
  const quota = await readQuota(cluster, ns, exceeded.quota, signal);
  const [first] = quota === undefined ? [] : sentences(quota, text);
  if (first === undefined) return error;
  const { scope, name } = first.deciding;
  const hints = [
    ...(first.isShared ? ['Other spaces of the org have the rest, and give back within seconds what they do not use: try again.'] : []),
    `${bin} ${scope}-quota ${name}`,
  ];
  if (error instanceof KubeError)
    return new KfError('quota', first.text, { hints, details: { ...error.details, quota: name }, cause: error });
  error.hints.unshift(first.text, ...hints);
  return error;
}
