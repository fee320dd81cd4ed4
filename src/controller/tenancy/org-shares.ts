// What an org may hold in all is shared out to the quotas of its spaces: together they never let in more. A quota admits by what it says itself, so
// nothing has to be asked when an object is made, and nothing is let in while the controller is away.

import { resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, kinds, limitsName } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { parseQuantity } from '../../lib/api/sizes.ts';
import { buildLimits, type Limits } from '../../templates/limits.ts';
import { index, type Context, type Index } from '../runtime/reconciler.ts';
import type { Precondition } from '../runtime/fenced.ts';
import { QuietSpaces, type Look } from './quiet-spaces.ts';

/** What one space has of one resource. */
export interface Holding {
  used: number;
  /**
   * Of `used`, what the quota has not counted yet, because the cluster counts again, and some time later, after a quota is written. For example, 10
   * apps exist and the quota has counted 7. Then it lets in 3 apps too many.
   */
  uncounted: number;
  /** What its quota gives it. */
  given: number;
  /** What its quota may still let in: the cluster takes over a lower limit a moment after it is written. */
  inForce: number;
}

export interface Division {
  /** What each quota is to give, in the order of the holdings. */
  shares: number[];
  /** For each: it gets more as soon as what others were given is taken back. */
  isShort: boolean[];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/**
 * Divides what is free of `total` equally, with one part left for a space to come. A share that leaves more than half of a part stays as it is, so that
 * quotas are not written at every change. What is given anew was free before: the sum of what is in force never grows beyond the total.
 *
 * @param most that one space may have
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

/** What the controller wrote last into a quota; undefined for a quota that is somebody else's. */
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

/** Writes `limits` into a quota, in place of what the controller wrote before. */
export async function rewrite(context: Context, live: Stored<ResourceQuota>, limits: Limits, precondition: Precondition): Promise<void> {
  const { namespace, name } = live.metadata;
  const gone = Object.fromEntries(Object.keys(live.spec?.hard ?? {}).flatMap((key) => (key in limits ? [] : [[key, null]])));
  const { metadata, spec } = buildLimits(namespace, limits);
  const patch = { metadata: { ...precondition, annotations: metadata.annotations }, spec: { hard: { ...gone, ...spec?.hard } } };
  await context.cluster.mergePatch(resourceQuotaType, namespace, name, patch, { signal: context.signal });
}

/** True while nobody but the controller has changed it, and what is there has been counted. */
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
  /** Undefined: it is to be made. */
  quota: Stored<ResourceQuota> | undefined;
  limits: Limits;
}

const byNamespace = 'namespace';
const counted = Object.values<ResourceType>(kinds);

/** By which the objects of a space are counted. */
export const countIndexes: readonly Index[] = counted.map((type) =>
  index<KubeObject>(type, byNamespace, ({ metadata }) => [metadata.namespace ?? '']),
);

/** Undefined for what is not one of kf's own kinds. */
const countedTypeOf = (resource: string): ResourceType | undefined =>
  counted.find(({ plural, group }) => resource === `count/${plural}.${group}`);

/** How many objects a space has; 0 for what is not one of kf's own kinds. */
function countIn(context: Context, ns: string, resource: string): number {
  const type = countedTypeOf(resource);
  return type === undefined ? 0 : context.stores.of(type).by(byNamespace, ns).length;
}

function holdingOf(context: Context, { ns, quota, limits }: Share, resource: string): Holding {
  const amount = (of: Limits | undefined): number => parseQuantity(of?.[resource]) ?? 0;
  // What the quota did not name before could be had without a limit; what is there of it is counted once it is named.
  const given = quota?.spec?.hard?.[resource] === undefined && quota !== undefined ? amount(limits) : amount(quota?.spec?.hard);
  const [there, known] = [countIn(context, ns, resource), amount(quota?.status?.used)];
  return { used: Math.max(there, known), uncounted: Math.max(0, there - known), given, inForce: amount(quota?.status?.hard) };
}

/** A space whose quota says the same, and that holds the same of all that is shared, has not changed. */
function lookAt(context: Context, share: Share, resources: readonly string[]): Look {
  const { spec, status } = share.quota ?? {};
  const held = resources.map((resource) => {
    const type = countedTypeOf(resource);
    const used = parseQuantity(status?.used?.[resource]) ?? 0;
    return { used, there: type === undefined ? used : countIn(context, share.ns, resource) };
  });
  return { signature: JSON.stringify([spec?.hard, status?.hard, held]), isCounted: held.every(({ used, there }) => used === there) };
}

/** Shares out what orgs may hold; one division of an org after the other, since each counts with what the one before gave. */
export class OrgShares {
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #quiet = new Map<string, QuietSpaces>();
  readonly #now: () => number;

  /** @param now monotonic clock in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Brings the quotas of the org's spaces up to date.
   * @param newSpace gets its quota, too
   * @returns the spaces whose quotas are to be written later: what others give back is not there yet, or they are not quiet
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
    // Of deleted spaces: a foreign finalizer keeps objects there, and the quota has gone.
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

  /** Gives back the spaces whose quotas have to wait until they are quiet: they keep what they have, and the division counted with that. */
  async #write(context: Context, shares: readonly Share[], quiet: QuietSpaces): Promise<string[]> {
    const held: string[] = [];
    for (const { ns, quota, limits } of shares) {
      if (quota !== undefined && !isSame(limits, quota.spec?.hard ?? {}) && !quiet.isTime(ns)) {
        held.push(ns);
        continue;
      }
      if (quota === undefined) await context.cluster.create(resourceQuotaType, buildLimits(ns, limits), { signal: context.signal });
      // By the uid alone: each object that the space makes changes the version.
      else if (!isSame(limits, quota.spec?.hard ?? {})) await rewrite(context, quota, limits, { uid: quota.metadata.uid });
      quiet.settled(ns);
    }
    return held;
  }
}
