// Divides an org's total among the quotas of its spaces, so that together they never admit more than the total. A quota admits on its own, so
// creating an object needs no other request, and the total also holds while the controller is away.

import { resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, kinds, limitsName } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { parseQuantity } from '../../lib/api/sizes.ts';
import { buildLimits, type Limits } from '../../templates/limits.ts';
import { index, type Context, type Index } from '../runtime/reconciler.ts';
import type { Precondition } from '../runtime/fenced.ts';
import { QuietSpaces, type Look } from './quiet-spaces.ts';

/** Use and limit of one resource in one space. */
export interface Holding {
  used: number;
  /**
   * The part of `used` that the quota has not counted yet, because the cluster counts again, with a delay, after a quota is written. For example,
   * 10 apps exist and the quota has counted 7. Then it admits 3 apps too many.
   */
  uncounted: number;
  /** The limit in its quota. */
  given: number;
  /** The limit that the cluster still applies: a lower limit takes effect a moment after it is written. */
  inForce: number;
}

export interface Division {
  /** The limit of each quota, in the order of the holdings. */
  shares: number[];
  /** For each: it gets more as soon as other spaces have given back their part. */
  isShort: boolean[];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/**
 * Divides the free part of `total` equally, and keeps one part for a future space. A share with more than half a part left stays as it is, so that
 * not every change writes quotas. Only free amounts are given, so the sum of the limits in force never exceeds the total.
 *
 * @param most limit of one space
 */
export function divide(total: number, most: number, holdings: readonly Holding[]): Division {
  const part = Math.floor(Math.max(0, total - sum(holdings.map(({ used }) => used))) / (holdings.length + 1));
  const fair = holdings.map(({ used }) => Math.min(most, used + part));
  const wanted = holdings.map(({ used, given }, index) =>
    part > 0 && given - used < part / 2 ? Math.max(0, (fair[index] ?? 0) - Math.max(used, given)) : 0,
  );
  let open = total - sum(holdings.map(({ used, given, inForce, uncounted }) => Math.max(used, given, inForce) + uncounted));
  const isTight = sum(wanted) > open || sum(holdings.map(({ used, given, uncounted }) => Math.max(used, given) + uncounted)) > total;
  const isShort: boolean[] = [];
  const shares = holdings.map(({ used, given, uncounted }, index) => {
    const more = Math.max(0, Math.min(wanted[index] ?? 0, open));
    open -= more;
    isShort.push(more < (wanted[index] ?? 0));
    if (more > 0) return Math.max(used, given) + more;
    if (!isTight) return Math.min(most, given);
    return Math.max(0, Math.min(given, (fair[index] ?? 0) - uncounted));
  });
  return { shares, isShort };
}

/** What the controller last wrote into a quota; undefined for a quota that somebody else made. */
export function writtenBefore({ metadata }: Stored<ResourceQuota>): Limits | undefined {
  try {
    return JSON.parse(metadata.annotations?.[annotations.defaultLimits] ?? '') as Limits;
  } catch {
    return undefined;
  }
}

/** Equal amounts of the same resources; the API server writes `3000` as `3k`. */
export function isSame(one: Limits, other: Limits): boolean {
  const amount = (text: string | undefined): number | string => parseQuantity(text) ?? text ?? '';
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => amount(one[key]) === amount(other[key]));
}

/** Writes `limits` into a quota and removes the controller's earlier limits. */
export async function rewrite(context: Context, live: Stored<ResourceQuota>, limits: Limits, precondition: Precondition): Promise<void> {
  const { namespace, name } = live.metadata;
  const gone = Object.fromEntries(Object.keys(live.spec?.hard ?? {}).flatMap((key) => (key in limits ? [] : [[key, null]])));
  const { metadata, spec } = buildLimits(namespace, limits);
  const patch = { metadata: { ...precondition, annotations: metadata.annotations }, spec: { hard: { ...gone, ...spec?.hard } } };
  await context.cluster.mergePatch(resourceQuotaType, namespace, name, patch, { signal: context.signal });
}

/** True while only the controller has changed the quota, and existing objects have been counted. */
function isShared(quota: Stored<ResourceQuota>): boolean {
  const written = writtenBefore(quota);
  return (
    written !== undefined && quota.metadata.annotations?.[annotations.countsUse] === undefined && isSame(written, quota.spec?.hard ?? {})
  );
}

/** The limits of a space, and of all spaces of its org together. */
export interface OrgLimits {
  space: Limits;
  total: Limits;
}

interface Share {
  ns: string;
  /** Undefined when it does not exist yet. */
  quota: Stored<ResourceQuota> | undefined;
  limits: Limits;
}

const byNamespace = 'namespace';
const counted = Object.values<ResourceType>(kinds);

/** Indexes for counting the objects of a space. */
export const countIndexes: readonly Index[] = counted.map((type) =>
  index<KubeObject>(type, byNamespace, ({ metadata }) => [metadata.namespace ?? '']),
);

/** Undefined for a resource that is not one of kf's own kinds. */
const countedTypeOf = (resource: string): ResourceType | undefined =>
  counted.find(({ plural, group }) => resource === `count/${plural}.${group}`);

