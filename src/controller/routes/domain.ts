// Reconciles CFDomain: it is ready once it was checked. The only object that is made for it is its redirection to https.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { configMapType } from '../../lib/api/core.ts';
import { httpRouteType, isRedirected } from '../../lib/api/gateway.ts';
import { conditionTypes, kinds } from '../../lib/api/group.ts';
import type { CFDomain, CFRoute } from '../../lib/api/types.generated.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { conditionsWith, readyStatement, writeMetadata, writeStatus, type Statement } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { isInternal, lookAfterSlices, slicesLookMs } from './internal.ts';
import { ensureRedirect } from './redirect.ts';
import { routesByDomain } from './route.ts';

/** How often it is looked whether the redirection of a domain is still there: until it comes back, no route answers http. */
const redirectLookMs = 4_000;
/** While routes are written that a redirection is to be removed for. The pause grows to a tenth of the time that this has lasted. */
const redirectEndMs = 200;
/** After this time a domain is ready whose redirection stays for some routes: one route of a space must not hold up the operator's command. */
const redirectPatienceMs = 30_000;

/** When this controller first awaited routes for the redirection of a domain, by the uid of the domain. */
const awaitedRoutes = new Remembered(() => new BoundedMap<string, { generation: number; at: number }>(5_000));

/**
 * How long Ready of the domain has to wait until it is looked at again; undefined when it need not wait. Whoever ends the redirection waits for Ready. A
 * route that cannot be written does not hold it up: it fails with a cause of its own, or without one, and then takes {@link redirectPatienceMs}.
 * @param awaited routes for which a redirection stays that is to be removed
 */
function readyPause({ memory, now }: Context, { metadata }: Stored<CFDomain>, awaited: readonly Stored<CFRoute>[]): number | undefined {
  const known = memory.of(awaitedRoutes);
  if (awaited.length === 0) {
    known.delete(metadata.uid);
    return undefined;
  }
  const { uid, generation = 0 } = metadata;
  const before = known.get(uid);
  const at = before?.generation === generation ? before.at : now();
  known.set(uid, { generation, at });
  const elapsed = now() - at;
  const isUnwritten = awaited.some((route) => findCondition(route, conditionTypes.ready)?.status !== 'False');
  return isUnwritten && elapsed < redirectPatienceMs ? Math.max(redirectEndMs, elapsed / 10) : undefined;
}

/** An older domain whose name equals, contains or lies in the name of this one. */
function overlapping(domain: Stored<CFDomain>, all: readonly Stored<CFDomain>[]): Stored<CFDomain> | undefined {
  // A dot at the end of a domain name changes nothing.
  const plain = (one: Stored<CFDomain>): string => one.spec.name.toLowerCase().replace(/\.$/, '');
  const name = plain(domain);
  const isOlder = (other: Stored<CFDomain>): boolean => {
    const [a, b] = [other.metadata.creationTimestamp ?? '', domain.metadata.creationTimestamp ?? ''];
    return a < b || (a === b && keyOf(other) < keyOf(domain));
  };
  return all.find((other) => {
    const theirs = plain(other);
    const overlaps = theirs === name || theirs.endsWith(`.${name}`) || name.endsWith(`.${theirs}`);
    return other.metadata.uid !== domain.metadata.uid && overlaps && isOlder(other);
  });
}

export const domainReconciler: Reconciler = {
  name: 'domain',
  reads: [kinds.route, httpRouteType],
  indexes: [routesByDomain],
  watches: [
    watch(kinds.domain, (_domain, stores) => stores.of(kinds.domain).list().map(keyOf)),
    // The installation's settings have the port of https.
    watch(configMapType, (_info, stores) => stores.of(kinds.domain).list().map(keyOf)),
  ],
  reconcile: async (key, context: Context) => {
    const { ns, name } = splitKey(key);
    const live = context.stores.of(kinds.domain).get(ns, name);
    if (live === undefined) return undefined;
    const domain = await writeMetadata(context, kinds.domain, live, {});
    if (domain.metadata.deletionTimestamp !== undefined) return undefined;
    const other = overlapping(domain, context.stores.of(kinds.domain).list(ns));
    const statement: Statement =
      other === undefined
        ? readyStatement
        : {
            type: 'Ready',
            status: 'False',
            reason: 'DuplicateDomain',
            message: `The domain overlaps with the domain '${other.spec.name}', which was there first.`,
          };
    const awaited = await ensureRedirect(context, domain, other === undefined);
    const pauseMs = readyPause(context, domain, awaited);
    if (pauseMs !== undefined) return { requeueAfterMs: pauseMs };
    await writeStatus(context, kinds.domain, domain, { ...domain.status, conditions: conditionsWith(domain, statement) });
    const isWatched = awaited.length > 0 || isRedirected(domain, context.info().gateway.https);
    if (!isInternal(domain)) return isWatched ? { requeueAfterMs: redirectLookMs } : undefined;
    await lookAfterSlices(context);
    return { requeueAfterMs: slicesLookMs };
  },
};
