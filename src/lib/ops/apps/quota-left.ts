// What the quotas of a space have left, compared with what a change takes.

import { desiredInstances } from '../../api/app.ts';
import { instanceLimitsName } from '../../api/group.ts';
import { resource, type KubeObject, type Stored } from '../../api/object.ts';
import { counted, formatBytes, megabyte, parseQuantity } from '../../api/sizes.ts';
import type { CFProcess } from '../../api/types.generated.ts';
import { defined } from '../../defined.ts';
import { isForbidden } from '../../kube/errors.ts';
import { allowance, decidingQuota, type Deciding } from '../../session/quota-refusal.ts';
import type { SpaceSession } from '../../session/session.ts';

export interface ResourceQuota extends KubeObject {
  spec?: { scopes?: string[]; scopeSelector?: unknown };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

const quotaType = resource<ResourceQuota>('', 'v1', 'ResourceQuota', 'resourcequotas');

/** The need of one kind of resource, under every name that a quota may use. */
export interface Need {
  names: string[];
  amount: number;
  /** Part of a sentence: `4 instances take 2G of memory`. */
  what: string;
  isBytes: boolean;
  /** Flags of push that need less. */
  smaller?: { amount: number; flags: string };
}

export interface InstanceNeeds {
  memoryBytes: number;
  diskBytes: number;
  instances: number;
}

/**
 * The needs of instances.
 * @param sayBytes part of a sentence about an amount of memory or disk, such as `2G`
 * @param sayCount part of a sentence about a number of pods or instances
 */
export function needsOfInstances(
  { memoryBytes, diskBytes, instances }: InstanceNeeds,
  sayBytes: (size: string, kind: 'memory' | 'disk') => string,
  sayCount: (count: number, kind: 'pod' | 'instance') => string,
): Need[] {
  return [
    {
      names: ['memory', 'requests.memory', 'limits.memory'],
      amount: memoryBytes,
      what: sayBytes(formatBytes(memoryBytes), 'memory'),
      isBytes: true,
    },
    {
      names: ['requests.ephemeral-storage', 'ephemeral-storage', 'limits.ephemeral-storage'],
      amount: diskBytes,
      what: sayBytes(formatBytes(diskBytes), 'disk'),
      isBytes: true,
    },
    { names: ['pods', 'count/pods'], amount: instances, what: sayCount(instances, 'pod'), isBytes: false },
    { names: [appInstances], amount: instances, what: sayCount(instances, 'instance'), isBytes: false },
  ];
}

/** Why the quota is not enough, and the flags of push with which it is. */
export interface QuotaRefusal {
  why: string;
  flags?: string;
  /** The quota of the org or space that sets the limit. */
  deciding?: Deciding;
}

/** The only resource of the quota of app instances, which counts pods, but not those of builds. */
export const appInstances = 'app instances';

/** @param isWhole the need is compared with all that the quota has, whatever is used of it */
function refusal(quota: ResourceQuota, name: string, need: Need, isWhole: boolean): QuotaRefusal | undefined {
  const hard = parseQuantity(quota.status?.hard?.[name]);
  if (hard === undefined || need.amount === 0) return undefined;
  const used = isWhole ? 0 : (parseQuantity(quota.status?.used?.[name]) ?? 0);
  const deciding = decidingQuota(quota, name === appInstances ? 'pods' : name, hard);
  // Of a quota of the org this space has a part now, and gets more from the other spaces when it needs it.
  const isShared = deciding?.scope === 'org' && hard < deciding.most;
  const free = Math.max(0, (isShared ? deciding.most : hard) - used);
  if (need.amount <= free) return undefined;
  const show = (amount: number): string => (need.isBytes ? formatBytes(amount) : String(amount));
  const limited = (): string => {
    const left = isWhole ? `${show(hard)} in all` : `${show(free)} of ${show(hard)} left`;
    if (deciding === undefined) return `the quota '${quota.metadata.name}' has ${left} (${name})`;
    if (isWhole) return `the ${allowance(deciding)}`;
    const rest = `${show(free)} ${need.isBytes || free === 1 ? 'is' : 'are'} left`;
    return `the ${allowance(deciding)}, of which ${isShared ? `this space uses ${show(used)}` : rest}`;
  };
  const why = `${need.what}, and ${limited()}`;
  const flags = need.smaller === undefined || need.smaller.amount > free ? undefined : need.smaller.flags;
  return { why, ...defined({ flags, deciding }) };
}

/** The quota of app instances, which has a scope, as one of a resource of its own. */
function withoutScope(quota: ResourceQuota): ResourceQuota {
  if (quota.metadata.name !== instanceLimitsName) return quota;
  const only = (amounts: Record<string, string> | undefined) => defined({ [appInstances]: amounts?.['pods'] });
  return { ...quota, spec: {}, status: { hard: only(quota.status?.hard), used: only(quota.status?.used) } };
}

/** Why the quotas are not enough; undefined when they are. Quotas for only some pods are left to the API server. */
export function quotaRefusal(quotas: readonly ResourceQuota[], needs: readonly Need[]): QuotaRefusal | undefined {
  return refusalOf(quotas, needs, false);
}

/** The instances of a process. */
export interface ProcessSize {
  /** Of each instance. */
  memoryMB: number;
  /** Of each instance. */
  diskMB: number;
  instances: number;
}

export const sizeOfProcess = (process: Stored<CFProcess>): ProcessSize => ({
  instances: desiredInstances(process),
  memoryMB: process.spec.memoryMB,
  diskMB: process.spec.diskQuotaMB,
});

/** Too large for a quota, whatever is used of it. */
export interface SizeRefusal extends QuotaRefusal {
  /** The fewest instances that are too many: 1, or all of the process. */
  instances: number;
}

/**
 * Why a quota has less in all than one instance of this size takes, or than all instances take of what becomes more, so that no room helps; undefined when
 * they can run. What others made too many before, an autoscaler or a quota that was lowered, is no fault of the change.
 * @param before the size that the process has now
 */
export function sizeRefusal(
  quotas: readonly ResourceQuota[],
  processType: string,
  { before, after }: Record<'before' | 'after', ProcessSize>,
): SizeRefusal | undefined {
  const all = after.instances;
  if (all === 0) return undefined;
  const refusalOfSome = (instances: number, counts: { memory: boolean; disk: boolean; instances: boolean }): SizeRefusal | undefined => {
    const who = instances === 1 ? `one instance of '${processType}' takes` : `${counted(instances, 'instance')} of '${processType}' take`;
    const needs = needsOfInstances(
      {
        memoryBytes: counts.memory ? instances * after.memoryMB * megabyte : 0,
        diskBytes: counts.disk ? instances * after.diskMB * megabyte : 0,
        instances: counts.instances ? instances : 0,
      },
      (amount, kind) => `${who} ${amount} of ${kind}`,
      (count, kind) => `${who} ${counted(count, kind)}`,
    );
    const refused = refusalOf(quotas, needs, true);
    return refused && { ...refused, instances };
  };
  const isMore = all > before.instances;
  const grown = { memory: isMore || after.memoryMB > before.memoryMB, disk: isMore || after.diskMB > before.diskMB, instances: isMore };
  return refusalOfSome(1, { memory: true, disk: true, instances: false }) ?? (all > 1 ? refusalOfSome(all, grown) : undefined);
}

function refusalOf(quotas: readonly ResourceQuota[], needs: readonly Need[], isWhole: boolean): QuotaRefusal | undefined {
  const whole = quotas.map(withoutScope).filter(({ spec }) => (spec?.scopes ?? []).length === 0 && spec?.scopeSelector === undefined);
  const reasons = whole.flatMap((quota) =>
    needs.flatMap((need) => need.names.flatMap((name) => refusal(quota, name, need, isWhole) ?? [])),
  );
  return reasons[0];
}

/** The quotas of the space; none for a user who may not read them, and gets the API server's own refusal later. */
export async function readQuotas({ cluster, space, signal }: SpaceSession): Promise<ResourceQuota[]> {
  try {
    return (await cluster.list(quotaType, { ns: space.guid, signal })).items;
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}
