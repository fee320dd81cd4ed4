// Manages the ResourceQuota of an org or space: it is created once, follows the installation's defaults, and is left alone as soon as an operator
// has changed it.

import { configMapType, namespaceType, resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, instanceLimitsName, kinds, limitsName, places } from '../../lib/api/group.ts';
import type { KubeObject, Stored } from '../../lib/api/object.ts';
import { parseQuantity } from '../../lib/api/sizes.ts';
import { amountsOf, lowest } from '../../lib/api/quotas.ts';
import type { AppWorkload, BuildWorkload, CFQuota, CFSpace, TaskWorkload } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildCounter, buildLimits, instanceLimits, limitsOf, totalsOf, type LimitedPlace, type Limits } from '../../templates/limits.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import { watch, type Context, type Reconciler, type Stores } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { splitKey } from '../runtime/store.ts';
import { orgKeys, spaceKeys } from './namespaces.ts';
import { countIndexes, isSame, OrgShares, rewrite, writtenBefore, type OrgLimits } from './org-shares.ts';
import { orgKeysOfQuota, quotasOf } from './quotas.ts';

/**
 * The cluster looks for new kinds every 30 s. If a quota names a kind that the cluster does not know yet, it refuses objects of that kind. So the
 * quotas of a new installation name kf's kinds only when the installation is this old.
 */
const kindsKnownMs = 75_000;

/** An older namespace may have been filled before it got a quota: kf 0.1.0 made none. */
const newMs = 60_000;
/** The cluster counts within seconds. A resource that is not counted after this time cannot be counted. */
const countedMs = 120_000;
const countPollMs = 1_000;
/** The cluster applies a changed quota within a second. */
const sharesMoveMs = 1_000;
/** Existing objects must be able to be replaced side by side and to grow a little. */
const roomFactor = 1.5;

/** The current limits of the installation. */
interface PlaceLimits {
  limits: Limits;
  /** The limits that the operator set. */
  named: Limits;
  /** Milliseconds until a quota may also name kf's kinds. */
  left: number;
}

function namedFor(context: Context, place: LimitedPlace): PlaceLimits {
  const info = context.stores.of(configMapType).get(context.info().root, places.info);
  const left = Math.max(0, kindsKnownMs - ageOf(context, info));
  const named = context.info().limits?.[place] ?? {};
  return { limits: limitsOf(place, named, left === 0), named, left };
}

/** The two quotas of each space: of everything, and of app instances. */
export interface SpaceShares {
  whole: OrgShares;
  instances: OrgShares;
}

/** @param now monotonic clock in milliseconds */
export function spaceShares(now?: () => number): SpaceShares {
  return { whole: new OrgShares(now), instances: new OrgShares(now, instanceLimits) };
}

/** The limits of one of the quotas of an org's spaces: those of the installation, lowered by the quotas of the org and of each space. */
function limitsIn(context: Context, org: string, name: string, { space, total }: { space: Limits; total: Limits }): OrgLimits {
  const { root } = context.info();
  const ofOrg = amountsOf(quotasOf(context.stores, root, org).org?.limits, name);
  return {
    space: (object) => {
      const quotas = quotasOf(context.stores, root, org, object);
      const isNamed = quotas.org !== undefined || quotas.space !== undefined;
      const limits = lowest(space, amountsOf(quotas.space?.limits, name));
      return { limits, quotas: isNamed ? JSON.stringify(quotas) : undefined };
    },
    total: lowest(total, ofOrg),
    exact: new Set(Object.keys(ofOrg)),
  };
}

/** Divides the totals of an org among the quotas of its spaces. Returns the spaces whose quotas must be written later. */
async function divideAll(
  context: Context,
  org: string,
  shares: SpaceShares,
  newSpace?: string,
): Promise<{ waiting: Set<string>; left: number }> {
  const { limits, left } = namedFor(context, 'space');
  const total = totalsOf(limits, context.info().limits?.orgTotal, left === 0);
  const whole = await shares.whole.divide(context, org, limitsIn(context, org, limitsName, { space: limits, total }), newSpace);
  const instances = await shares.instances.divide(
    context,
    org,
    limitsIn(context, org, instanceLimitsName, { space: {}, total: {} }),
    newSpace,
  );
  return { waiting: new Set([...whole, ...instances]), left };
}

const isYoung = (context: Context, ns: string): boolean => ageOf(context, context.stores.of(namespaceType).get(undefined, ns)) < newMs;

/** Maintains the quota of an org's own namespace. Returns in how many milliseconds to check it again, if at all. */
export async function ensureOrgLimits(context: Context, ns: string): Promise<number | undefined> {
  const { limits, named, left } = namedFor(context, 'org');
  const live = await context.cluster.get(resourceQuotaType, ns, limitsName, context.signal);
  if (live?.metadata.annotations?.[annotations.countsUse] !== undefined) return settle(context, live, limits, named);
  if (live !== undefined) await renew(context, live, limits);
  else if (isYoung(context, ns)) await create(context, buildLimits(ns, limits));
  else return count(context, ns, { limits, left });
  return left === 0 ? undefined : left;
}

