// Creates a route without an app, and answers whether a route exists.

import { leaseType } from '../../api/core.ts';
import { annotations, kinds } from '../../api/group.ts';
import { nameClaims } from '../../api/names.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { Session, SpaceSession } from '../../session/session.ts';
import { findDomain } from '../find.ts';
import { assertAddress } from './address.ts';
import { assertMayTakeEveryHost } from './holders.ts';
import { createOrJoin, liveRoute, routesAt, urlOf, type RouteAddress } from './routes.ts';

export interface CreatedRoute {
  url: string;
  /** False when the space has this route already, or another command creates it at the same moment. */
  created: boolean;
}

/** Creates a route in the targeted space. @throws KfError `conflict` when another space has the host */
export async function createRoute(session: SpaceSession, address: RouteAddress): Promise<CreatedRoute> {
  const domain = await findDomain(session, address.domain);
  const place = { ...address, domain };
  assertAddress(place, '-n HOSTNAME gives one.');
  const url = urlOf({ ...address, domain: domain.spec.name });
  if ((await liveRoute(session, await routesAt(session, domain, address), url)) !== undefined) return { url, created: false };
  await assertMayTakeEveryHost(session, place);
  const { created } = await createOrJoin(session, place, []);
  return { url, created };
}

/**
 * True when a route of any space has exactly this address. The Lease of the address says so, which every user may read; the route itself is
 * asked only because its Lease is freed a moment after its deletion.
 */
export async function routeExists(session: Session, address: RouteAddress): Promise<boolean> {
  const { cluster, root, signal } = session;
  const { metadata } = await findDomain(session, address.domain);
  const { host, path } = address;
  const spec = { host, path, domainRef: { name: metadata.name, namespace: metadata.namespace } };
  const lease = await cluster.get(leaseType, root, nameClaims.route({ metadata: {}, spec }).leaseName, signal);
  if (lease === undefined) return false;
  const { [annotations.leaseOwnerNamespace]: ns = '', [annotations.leaseOwnerName]: name = '' } = lease.metadata.annotations ?? {};
  try {
    return (await cluster.get(kinds.route, ns, name, signal)) !== undefined;
  } catch (error) {
    if (isForbidden(error)) return true;
    throw error;
  }
}
