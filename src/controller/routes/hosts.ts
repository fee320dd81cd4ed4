// Decides which route gets an address: a host with all its paths belongs to one space (docs/decisions/0020), and each path of it to one
// route of that space.

import type { Stored } from '../../lib/api/object.ts';
import { findCondition } from '../../lib/api/conditions.ts';
import { leaseType } from '../../lib/api/core.ts';
import type { Lease } from '../../lib/api/core.ts';
import { annotations, conditionTypes, kinds, reasons } from '../../lib/api/group.ts';
import { isFreeForEveryHost } from '../../lib/api/domains.ts';
import { addressOf, nameClaims } from '../../lib/api/names.ts';
import type { CFDomain, CFRoute } from '../../lib/api/types.generated.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { Remembered } from '../runtime/memory.ts';
import { keyOf } from '../runtime/store.ts';
import { index, type Context, type Index, type Stores } from '../runtime/reconciler.ts';
import { WaitingError } from '../runtime/result.ts';
import { spaceOf as cfSpaceOf } from '../relations.ts';
import { isHalf, isOnlyHalf, ownerOf } from '../shared-routes.ts';
import { claimLease, claimName, createLease, freeLease, heldClaim, isLeaseOf, leaseOwner, refusedClaim, trustMs } from '../names/leases.ts';
import type { ClaimOutcome } from '../names/leases.ts';

/** The operator has allowed a route for every host of the domain. */
const allowed = 'allowed';

const hostKey = (route: Stored<CFRoute>): string => `${route.spec.domainRef.name ?? ''}/${(route.spec.host ?? '').toLowerCase()}`;

/** Routes of all spaces by domain and host. */
export const routesByHost: Index = index<CFRoute>(kinds.route, 'host', (route) => [hostKey(route)]);

/** Routes, by uid, whose space was found to own their host. */
const heldHosts = new Remembered(() => new BoundedMap<string, { lease: string; at: number }>(10_000));

/** When each host that moved to another space was taken, by its Lease. What was known about its holder before is out of date. */
const movedHosts = new Remembered(() => new BoundedMap<string, number>(10_000));

/** Also true for a route that is being deleted: its host is free only when it is gone. */
const isWanted = (route: Stored<CFRoute>): boolean => !isHalf(route) && findCondition(route, conditionTypes.claimed)?.status !== 'False';
const isClaimed = (route: Stored<CFRoute>): boolean => isWanted(route) && findCondition(route, conditionTypes.claimed)?.status === 'True';
const spaceOf = (route: Stored<CFRoute>): string => route.metadata.namespace;

function fqdnOf(route: Stored<CFRoute>, stores: Stores, root: string): string | undefined {
  const domain = stores.of(kinds.domain).get(root, route.spec.domainRef.name ?? '');
  return domain === undefined ? undefined : addressOf(route, domain).fqdn;
}

/** The space's routes that were not refused. Asks the API server, not the cache. */
async function routesOfSpace(context: Context, space: string): Promise<Stored<CFRoute>[]> {
  return (await context.cluster.list(kinds.route, { ns: space, signal: context.signal })).items.filter(isWanted);
}

/** Those of one host. */
async function routesOfHost(context: Context, space: string, fqdn: string, root: string): Promise<Stored<CFRoute>[]> {
  return (await routesOfSpace(context, space)).filter((route) => fqdnOf(route, context.stores, root) === fqdn);
}

/** The hosts of the space's routes that were not refused. Asks the API server, not the cache. */
export async function hostsOfSpace(context: Context, space: string): Promise<ReadonlySet<string>> {
  const routes = await routesOfSpace(context, space);
  return new Set(routes.flatMap((route) => fqdnOf(route, context.stores, context.info().root) ?? []));
}

/** True when the route is the one to which the other space moves its host. A route that leads to an app does not move (docs/decisions/0072). */
const movesTo = (theirs: Stored<CFRoute>, route: Stored<CFRoute>): boolean =>
  theirs.metadata.annotations?.[annotations.movesTo] === keyOf(route) && (theirs.spec.destinations ?? []).length === 0;

/**
 * The space that had the host before kf claimed hosts (kf 0.1.0 claimed each path separately): the one with the oldest route. Undefined
 * when that is the route's own space, or when there is none.
 */
function seniorSpace(route: Stored<CFRoute>, stores: Stores): string | undefined {
  const since = ({ metadata }: Stored<CFRoute>): string => `${metadata.creationTimestamp ?? ''} ${metadata.uid}`;
  const oldest = stores
    .of(kinds.route)
    .by(routesByHost.name, hostKey(route))
    .filter(isClaimed)
    .toSorted((a, b) => (since(a) < since(b) ? -1 : 1))[0];
  return oldest === undefined || spaceOf(oldest) === spaceOf(route) ? undefined : spaceOf(oldest);
}

/** True when the route that the Lease names still exists and still has that host. */
async function stands(context: Context, lease: Stored<Lease>, fqdn: string, root: string): Promise<boolean> {
  const { namespace, name } = leaseOwner(lease);
  const owner = await context.cluster.get(kinds.route, namespace, name, context.signal);
  return owner !== undefined && isWanted(owner) && fqdnOf(owner, context.stores, root) === fqdn;
}

/**
 * True when the route's space has the host. The Lease names one route of the space. When that route is gone, another route of the space
 * replaces it in the Lease, so another space that found the host free at the same moment gets a version conflict.
 */