/** Makes the quota of a space, a share of its org's total, before anybody has a right in the space. */
export async function ensureSpaceLimits(
  context: Context,
  org: string,
  { ns, isReady }: { ns: string; isReady: boolean },
  shares: SpaceShares,
): Promise<void> {
  const { limits, named, left } = namedFor(context, 'space');
  const live = await context.cluster.get(resourceQuotaType, ns, limitsName, context.signal);
  if (live?.metadata.annotations?.[annotations.countsUse] !== undefined) await settle(context, live, limits, named);
  if (live === undefined && !isYoung(context, ns)) {
    await count(context, ns, { limits, left });
    return;
  }
  const { waiting } = await divideAll(context, org, shares, ns);
  if (waiting.has(ns) && !isReady)
    throw new WaitingError('SharesMove', 'Other spaces of the org give back a part of what it may hold.', sharesMoveMs);
}

/**
 * Starts to count the objects of an older namespace that has no quota. This waits until the quota can name all kinds; until then nothing is
 * limited.
 */
async function count(context: Context, ns: string, { limits, left }: Pick<PlaceLimits, 'limits' | 'left'>): Promise<number> {
  if (left > 0) return left;
  await create(context, buildCounter(ns, limits));
  return countPollMs;
}

/** Divides an org's total again whenever the use of one of its spaces changes. */
export function orgSharesReconciler(shares: SpaceShares): Reconciler {
  return {
    name: 'org-shares',
    watches: [
      watch(kinds.org),
      watch<CFSpace>(kinds.space, (space, stores) => orgKeys(space.metadata.namespace, stores)),
      watch<ResourceQuota>(resourceQuotaType, (quota, stores) =>
        spaceKeys(quota.metadata.namespace, stores).flatMap((key) => orgKeys(splitKey(key).ns, stores)),
      ),
      watch<CFQuota>(kinds.quota, orgKeysOfQuota),
      watch<AppWorkload>(kinds.appWorkload, limitedOrgKeys),
      watch<BuildWorkload>(kinds.buildWorkload, limitedOrgKeys),
      watch<TaskWorkload>(kinds.taskWorkload, limitedOrgKeys),
    ],
    indexes: countIndexes,
    reconcile: async (key, context) => {
      const { waiting, left } = await divideAll(context, splitKey(key).name, shares);
      if (waiting.size > 0) return { requeueAfterMs: sharesMoveMs };
      return left === 0 ? undefined : { requeueAfterMs: left };
    },
  };
}

/** The org of what wants to run, if a quota of the org decides which of its spaces gets how much. */
function limitedOrgKeys({ metadata }: { metadata: { namespace: string } }, stores: Stores): string[] {
  return spaceKeys(metadata.namespace, stores)
    .flatMap((key) => orgKeys(splitKey(key).ns, stores))
    .filter((key) => {
      const { ns, name } = splitKey(key);
      return (stores.of(kinds.org).get(ns, name)?.metadata.annotations?.[annotations.quota] ?? '') !== '';
    });
}

const ageOf = (context: Context, object: KubeObject | undefined): number =>
  context.now() - Date.parse(object?.metadata.creationTimestamp ?? new Date(context.now()).toISOString());

async function create(context: Context, quota: ResourceQuota): Promise<void> {
  try {
    await context.cluster.create(resourceQuotaType, quota, { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/**
 * Sets limits for existing objects, once they are counted. A quota that is already full would refuse the next replacement of a pod, so each
 * default becomes at least {@link roomFactor} times the present use. Limits that the operator set stay as they are.
 */
async function settle(context: Context, live: Stored<ResourceQuota>, limits: Limits, named: Limits = {}): Promise<number | undefined> {
  const used = live.status?.used ?? {};
  const isCounted = Object.keys(live.spec?.hard ?? {}).every((resource) => resource in used);
  if (!isCounted && ageOf(context, live) < countedMs) return countPollMs;
  const wider = Object.fromEntries(
    Object.entries(limits).flatMap(([resource, limit]) => {
      const wanted = withRoom(used[resource], limit);
      return wanted === undefined || resource in named ? [] : [[resource, wanted]];
    }),
  );
  const { namespace, name, resourceVersion } = live.metadata;
  const gone = Object.fromEntries(Object.keys(live.spec?.hard ?? {}).flatMap((key) => (key in limits ? [] : [[key, null]])));
  const notes = { ...buildLimits(namespace, limits).metadata.annotations, [annotations.countsUse]: null };
  const patch = { metadata: { resourceVersion, annotations: notes }, spec: { hard: { ...gone, ...limits, ...wider } } };
  await context.cluster.mergePatch(resourceQuotaType, namespace, name, patch, { signal: context.signal });
  const texts = Object.entries(wider).map(([resource, limit]) => `${resource} ${limit} (default ${limits[resource] ?? ''})`);
  const message = `These limits are higher than the defaults, because the namespace already held too much for them: ${texts.join(', ')}.`;
  if (texts.length > 0) context.event(resourceQuotaType, live, { type: 'Normal', reason: 'LimitsWidened', message });
  return undefined;
}

/** Undefined when the default limit is high enough. */
function withRoom(used: string | undefined, limit: string): string | undefined {
  const [now, most] = [parseQuantity(used), parseQuantity(limit)];
  if (now === undefined || most === undefined || now * roomFactor <= most) return undefined;
  return limit.endsWith('i') ? `${String(Math.ceil((now * roomFactor) / 2 ** 20))}Mi` : String(Math.ceil(now * roomFactor));
}

async function renew(context: Context, live: Stored<ResourceQuota>, limits: Limits): Promise<void> {
  const before = writtenBefore(live);
  // A quota that differs from what the controller wrote was changed by an operator; one without that record was made by somebody else.
  if (before === undefined || isEqual(before, limits) || !isSame(before, live.spec?.hard ?? {})) return;
  await rewrite(context, live, limits, { resourceVersion: live.metadata.resourceVersion });
}
