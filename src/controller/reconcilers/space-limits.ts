// The ResourceQuota of an org or space: made once, brought up to date with the installation's defaults, and left alone as soon as an operator changed it.

import { configMapType, resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, places } from '../../lib/api/group.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildLimits, limitsName, limitsOf, type LimitedPlace, type Limits } from '../../templates/limits.ts';
import { isEqual } from '../runtime/merge-patch.ts';
import type { Context } from '../runtime/reconciler.ts';

/**
 * The cluster looks for new kinds every 30 s and refuses objects of a kind that a quota names and it does not know yet. So the quotas of a new
 * installation name kf's kinds only when it is so old.
 */
const kindsKnownMs = 75_000;

/** Keeps the quota of namespace `ns`. Gives back in how many milliseconds it has to be looked at again, if at all. */
export async function ensureLimits(context: Context, place: LimitedPlace, ns: string): Promise<number | undefined> {
  const info = context.stores.of(configMapType).get(context.info().root, places.info);
  const age = context.now() - Date.parse(info?.metadata.creationTimestamp ?? '');
  const limits = limitsOf(place, context.info().limits?.[place], age >= kindsKnownMs);
  await keep(context, ns, limits);
  return age >= kindsKnownMs ? undefined : kindsKnownMs - age;
}

async function keep(context: Context, ns: string, limits: Limits): Promise<void> {
  const live = await context.cluster.get(resourceQuotaType, ns, limitsName, context.signal);
  if (live !== undefined) return renew(context, live, limits);
  try {
    await context.cluster.create(resourceQuotaType, buildLimits(ns, limits), { signal: context.signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
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
