// The ResourceQuota of an org or space: made once, brought up to date with the installation's defaults, and left alone as soon as an operator changed it.

import { configMapType, namespaceType, resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, places } from '../../lib/api/group.ts';
import type { KubeObject } from '../../lib/api/object.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildCounter, buildLimits, limitsName, limitsOf, type LimitedPlace, type Limits } from '../../templates/limits.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';

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
/** What is there may be replaced side by side, and grow a little. */
const roomFactor = 1.5;

/** Keeps the quota of namespace `ns`. Gives back in how many milliseconds it has to be looked at again, if at all. */
export async function ensureLimits(context: Context, place: LimitedPlace, ns: string): Promise<number | undefined> {
  const info = context.stores.of(configMapType).get(context.info().root, places.info);
  const left = Math.max(0, kindsKnownMs - ageOf(context, info));
  const named = context.info().limits?.[place];
  const limits = limitsOf(place, named, left === 0);
  const live = await context.cluster.get(resourceQuotaType, ns, limitsName, context.signal);
  if (live?.metadata.annotations?.[annotations.countsUse] !== undefined) return settle(context, live, limits, named);
  const again = left === 0 ? undefined : left;
  if (live !== undefined) await renew(context, live, limits);
  else if (ageOf(context, context.stores.of(namespaceType).get(undefined, ns)) < newMs) await create(context, buildLimits(ns, limits));
  else if (left === 0) {
    await create(context, buildCounter(ns, limits));
    return countPollMs;
  }
  // Else it was there without limits, and may be until all kinds can be counted.
  return again;
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
async function settle(context: Context, live: ResourceQuota, limits: Limits, named: Limits = {}): Promise<number | undefined> {
  const used = live.status?.used ?? {};
  const isCounted = Object.keys(live.spec?.hard ?? {}).every((resource) => resource in used);
  if (!isCounted && ageOf(context, live) < countedMs) return countPollMs;
  const wider = Object.fromEntries(
    Object.entries(limits).flatMap(([resource, limit]) => {
      const wanted = withRoom(used[resource], limit);
      return wanted === undefined || resource in named ? [] : [[resource, wanted]];
    }),
  );
  const { namespace = '', name = '', resourceVersion } = live.metadata;
  const gone = Object.fromEntries(Object.keys(live.spec?.hard ?? {}).flatMap((key) => (key in limits ? [] : [[key, null]])));
  const notes = { ...buildLimits(namespace, limits).metadata.annotations, [annotations.countsUse]: null };
  const patch = { metadata: { resourceVersion, annotations: notes }, spec: { hard: { ...gone, ...limits, ...wider } } };
  await context.cluster.mergePatch(resourceQuotaType, namespace, name, patch, { signal: context.signal });
  const texts = Object.entries(wider).map(([resource, limit]) => `${resource} ${limit} (default ${limits[resource] ?? ''})`);
  const message = `The limits are wider than the defaults, because so much was there before them: ${texts.join(', ')}.`;
  if (texts.length > 0) context.event(resourceQuotaType, live, { type: 'Normal', reason: 'LimitsWidened', message });
  return undefined;
}

/** Undefined where the default has room enough. */
function withRoom(used: string | undefined, limit: string): string | undefined {
  const [now, most] = [amountOf(used), amountOf(limit)];
  if (typeof now !== 'number' || typeof most !== 'number' || now * roomFactor <= most) return undefined;
  return limit.endsWith('i') ? `${String(Math.ceil((now * roomFactor) / 2 ** 20))}Mi` : String(Math.ceil(now * roomFactor));
}

async function renew(context: Context, live: ResourceQuota, limits: Limits): Promise<void> {
  const before = writtenBefore(live);
  // What differs from what was written is an operator's, and so is a quota that somebody else made.
  if (before === undefined || isEqual(before, limits) || !isSame(before, live.spec?.hard ?? {})) return;
  const { namespace, name = '', resourceVersion } = live.metadata;
  const gone = Object.fromEntries(Object.keys(before).flatMap((key) => (key in limits ? [] : [[key, null]])));
  const { metadata, spec } = buildLimits(namespace ?? '', limits);
  const patch = { metadata: { resourceVersion, annotations: metadata.annotations }, spec: { hard: { ...gone, ...spec?.hard } } };
  await context.cluster.mergePatch(resourceQuotaType, namespace, name, patch, { signal: context.signal });
}

function writtenBefore({ metadata }: ResourceQuota): Limits | undefined {
  try {
    return JSON.parse(metadata.annotations?.[annotations.defaultLimits] ?? '') as Limits;
  } catch {
    return undefined;
  }
}

/** Equal amounts of the same resources; the API server writes `3000` as `3k`. */
function isSame(one: Limits, other: Limits): boolean {
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => amountOf(one[key]) === amountOf(other[key]));
}

const factors: Record<string, number> = {
  ...{ m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/; what is none stays a text. */
function amountOf(quantity: string | undefined): number | string {
  const text = quantity ?? '';
  const unit = /[a-zA-Z]{0,2}$/.exec(text)?.[0] ?? '';
  const amount = Number(text.slice(0, text.length - unit.length)) * (factors[unit] ?? Number.NaN);
  return Number.isNaN(amount) || text === '' ? text : amount;
}