async function takeHost(context: Context, route: Stored<CFRoute>, fqdn: string, root: string): Promise<boolean> {
  const wanted = claimLease(root, nameClaims.routeHost(fqdn), route);
  const name = wanted.metadata.name ?? '';
  const present = await context.cluster.get(leaseType, root, name, context.signal);
  if (present === undefined) {
    if (seniorSpace(route, context.stores) !== undefined) return false;
    if (await createLease(context, wanted)) return true;
    throw new WaitingError('NameInMotion', 'Another route is claiming or releasing this host right now.', 200);
  }
  if (isLeaseOf(present, route)) return true;
  const holder = leaseOwner(present).namespace;
  const isOwn = holder === spaceOf(route);
  if (isOwn && (await stands(context, present, fqdn, root))) return true;
  const theirs = isOwn ? [] : await routesOfHost(context, holder, fqdn, root);
  if (!theirs.every((one) => movesTo(one, route))) return false;
  const { resourceVersion, uid } = present.metadata;
  const mine = { ...wanted, metadata: { ...wanted.metadata, resourceVersion, uid } };
  await context.cluster.replace(leaseType, mine, { signal: context.signal });
  if (theirs.length > 0) context.memory.of(movedHosts).set(name, context.now());
  return true;
}

async function holdsHost(context: Context, route: Stored<CFRoute>, fqdn: string, root: string): Promise<boolean> {
  const { uid } = route.metadata;
  const lease = nameClaims.routeHost(fqdn).leaseName;
  const trusted = context.memory.of(heldHosts);
  const known = trusted.get(uid);
  const movedAt = context.memory.of(movedHosts).get(lease);
  const isCurrent = movedAt === undefined || (known !== undefined && known.at > movedAt);
  if (known?.lease === lease && isCurrent && context.now() - known.at < trustMs) return true;
  trusted.delete(uid);
  // The time before the question: the host may move to another space before the answer arrives.
  const at = context.now();
  if (!(await takeHost(context, route, fqdn, root))) return false;
  trusted.set(uid, { lease, at });
  return true;
}

/** Checks the host again next time: its domain was missing, so others may have taken it. */
export function distrust({ memory }: Context, route: Stored<CFRoute>): void {
  memory.of(heldHosts).delete(route.metadata.uid);
}

/** Frees the path's Lease if the route still has it from before it lost the host. */
async function releasePath(context: Context, route: Stored<CFRoute>, root: string): Promise<void> {
  const lease = await context.cluster.get(leaseType, root, nameClaims.route(route).leaseName, context.signal);
  if (lease !== undefined && isLeaseOf(lease, route)) await freeLease(context, lease);
}

/**
 * A refusal stays until the route's owner asks again, with a change of the route or with a new route. Otherwise somebody could make a route
 * for a host of another space, and get that host at the moment when the other space gives it up.
 */
function standingRefusal(route: Stored<CFRoute>): ClaimOutcome | undefined {
  const before = findCondition(route, conditionTypes.claimed);
  const stands = before?.reason === reasons.duplicateName && before.observedGeneration === route.metadata.generation;
  return before?.status === 'False' && stands ? refusedClaim(before.reason, before.message) : undefined;
}

/** An operator has allowed it, or the domain belongs to the org of the route's space. */
function mayTakeEveryHost(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): boolean {
  if (route.metadata.annotations?.[annotations.wildcard] === allowed) return true;
  return isFreeForEveryHost(domain, cfSpaceOf(context.stores, spaceOf(route))?.metadata.namespace, route.spec.path);
}

/** The other space keeps the address of a route that it shares, so nothing is claimed. */
function claimShared({ stores }: Context, route: Stored<CFRoute>): ClaimOutcome {
  if (ownerOf(route, stores) === undefined)
    return refusedClaim(reasons.notShared, 'The route is of another space, which does not share it with this one.');
  if (isOnlyHalf(route, stores)) return heldClaim;
  return refusedClaim(reasons.duplicateName, 'The route is of another space, and this space has it already by another object.');
}

/** Claims host and path of a route, or says why the route cannot have them. Call it before any object is made for the route. */
export async function claimRoute(context: Context, route: Stored<CFRoute>, domain: Stored<CFDomain>): Promise<ClaimOutcome> {
  if (isHalf(route)) return claimShared(context, route);
  const refusal = standingRefusal(route);
  if (refusal !== undefined) return refusal;
  const { host = '', protocol = 'http' } = route.spec;
  if (protocol !== 'http' || host === '') {
    return refusedClaim(
      reasons.protocolNotSupported,
      'Only HTTP routes to hosts of a domain work so far, no TCP routes and no routes without a host.',
    );
  }
  if (domain.spec.internal === true && (host === '*' || (route.spec.path ?? '') !== ''))
    return refusedClaim(reasons.protocolNotSupported, 'A route on an internal domain has one host and no path.');
  if (host === '*' && !mayTakeEveryHost(context, route, domain)) {
    const text = `A route for every host of the domain '${domain.spec.name}' is an operator's to make.`;
    return refusedClaim(
      reasons.wildcardNotAllowed,
      `${text} An operator allows this one by its annotation ${annotations.wildcard}: ${allowed}.`,
    );
  }
  const { root } = context.info();
  if (!(await holdsHost(context, route, addressOf(route, domain).fqdn, root))) {
    await releasePath(context, route, root);
    const text = `Route already exists with host '${host}' for domain '${domain.spec.name}'.`;
    return refusedClaim(reasons.duplicateName, `${text} Another space has this host, with all its paths.`);
  }
  const path = await claimName(context, { entity: 'route', object: route, domainName: domain.spec.name });
  return path.held ? heldClaim : path;
}
