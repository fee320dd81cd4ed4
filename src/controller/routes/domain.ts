// Reconciles CFDomain: it is ready once it was checked. The only object that is made for it is its redirection to https.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { configMapType } from '../../lib/api/core.ts';
import { httpRouteType, isRedirected } from '../../lib/api/gateway.ts';
import { conditionTypes, kinds } from '../../lib/api/group.ts';
import type { CFDomain } from '../../lib/api/types.generated.ts';
import { watch, type Context, type Reconciler } from '../runtime/reconciler.ts';
import { conditionsWith, readyStatement, writeMetadata, writeStatus, type Statement } from '../runtime/status.ts';
import { keyOf, splitKey } from '../runtime/store.ts';
import { isInternal, lookAfterSlices, slicesLookMs } from './internal.ts';
import { ensureRedirect } from './redirect.ts';
import { routesByDomain } from './route.ts';

/** How often it is looked whether the redirection of a domain is still there: until it comes back, no route answers http. */
const redirectLookMs = 4_000;
/** While routes are written that a redirection is to be removed for. */
const redirectEndMs = 200;

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
    // Whoever ends the redirection waits for Ready. A route that cannot be written does not hold it up: it fails with a cause of its own.
    if (awaited.some((route) => findCondition(route, conditionTypes.ready)?.status !== 'False')) return { requeueAfterMs: redirectEndMs };
    await writeStatus(context, kinds.domain, domain, { ...domain.status, conditions: conditionsWith(domain, statement) });
    const isWatched = awaited.length > 0 || isRedirected(domain, context.info().gateway.https);
    if (!isInternal(domain)) return isWatched ? { requeueAfterMs: redirectLookMs } : undefined;
    await lookAfterSlices(context);
    return { requeueAfterMs: slicesLookMs };
  },
};
