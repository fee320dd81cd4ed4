// Routes that spaces share (docs/decisions/0083). The owner's half is a CFRoute that names other spaces in `spec.sharedWith`. The other half is a
// CFRoute of such a space, with the same address, that names the owner's in `spec.sharedFrom`. The owner's HTTPRoute leads to the apps of all halves.

import type { Stored } from '../lib/api/object.ts';
import { findCondition } from '../lib/api/conditions.ts';
import { httpRouteType, type HttpRoute } from '../lib/api/gateway.ts';
import { conditionTypes, kinds } from '../lib/api/group.ts';
import type { CFRoute } from '../lib/api/types.generated.ts';
import { servingAnnotation } from '../templates/http-route.ts';
import { byAge } from './relations.ts';
import { index, type Index, type Stores } from './runtime/reconciler.ts';
import { keyOf } from './runtime/store.ts';

/** The key of the route that a half names. */
const ownerKeys = ({ spec: { sharedFrom } }: CFRoute): string[] =>
  sharedFrom === undefined ? [] : [`${sharedFrom.space}/${sharedFrom.route}`];

/** Halves by the key of the route that they name. */
export const halvesByOwner: Index = index<CFRoute>(kinds.route, 'owner', ownerKeys);

/** True for a route whose address another space has. */
export const isHalf = ({ spec }: CFRoute): boolean => spec.sharedFrom !== undefined;

const isSameAddress = (a: CFRoute, b: CFRoute): boolean =>
  a.spec.domainRef.name === b.spec.domainRef.name &&
  (a.spec.host ?? '').toLowerCase() === (b.spec.host ?? '').toLowerCase() &&
  (a.spec.path ?? '').toLowerCase() === (b.spec.path ?? '').toLowerCase();

const isClaimed = (route: Stored<CFRoute>): boolean => findCondition(route, conditionTypes.claimed)?.status === 'True';

/** The route that a half adds its destinations to; undefined when that route is another one by now, or does not name the half's space. */
export function ownerOf({ metadata, spec }: Stored<CFRoute>, stores: Stores): Stored<CFRoute> | undefined {
  const { sharedFrom } = spec;
  if (sharedFrom === undefined) return undefined;
  const owner = stores.of(kinds.route).get(sharedFrom.space, sharedFrom.route);
  if (owner === undefined || owner.metadata.uid !== sharedFrom.uid || owner.metadata.deletionTimestamp !== undefined) return undefined;
  const isShared = !isHalf(owner) && (owner.spec.sharedWith ?? []).includes(metadata.namespace) && isClaimed(owner);
  return isShared && isSameAddress(owner, { metadata, spec }) ? owner : undefined;
}

/** Halves that name the route, whether they are accepted or not. */
export const halvesOf = (owner: Stored<CFRoute>, stores: Stores): Stored<CFRoute>[] =>
  stores.of(kinds.route).by(halvesByOwner.name, keyOf(owner));

/** The halves whose destinations get requests of the route, oldest first; one for each space. */
export function acceptedHalves(owner: Stored<CFRoute>, stores: Stores): Stored<CFRoute>[] {
  const spaces = new Set<string>();
  return halvesOf(owner, stores)
    .filter((half) => half.metadata.deletionTimestamp === undefined && isClaimed(half) && ownerOf(half, stores) !== undefined)
    .toSorted(byAge)
    .filter(({ metadata: { namespace } }) => !spaces.has(namespace) && spaces.add(namespace));
}

/** Other halves of the same space; only one is accepted. */
const twinsOf = ({ metadata, spec }: Stored<CFRoute>, stores: Stores): Stored<CFRoute>[] =>
  ownerKeys({ metadata, spec })
    .flatMap((key) => stores.of(kinds.route).by(halvesByOwner.name, key))
    .filter((other) => other.metadata.namespace === metadata.namespace && other.metadata.uid !== metadata.uid);

/**
 * True for the half that its space has. Two commands can make one each at the same moment: the one that was accepted stays, otherwise the oldest, and
 * users must not be led to one that gets no requests.
 */
export function isOnlyHalf(half: Stored<CFRoute>, stores: Stores): boolean {
  const precedes = (other: Stored<CFRoute>): boolean => (isClaimed(other) === isClaimed(half) ? byAge(other, half) < 0 : isClaimed(other));
  const isRefused = (other: Stored<CFRoute>): boolean => findCondition(other, conditionTypes.claimed)?.status === 'False';
  return !twinsOf(half, stores).some(
    (other) =>
      other.metadata.deletionTimestamp === undefined && ownerOf(other, stores) !== undefined && !isRefused(other) && precedes(other),
  );
}

/** Halves that were accepted, and are not any more: what was made for them is still there. */
export const lostHalves = (owner: Stored<CFRoute>, stores: Stores): Stored<CFRoute>[] =>
  halvesOf(owner, stores).filter((half) => isClaimed(half) && ownerOf(half, stores) === undefined);

/** The HTTPRoute that leads to a route's destinations. */
export function httpRouteOf(route: Stored<CFRoute>, stores: Stores): Stored<HttpRoute> | undefined {
  const { namespace, name } = isHalf(route) ? (ownerOf(route, stores)?.metadata ?? {}) : route.metadata;
  return name === undefined ? undefined : stores.of(httpRouteType).get(namespace, name);
}

/** False while the owner's HTTPRoute does not have the destinations of a half as they are now. */
export const isTakenOver = (route: Stored<CFRoute>, live: Stored<HttpRoute> | undefined): boolean =>
  !isHalf(route) || live?.metadata.annotations?.[servingAnnotation(route.metadata.uid)] === String(route.metadata.generation);

/** Keys of a route and of those that share its address. */
export const withPartners = (route: Stored<CFRoute>, stores: Stores): string[] => [
  keyOf(route),
  ...ownerKeys(route),
  ...halvesOf(route, stores).map(keyOf),
  ...twinsOf(route, stores).map(keyOf),
];
