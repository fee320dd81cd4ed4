// What the quota of an org or space (CFQuota) means for a ResourceQuota, and the record of the quotas that a ResourceQuota applies.

import { annotations, instanceLimitsName, kinds, limitsName } from './group.ts';
import type { KubeObject, Stored } from './object.ts';
import { parseQuantity } from './sizes.ts';
import type { CFQuota } from './types.generated.ts';

export type QuotaLimits = Omit<CFQuota['spec'], 'displayName'>;

/** Amounts by resource, as in `spec.hard` of a ResourceQuota. */
type Amounts = Record<string, string>;

const count = (kind: { plural: string; group: string }): string => `count/${kind.plural}.${kind.group}`;

export const memoryResource = 'requests.memory';

/** Each limit that a ResourceQuota can enforce: in which one, and under which name. */
const enforced = {
  totalMemoryMB: { quota: limitsName, resource: memoryResource, unit: 'Mi' },
  routes: { quota: limitsName, resource: count(kinds.route), unit: '' },
  serviceInstances: { quota: limitsName, resource: count(kinds.serviceInstance), unit: '' },
  appInstances: { quota: instanceLimitsName, resource: 'pods', unit: '' },
} as const satisfies Partial<Record<keyof QuotaLimits, { quota: string; resource: string; unit: string }>>;

export type EnforcedLimit = keyof typeof enforced;

/** The limits that one of a space's ResourceQuotas enforces for a CFQuota. */
export function amountsOf(limits: QuotaLimits | undefined, quota: string): Amounts {
  return Object.fromEntries(
    Object.entries(enforced).flatMap(([key, { quota: name, resource, unit }]) => {
      const most = limits?.[key as EnforcedLimit];
      return name === quota && most !== undefined ? [[resource, `${String(most)}${unit}`]] : [];
    }),
  );
}

/** Which limit of a CFQuota a resource of a ResourceQuota enforces. */
export function limitOf(quota: string, resource: string): EnforcedLimit | undefined {
  const found = Object.entries(enforced).find(([, entry]) => entry.quota === quota && entry.resource === resource);
  return found?.[0] as EnforcedLimit | undefined;
}

/** The lower limit of each resource. */
export function lowest(...all: readonly Amounts[]): Amounts {
  const lower: Amounts = {};
  for (const [resource, amount] of all.flatMap((amounts) => Object.entries(amounts))) {
    const before = parseQuantity(lower[resource]) ?? Infinity;
    if ((parseQuantity(amount) ?? Infinity) < before || !(resource in lower)) lower[resource] = amount;
  }
  return lower;
}

/** A CFQuota as it was when it was applied. */
export interface AppliedQuota {
  guid: string;
  generation: number;
  name: string;
  limits: QuotaLimits;
}

/** The quotas of a space and of its org. */
export interface AppliedQuotas {
  org?: AppliedQuota;
  space?: AppliedQuota;
}

export function appliedQuota({ metadata, spec }: Stored<CFQuota>): AppliedQuota {
  const { displayName, ...limits } = spec;
  return { guid: metadata.name, generation: metadata.generation ?? 0, name: displayName, limits };
}

/** The quotas that a ResourceQuota applied when the controller last wrote it. */
export function readApplied({ metadata }: KubeObject): AppliedQuotas {
  try {
    return JSON.parse(metadata.annotations?.[annotations.quotas] ?? '{}') as AppliedQuotas;
  } catch {
    return {};
  }
}
