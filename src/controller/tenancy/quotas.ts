// Which quotas (CFQuota) apply to an org and its spaces, and what its pods may become. A quota only lowers the limits of the installation.

import { findCondition } from '../../lib/api/conditions.ts';
import { namespaceType } from '../../lib/api/core.ts';
import { annotations, conditionTypes, kinds } from '../../lib/api/group.ts';
import type { KubeObject, Stored } from '../../lib/api/object.ts';
import { parseQuantity } from '../../lib/api/sizes.ts';
import { appliedQuota, memoryResource, type AppliedQuotas } from '../../lib/api/quotas.ts';
import type { BuildWorkload, CFQuota, CFSpace, TaskWorkload } from '../../lib/api/types.generated.ts';
import type { Context, Stores } from '../runtime/reconciler.ts';

/** The quota that an org or space names. A name without an object is no quota. */
function quotaOf(stores: Stores, ns: string, holder: KubeObject | undefined): Stored<CFQuota> | undefined {
  const guid = holder?.metadata.annotations?.[annotations.quota];
  return guid === undefined || guid === '' ? undefined : stores.of(kinds.quota).get(ns, guid);
}

/** The quotas of an org, and of one of its spaces. */
export function quotasOf(stores: Stores, root: string, org: string, space?: Stored<CFSpace>): AppliedQuotas {
  const ofOrg = quotaOf(stores, root, stores.of(kinds.org).get(root, org));
  const ofSpace = quotaOf(stores, org, space);
  return { ...(ofOrg && { org: appliedQuota(ofOrg) }), ...(ofSpace && { space: appliedQuota(ofSpace) }) };
}

/** Keys of the orgs whose limits follow from a quota. */
export function orgKeysOfQuota(quota: Stored<CFQuota>, stores: Stores): string[] {
  const { namespace: ns, name } = quota.metadata;
  const orgs = stores.of(kinds.org).list();
  const concerned = orgs.filter(
    ({ metadata }) => metadata.name === ns || (metadata.namespace === ns && metadata.annotations?.[annotations.quota] === name),
  );
  return concerned.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

/** Keys of the spaces whose limits follow from a quota. */
export function spaceKeysOfQuota(quota: Stored<CFQuota>, stores: Stores): string[] {
  const orgs = new Set(orgKeysOfQuota(quota, stores).map((key) => key.slice(key.indexOf('/') + 1)));
  const spaces = stores.of(kinds.space).list();
  return spaces.filter(({ metadata }) => orgs.has(metadata.namespace)).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

/** The lowest memory of one instance, and whose quota says so. */
function instanceMemory({ org, space }: AppliedQuotas): { most: number; quota: string } | undefined {
  const inOrg = org?.limits.instanceMemoryMB ?? Infinity;
  const inSpace = space?.limits.instanceMemoryMB ?? Infinity;
  if (inOrg === Infinity && inSpace === Infinity) return undefined;
  return inSpace <= inOrg
    ? { most: inSpace, quota: `space quota '${space?.name ?? ''}'` }
    : { most: inOrg, quota: `org quota '${org?.name ?? ''}'` };
}

/**
 * The annotations that policy `kf-instance-memory` reads.
 * @param live the namespace's present annotations; null removes one of them
 */
export function instanceMemoryNotes(quotas: AppliedQuotas, live: Record<string, string> = {}): Record<string, string | null> {
  const limit = instanceMemory(quotas);
  if (limit !== undefined) return { [annotations.instanceMemory]: String(limit.most), [annotations.instanceMemoryQuota]: limit.quota };
  const left = [annotations.instanceMemory, annotations.instanceMemoryQuota].filter((key) => key in live);
  return Object.fromEntries(left.map((key) => [key, null]));
}

/** The memory of a process or task that specifies none: the default, or less where a quota allows less. */
export function defaultMemoryMB(context: Context, ns: string): number {
  const { memoryMB } = context.info().processDefaults;
  const notes = context.stores.of(namespaceType).get(undefined, ns)?.metadata.annotations;
  const most = Number(notes?.[annotations.instanceMemory] ?? Infinity);
  return most > 0 ? Math.min(memoryMB, most) : memoryMB;
}

/** The index of all objects of kf's kinds by namespace. */
export const byNamespace = 'namespace';

const hasEnded = (run: Stored<BuildWorkload> | Stored<TaskWorkload>): boolean =>
  ['True', 'False'].includes(findCondition(run, conditionTypes.succeeded)?.status ?? '') ||
  findCondition(run, conditionTypes.failed)?.status === 'True';

const memoryOf = (requests: Record<string, number | string> | undefined): number => parseQuantity(String(requests?.['memory'] ?? '')) ?? 0;

/**
 * How much of a resource a space will use when everything runs that should. A pod that a quota refused does not show in the quota's count, so
 * without this a space would not get the part of its org's total that it needs.
 */
export function demandIn(context: Context, ns: string, resource: string): number {
  if (resource !== memoryResource && resource !== 'pods') return 0;
  const amount = (instances: number, bytes: number): number => (resource === 'pods' ? instances : instances * bytes);
  const apps = context.stores.of(kinds.appWorkload).by(byNamespace, ns);
  const running = apps.reduce((sum, { spec }) => sum + amount(spec.instances, memoryOf(spec.resources?.requests)), 0);
  if (resource === 'pods') return running;
  const builds = context.stores
    .of(kinds.buildWorkload)
    .by(byNamespace, ns)
    .filter((run) => !hasEnded(run));
  const tasks = context.stores
    .of(kinds.taskWorkload)
    .by(byNamespace, ns)
    .filter((run) => !hasEnded(run));
  const staging = context.info().staging.memoryMB * 2 ** 20;
  return running + builds.length * staging + tasks.reduce((sum, { spec }) => sum + memoryOf(spec.resources?.requests), 0);
}