/** How many objects of a kind a space has; 0 for a resource that is not one of kf's own kinds. */
function countIn(context: Context, ns: string, resource: string): number {
  const type = countedTypeOf(resource);
  return type === undefined ? 0 : context.stores.of(type).by(byNamespace, ns).length;
}

function holdingOf(context: Context, { ns, quota, limits }: Share, resource: string): Holding {
  const amount = (of: Limits | undefined): number => parseQuantity(of?.[resource]) ?? 0;
  // A resource that the quota did not name was unlimited; its objects are counted once the quota names it.
  const given = quota?.spec?.hard?.[resource] === undefined && quota !== undefined ? amount(limits) : amount(quota?.spec?.hard);
  const [there, known] = [countIn(context, ns, resource), amount(quota?.status?.used)];
  return { used: Math.max(there, known), uncounted: Math.max(0, there - known), given, inForce: amount(quota?.status?.hard) };
}

/** The signature changes when the space's quota or its use of a shared resource changes. */
function lookAt(context: Context, share: Share, resources: readonly string[]): Look {
  const { spec, status } = share.quota ?? {};
  const held = resources.map((resource) => {
    const type = countedTypeOf(resource);
    const used = parseQuantity(status?.used?.[resource]) ?? 0;
    return { used, there: type === undefined ? used : countIn(context, share.ns, resource) };
  });
  return { signature: JSON.stringify([spec?.hard, status?.hard, held]), isCounted: held.every(({ used, there }) => used === there) };
}

/** Divides the totals of orgs. The divisions of one org run one after the other, because each depends on the one before. */
export class OrgShares {
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #quiet = new Map<string, QuietSpaces>();
  readonly #now: () => number;

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Updates the quotas of the org's spaces.
   * @param newSpace also gets its quota
   * @returns the spaces whose quotas must be written later: other spaces have not given back their part yet, or the spaces are not quiet
   */
  async divide(context: Context, org: string, limits: OrgLimits, newSpace?: string): Promise<ReadonlySet<string>> {
    const turn = (this.#turns.get(org) ?? Promise.resolve()).then(() => this.#divide(context, org, limits, newSpace));
    const ended = turn.catch(() => undefined);
    this.#turns.set(org, ended);
    void ended.then(() => this.#turns.get(org) === ended && this.#turns.delete(org));
    return turn;
  }

  async #divide(context: Context, org: string, { space: most, total }: OrgLimits, newSpace?: string): Promise<ReadonlySet<string>> {
    const quotas = context.stores.of(resourceQuotaType);
    const shares: Share[] = [];
    // Deleted spaces whose quota is gone but where a finalizer of others still holds objects.
    const left: string[] = [];
    for (const { metadata } of context.stores.of(kinds.space).list(org)) {
      const ns = metadata.name;
      const quota = quotas.get(ns, limitsName);
      if (quota === undefined ? ns === newSpace : isShared(quota)) shares.push({ ns, quota, limits: { ...most } });
      else if (quota === undefined) left.push(ns);
    }
    const quiet = this.#look(context, org, shares, Object.keys(total));
    const waiting = new Set<string>();
    for (const [resource, text] of Object.entries(total)) {
      const limit = parseQuantity(most[resource]) ?? Infinity;
      const all = parseQuantity(text);
      if (all === undefined) continue;
      const division = divide(
        all - sum(left.map((ns) => countIn(context, ns, resource))),
        limit,
        shares.map((share) => holdingOf(context, share, resource)),
      );
      for (const [index, share] of shares.entries()) {
        const amount = division.shares[index] ?? 0;
        if (amount !== limit) share.limits[resource] = String(amount);
        if (division.isShort[index] === true) waiting.add(share.ns);
      }
    }
    for (const ns of await this.#write(context, shares, quiet)) waiting.add(ns);
    return waiting;
  }

  #look(context: Context, org: string, shares: readonly Share[], resources: readonly string[]): QuietSpaces {
    const quiet = this.#quiet.get(org) ?? new QuietSpaces(this.#now);
    quiet.look(new Map(shares.flatMap((share) => (share.quota === undefined ? [] : [[share.ns, lookAt(context, share, resources)]]))));
    if (shares.length > 0) this.#quiet.set(org, quiet);
    else this.#quiet.delete(org);
    return quiet;
  }

  /** Returns the spaces whose quotas have to wait until the spaces are quiet. They keep their limits; the division took that into account. */
  async #write(context: Context, shares: readonly Share[], quiet: QuietSpaces): Promise<string[]> {
    const held: string[] = [];
    for (const { ns, quota, limits } of shares) {
      if (quota !== undefined && !isSame(limits, quota.spec?.hard ?? {}) && !quiet.isTime(ns)) {
        held.push(ns);
        continue;
      }
      if (quota === undefined) await context.cluster.create(resourceQuotaType, buildLimits(ns, limits), { signal: context.signal });
      // Only the uid is a precondition: each object that the space creates changes the version.
      else if (!isSame(limits, quota.spec?.hard ?? {})) await rewrite(context, quota, limits, { uid: quota.metadata.uid });
      quiet.settled(ns);
    }
    return held;
  }
}
