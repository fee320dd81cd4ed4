// Divides an org's total among the quotas of its spaces, so that together they never admit more than the total. A quota admits on its own, so
// creating an object needs no other request, and the total also holds while the controller is away.

import { resourceQuotaType, type ResourceQuota } from '../../lib/api/core.ts';
import { annotations, kinds, limitsName } from '../../lib/api/group.ts';
import type { KubeObject, ResourceType, Stored } from '../../lib/api/object.ts';
import { memoryResource } from '../../lib/api/quotas.ts';
import { megabyte, parseQuantity } from '../../lib/api/sizes.ts';
import type { CFSpace } from '../../lib/api/types.generated.ts';
import { isAlreadyExists } from '../../lib/kube/errors.ts';
import { buildLimits, wholeLimits, type Limits, type LimitsKind } from '../../templates/limits.ts';
import { index, type Context, type Index } from '../runtime/reconciler.ts';
import type { Precondition } from '../runtime/fenced.ts';
import { divide, sum, type Holding } from './division.ts';
import { byNamespace, demandIn } from './quotas.ts';
import { QuietSpaces, type Look } from './quiet-spaces.ts';

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

/**
 * Writes `limits` into a quota and removes the controller's earlier limits.
 * @param quotas the quotas of org and space that the limits follow from, as JSON; left out: none
 */
export async function rewrite(
  context: Context,
  live: Stored<ResourceQuota>,
  limits: Limits,
  precondition: Precondition,
  quotas?: string,
): Promise<void> {
  const { namespace, name } = live.metadata;
  const gone = Object.fromEntries(Object.keys(live.spec?.hard ?? {}).flatMap((key) => (key in limits ? [] : [[key, null]])));
  const { metadata, spec } = buildLimits(namespace, limits);
  const notes = { ...metadata.annotations, ...notesOf(live, quotas) };
  const patch = { metadata: { ...precondition, annotations: notes }, spec: { hard: { ...gone, ...spec?.hard } } };
  await context.cluster.mergePatch(resourceQuotaType, namespace, name, patch, { signal: context.signal });
}

/** The annotation of a quota that names the quotas of org and space; null removes it. Empty when it is right. */
function notesOf({ metadata }: Stored<ResourceQuota>, quotas: string | undefined): Record<string, string | null> {
  return metadata.annotations?.[annotations.quotas] === quotas ? {} : { [annotations.quotas]: quotas ?? null };
}

/** True while only the controller has changed the quota, and existing objects have been counted. */
function isShared(quota: Stored<ResourceQuota>): boolean {
  const written = writtenBefore(quota);
  return (
    written !== undefined && quota.metadata.annotations?.[annotations.countsUse] === undefined && isSame(written, quota.spec?.hard ?? {})
  );
}

/** The limits of each space, and of all spaces of its org together. */
export interface OrgLimits {
  space: (space: Stored<CFSpace>) => SpaceLimits;
  total: Limits;
  /** The totals that a quota of the org sets. */
  exact: ReadonlySet<string>;
}

export interface SpaceLimits {
  limits: Limits;
  /** The quotas of org and space that they follow from, as JSON; left out: none. */
  quotas?: string | undefined;
}

interface Share {
  ns: string;
  /** Undefined when it does not exist yet. */
  quota: Stored<ResourceQuota> | undefined;
  most: Limits;
  limits: Limits;
  quotas: string | undefined;
}

/** A space has no feature flags, and the controller may not read them. */
const counted = Object.values<ResourceType>(kinds).filter(({ plural }) => plural !== kinds.featureFlag.plural);

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

