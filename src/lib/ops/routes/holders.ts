// Finds out which space has a host that this space wants. It is asked before anything is written, and the answer uses names that the caller may
// read.

import { findCondition } from '../../api/conditions.ts';
import { leaseType } from '../../api/core.ts';
import { isFreeForEveryHost } from '../../api/domains.ts';
import { annotations, conditionTypes, kinds, reasons } from '../../api/group.ts';
import { addressOf, nameClaims } from '../../api/names.ts';
import type { Stored } from '../../api/object.ts';
import type { CFDomain, CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { isForbidden } from '../../kube/errors.ts';
import { listOrgs, listSpaces } from '../../session/places.ts';
import type { Session, SpaceSession } from '../../session/session.ts';

export interface RoutePlace {
  host: string;
  domain: Stored<CFDomain>;
  /** With its leading slash, or ''. */
  path: string;
}

/** True when the route has this address. The case of letters makes no difference. */
export const isAtPlace = ({ spec }: CFRoute, { host, domain, path }: RoutePlace): boolean =>
  spec.domainRef.name === domain.metadata.name &&
  (spec.host ?? '').toLowerCase() === host.toLowerCase() &&
  (spec.path ?? '').toLowerCase() === path.toLowerCase();

/** True for a route that the controller has refused, because its address is not free or its domain does not exist: it leads nowhere. */
export const isRefused = (route: Stored<CFRoute>): boolean => findCondition(route, conditionTypes.claimed)?.status === 'False';

/** True for a route that has its address, or gets it, and is not being deleted. */
export const isLive = (route: Stored<CFRoute>): boolean => route.metadata.deletionTimestamp === undefined && !isRefused(route);

/** The name of another space in the error is optional; with more orgs than this it would cost too many requests. */
const mostOrgs = 20;

/** GUID of the space that has the host; undefined when nobody has it, '' when the caller's role (of kf 0.1.0) has no right to read that. */
async function holderOf({ cluster, root, signal }: Session, { host, domain }: RoutePlace): Promise<string | undefined> {
  const { fqdn } = addressOf({ metadata: {}, spec: { host, domainRef: {} } }, domain);
  try {
    const lease = await cluster.get(leaseType, root, nameClaims.routeHost(fqdn).leaseName, signal);
    return lease?.metadata.annotations?.[annotations.leaseOwnerNamespace];
  } catch (error) {
    if (isForbidden(error)) return '';
    throw error;
  }
}

/** `org 'o' / space 's'` if the caller may read both, otherwise `another space`. */
async function nameOf(session: SpaceSession, guid: string): Promise<string> {
  const orgs = await listOrgs(session).catch(() => []);
  for (const org of orgs.slice(0, mostOrgs)) {
    const spaces = await listSpaces(session, org).catch(() => []);
    const found = spaces.find((space) => space.guid === guid);
    if (found !== undefined) return `Org '${org.name}' / space '${found.name}'`;
  }
  return 'Another space';
}

/** The name of another space that has the host, as the subject of a sentence; undefined when none has it, or when that cannot be read. */
export async function otherHolder(session: SpaceSession, place: RoutePlace): Promise<string | undefined> {
  const holder = await holderOf(session, place);
  return holder === undefined || holder === '' || holder === session.space.guid ? undefined : nameOf(session, holder);
}

function taken(session: SpaceSession, message: string): KfError {
  return new KfError('conflict', message, {
    hints: ['Take another host.', `${session.bin} routes`],
    details: { reason: reasons.duplicateName },
  });
}

async function takenBy(session: SpaceSession, { host, domain }: RoutePlace, holder: string): Promise<KfError> {
  const who = await nameOf(session, holder);
  return taken(
    session,
    `Route already exists with host '${host}' for domain '${domain.spec.name}'. ${who} has this host, with all its paths.`,
  );
}

/** The controller's refusal of a route, with the name of the space that has the host if the caller may read it. */
export async function explainRefusal(session: SpaceSession, place: RoutePlace, refusal: KfError): Promise<KfError> {
  if (refusal.details?.['reason'] !== reasons.duplicateName) return refusal;
  const holder = await holderOf(session, place).catch(() => undefined);
  const isOther = holder !== undefined && holder !== '' && holder !== session.space.guid;
  return isOther ? takenBy(session, place, holder) : taken(session, refusal.message);
}

/** Makes the same check as the API server's policy. @throws KfError `forbidden` */
export async function assertMayTakeEveryHost(session: SpaceSession, { host, domain, path }: RoutePlace): Promise<void> {
  const { cluster, root, signal } = session;
  if (host !== '*' || isFreeForEveryHost(domain, session.org.guid, path)) return;
  const { group, plural } = kinds.domain;
  const { allowed } = await cluster.canI({ verb: 'create', group, resource: plural, ns: root }, signal);
  if (allowed) return;
  const text = `A route for every host of the domain '${domain.spec.name}' would take the requests of other spaces`;
  throw new KfError('forbidden', `${text}; only an operator, who may create domains, makes one.`, { hints: ['Take a host of your own.'] });
}

/**
 * Call it before anything is written.
 * @param known the space's routes that were read already; they need no request
 * @returns the places whose host this space has already, or may have as far as the caller can see: there may be routes that are not in `known`
 * @throws KfError `conflict` when another space has the host of one of the places
 */
export async function assertRoutesFree(
  session: SpaceSession,
  places: readonly RoutePlace[],
  known: readonly Stored<CFRoute>[],
): Promise<RoutePlace[]> {
  const isOwn = ({ host, domain }: RoutePlace): boolean =>
    known.some(
      ({ spec, status }) =>
        spec.domainRef.name === domain.metadata.name &&
        (spec.host ?? '').toLowerCase() === host.toLowerCase() &&
        status?.conditions?.find(({ type }) => type === 'Claimed')?.status === 'True',
    );
  const own = await Promise.all(
    places
      .filter((place) => !isOwn(place))
      .map(async (place) => {
        await assertMayTakeEveryHost(session, place);
        const holder = await holderOf(session, place);
        if (holder !== undefined && holder !== '' && holder !== session.space.guid) throw await takenBy(session, place, holder);
        return holder === undefined ? [] : [place];
      }),
  );
  return own.flat();
}
