// The ResourceQuota of an org or space: made once, brought up to date with the installation's defaults, and left alone as soon as an operator changed it.

import { configMapType, namespaceType, resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, kinds, limitsName, places } from '../../lib/api/group.ts';
import type { KubeObject, Stored } from '../../lib/api/object.ts';
import { parseQuantity } from '../../lib/api/sizes.ts';
import type { CFSpace } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildCounter, buildLimits, limitsOf, totalsOf, type LimitedPlace, type Limits } from '../../templates/limits.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { splitKey } from '../runtime/store.ts';
import { orgKeys, spaceKeys } from './namespaces.ts';
import { countIndexes, isSame, rewrite, writtenBefore, type OrgLimits, type OrgShares } from './org-shares.ts';

/**
 * The cluster looks for new kinds every 30 s and refuses objects of a kind that a quota names and it does not know yet. So the quotas of a new
 * installation name kf's kinds only when it is so old.
 */
const kindsKnownMs = 75_000;

/** A namespace that is older had time to fill before it got a quota: kf 0.1.0 made none. */
const newMs = 60_000;
/** The cluster counts within seconds. What it has not counted after this time it cannot count. */
const countedMs = 120_000;
const countPollMs = 1_000;
/** The cluster takes over what a quota gives within a second. */
const sharesMoveMs = 1_000;
/** What is there may be replaced side by side, and grow a little. */
const roomFactor = 1.5;

/** The limits as the installation has them now. */
interface PlaceLimits {
  limits: Limits;
  /** As the operator named them. */
  named: Limits;
  /** Milliseconds until kf's kinds can be named, too. */
  left: number;
}

function namedFor(context: Context, place: LimitedPlace): PlaceLimits {
  const info = context.stores.of(configMapType).get(context.info().root, places.info);
  const left = Math.max(0, kindsKnownMs - ageOf(context, info));
  const named = context.info().limits?.[place] ?? {};
  return { limits: limitsOf(place, named, left === 0), named, left };
}

function orgLimits(context: Context): OrgLimits & { left: number } {
  const { limits, left } = namedFor(context, 'space');
  return { space: limits, total: totalsOf(limits, context.info().limits?.orgTotal, left === 0), left };
}

const isYoung = (context: Context, ns: string): boolean => ageOf(context, context.stores.of(namespaceType).get(undefined, ns)) < newMs;

/** Keeps the quota of an org's own namespace. Gives back in how many milliseconds it has to be looked at again, if at all. */
export async function ensureOrgLimits(context: Context, ns: string): Promise<number | undefined> {
  const { limits, named, left } = namedFor(context, 'org');
  const live = await context.cluster.get(resourceQuotaType, ns, limitsName, context.signal);
  if (live?.metadata.annotations?.[annotations.countsUse] !== undefined) return settle(context, live, limits, named);
  if (live !== undefined) await renew(context, live, limits);
  else if (isYoung(context, ns)) await create(context, buildLimits(ns, limits));
  else return count(context, ns, { limits, left });
  return left === 0 ? undefined : left;
}

/** Before anybody has a right in it a space has a quota, with a share of what its org may hold. */
export async function ensureSpaceLimits(
  context: Context,
  org: string,
  { ns, isReady }: { ns: string; isReady: boolean },
  shares: OrgShares,
): Promise<void> {
  const { limits, named, left } = namedFor(context, 'space');
  const live = await context.cluster.get(resourceQuotaType, ns, limitsName, context.signal);
  if (live?.metadata.annotations?.[annotations.countsUse] !== undefined) await settle(context, live, limits, named);
  if (live === undefined && !isYoung(context, ns)) {
    await count(context, ns, { limits, left });
    return;
  }
  const waiting = await shares.divide(context, org, orgLimits(context), ns);
  if (waiting.has(ns) && !isReady)
    throw new WaitingError('SharesMove', 'Other spaces of the org give back a part of what it may hold.', sharesMoveMs);
}

/** Starts to count what is in an older namespace that has no quota. This waits until the quota can name all kinds; until then nothing is limited. */
async function count(context: Context, ns: string, { limits, left }: Pick<PlaceLimits, 'limits' | 'left'>): Promise<number> {
  if (left > 0) return left;
  await create(context, buildCounter(ns, limits));
  return countPollMs;
}

/** Shares out anew what an org may hold whenever one of its spaces holds more or less. */
export function orgSharesReconciler(shares: OrgShares): Reconciler {
  return {
    name: 'org-shares',
    watches: [
      watch(kinds.org),
      watch<CFSpace>(kinds.space, (space, stores) => orgKeys(space.metadata.namespace, stores)),
      watch<ResourceQuota>(resourceQuotaType, (quota, stores) =>
        spaceKeys(quota.metadata.namespace, stores).flatMap((key) => orgKeys(splitKey(key).ns, stores)),
      ),
    ],
    indexes: countIndexes,
    reconcile: async (key, context) => {
      const { left, ...limits } = orgLimits(context);
      const waiting = await shares.divide(context, splitKey(key).name, limits);
      if (waiting.size > 0) return { requeueAfterMs: sharesMoveMs };
      return left === 0 ? undefined : { requeueAfterMs: left };
    },
  };
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
 * Puts limits over what is there, once it is counted. A quota that is full already would refuse the next replacement of a pod; so each default is
 * at least {@link roomFactor} times the present use. Those that the operator named are as they are named.
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

/** Undefined where the default has room enough. */
function withRoom(used: string | undefined, limit: string): string | undefined {
  const [now, most] = [parseQuantity(used), parseQuantity(limit)];
  if (now === undefined || most === undefined || now * roomFactor <= most) return undefined;
  return limit.endsWith('i') ? `${String(Math.ceil((now * roomFactor) / 2 ** 20))}Mi` : String(Math.ceil(now * roomFactor));
}

async function renew(context: Context, live: Stored<ResourceQuota>, limits: Limits): Promise<void> {
  const before = writtenBefore(live);
  // What differs from what was written is an operator's, and so is a quota that somebody else made.
  if (before === undefined || isEqual(before, limits) || !isSame(before, live.spec?.hard ?? {})) return;
  await rewrite(context, live, limits, { resourceVersion: live.metadata.resourceVersion });
}