function holdingOf(context: Context, { ns, quota, limits }: Share, resource: string, isExact: boolean): Holding {
  const amount = (of: Limits | undefined): number => parseQuantity(of?.[resource]) ?? 0;
  // A resource that the quota did not name was unlimited; its objects are counted once the quota names it.
  const given = quota?.spec?.hard?.[resource] === undefined && quota !== undefined ? amount(limits) : amount(quota?.spec?.hard);
  const [there, known] = [countIn(context, ns, resource), amount(quota?.status?.used)];
  const used = Math.max(there, known);
  const asked = isExact ? Math.max(0, demandIn(context, ns, resource) - used) : 0;
  return { used, asked, uncounted: Math.max(0, there - known), given, inForce: amount(quota?.status?.hard) };
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

/** A quota of cf has whole megabytes. */
const textOf = (resource: string, amount: number, isExact: boolean): string =>
  isExact && resource === memoryResource ? `${String(Math.floor(amount / megabyte))}Mi` : String(amount);

/** Sets what each space may have of one resource. Returns the spaces that get more when others have given something back. */
function shareOut(context: Context, shares: readonly Share[], resource: string, total: number, isExact: boolean): string[] {
  const most = shares.map((share) => parseQuantity(share.most[resource]) ?? Infinity);
  const holdings = shares.map((share) => holdingOf(context, share, resource, isExact));
  const division = divide(total, most, holdings, { isExact });
  for (const [index, share] of shares.entries()) {
    const amount = division.shares[index] ?? 0;
    if (amount !== most[index]) share.limits[resource] = textOf(resource, amount, isExact);
  }
  return shares.filter((_, index) => division.isShort[index]).map(({ ns }) => ns);
}

/** Divides the totals of orgs. The divisions of one org run one after the other, because each depends on the one before. */
export class OrgShares {
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #quiet = new Map<string, QuietSpaces>();
  readonly #now: () => number;
  readonly #kind: LimitsKind;

  /**
   * @param now monotonic clock in milliseconds
   * @param kind which quota of each space
   */
  constructor(now: () => number = () => performance.now(), kind: LimitsKind = wholeLimits) {
    this.#now = now;
    this.#kind = kind;
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

  async #divide(
    context: Context,
    org: string,
    { space: limitsOf, total, exact }: OrgLimits,
    newSpace?: string,
  ): Promise<ReadonlySet<string>> {
    const quotas = context.stores.of(resourceQuotaType);
    const shares: Share[] = [];
    // Deleted spaces whose quota is gone but where a finalizer of others still holds objects.
    const left: string[] = [];
    for (const space of context.stores.of(kinds.space).list(org)) {
      const ns = space.metadata.name;
      const quota = quotas.get(ns, this.#kind.name);
      const { limits: most, quotas: applied } = limitsOf(space);
      const share = { ns, quota, most, limits: { ...most }, quotas: applied };
      if (quota === undefined ? ns === newSpace || this.#joins(context, ns) : isShared(quota)) shares.push(share);
      else if (quota === undefined) left.push(ns);
    }
    const quiet = this.#look(context, org, shares, Object.keys(total));
    const waiting = new Set<string>();
    for (const [resource, text] of Object.entries(total)) {
      const all = parseQuantity(text);
      if (all === undefined) continue;
      const open = all - sum(left.map((ns) => countIn(context, ns, resource)));
      for (const ns of shareOut(context, shares, resource, open, exact.has(resource))) waiting.add(ns);
    }
    for (const ns of await this.#write(context, shares, quiet)) waiting.add(ns);
    return waiting;
  }

  /** A space that exists already gets the quota of instances when it is first limited; its other quota shows that its namespace is complete. */
  #joins(context: Context, ns: string): boolean {
    return this.#kind.name !== limitsName && context.stores.of(resourceQuotaType).get(ns, limitsName) !== undefined;
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
    for (const share of shares) {
      const { ns, quota, limits } = share;
      if (quota !== undefined && !isSame(limits, quota.spec?.hard ?? {}) && !quiet.isTime(ns)) {
        held.push(ns);
        continue;
      }
      if (quota === undefined) await this.#create(context, share);
      // Only the uid is a precondition: each object that the space creates changes the version.
      else if (!isSame(limits, quota.spec?.hard ?? {}) || Object.keys(notesOf(quota, share.quotas)).length > 0)
        await rewrite(context, quota, limits, { uid: quota.metadata.uid }, share.quotas);
      quiet.settled(ns);
    }
    return held;
  }

  async #create(context: Context, { ns, limits, quotas }: Share): Promise<void> {
    if (Object.keys(limits).length === 0) return;
    try {
      await context.cluster.create(resourceQuotaType, buildLimits(ns, limits, this.#kind, quotas), { signal: context.signal });
    } catch (error) {
      // Somebody else made one, which the cache leaves out.
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
