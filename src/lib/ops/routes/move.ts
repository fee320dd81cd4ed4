// Moves a route to another space. A host belongs to one space with all its paths (docs/decisions/0020), and a route leads only to apps of its own
// space: so a route moves without apps, and only alone.

import { randomUUID } from 'node:crypto';
import { kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { assertAccess } from '../../kube/access.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
import { findOrg, findSpace } from '../../session/places.ts';
import type { SpaceSession } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { sleep } from '../../wait.ts';
import { buildRoute } from '../../../templates/route.ts';
import { findDomain } from '../find.ts';
import { appNames } from '../rows.ts';
import { isLive, otherHolder, type RoutePlace } from './holders.ts';
import { createClaimed, noRouteText, routesAt, urlOf, type RouteAddress } from './routes.ts';

/** How long the controller may take to see that the route has left its space. */
const releaseMs = 10_000;
const retryMs = 300;

export interface MoveOptions extends RouteAddress {
  /** Default: the targeted org. */
  toOrg?: string | undefined;
  toSpace: string;
}

interface Move {
  route: Stored<CFRoute>;
  place: RoutePlace;
  url: string;
  to: NameAndGuid;
}

async function assertUnmapped(session: SpaceSession, { route, place, url }: Omit<Move, 'to'>): Promise<void> {
  const [destination] = route.spec.destinations ?? [];
  if (destination === undefined) return;
  const app = (await appNames(session)).get(destination.appRef.name) ?? destination.appRef.name;
  const flags = `-n ${place.host}${place.path === '' ? '' : ` --path ${place.path}`}`;
  throw new KfError('conflict', `Route '${url}' is mapped to app '${app}': a route leads only to apps of its own space.`, {
    hints: [`${session.bin} unmap-route ${app} ${place.domain.spec.name} ${flags}`],
  });
}

/** @throws KfError `conflict` when the space has other paths of the host: they would keep the host here */
async function assertAlone({ cluster, space, signal, bin }: SpaceSession, { route, place, url }: Omit<Move, 'to'>): Promise<void> {
  const domain = place.domain.metadata.name;
  const { items } = await cluster.list(kinds.route, { ns: space.guid, labelSelector: `${labels.domainGuid}=${domain}`, signal });
  const other = items.find(
    (one) => one.metadata.uid !== route.metadata.uid && isLive(one) && one.spec.host?.toLowerCase() === place.host.toLowerCase(),
  );
  if (other === undefined) return;
  const { path = '' } = other.spec;
  const theirs = urlOf({ host: place.host, domain: place.domain.spec.name, path });
  throw new KfError('conflict', `Route '${url}' cannot move alone: the space also has '${theirs}', and a host belongs to one space.`, {
    hints: [`${bin} delete-route ${place.domain.spec.name} -n ${place.host}${path === '' ? '' : ` --path ${path}`}`],
  });
}

/** Everything that can be checked before the route leaves its space. */
async function plan(session: SpaceSession, { toOrg, toSpace, ...address }: MoveOptions): Promise<Move> {
  const domain = await findDomain(session, address.domain);
  const place = { ...address, domain };
  const url = urlOf({ ...address, domain: domain.spec.name });
  const route = (await routesAt(session, domain, address)).find(isLive);
  if (route === undefined)
    throw new KfError('not-found', noRouteText({ ...address, domain: domain.spec.name }), { hints: [`${session.bin} routes`] });
  const org = toOrg === undefined || toOrg === session.org.name ? session.org : await findOrg(session, toOrg);
  const to = await findSpace(session, org, toSpace);
  if (to.guid === session.space.guid) return { route, place, url, to };
  await assertUnmapped(session, { route, place, url });
  await assertAlone(session, { route, place, url });
  const { group, plural } = kinds.route;
  await assertAccess(session.cluster, [{ verb: 'create', group, resource: plural, ns: to.guid }], session.signal);
  return { route, place, url, to };
}

/** Creates the route in its new space. While the old space still has the host for the controller, this tries again. */
async function claimThere(session: SpaceSession, { place, to }: Move): Promise<void> {
  const deadline = performance.now() + releaseMs;
  for (;;) {
    try {
      await createClaimed(session, place, [], to.guid);
      return;
    } catch (error) {
      const isContested = error instanceof KfError && error.code === 'conflict';
      if (!isContested || performance.now() > deadline || (await otherHolder(session, place)) !== undefined) throw error;
      await sleep(retryMs, session.signal);
    }
  }
}

/** Makes the route again in its old space, unless it is in the new one. An interruption does not prevent this. */
async function putBack(session: SpaceSession, { place, to }: Move): Promise<void> {
  const labelSelector = `${labels.domainGuid}=${place.domain.metadata.name}`;
  const { items } = await session.cluster.list(kinds.route, { ns: to.guid, labelSelector });
  if (items.some(({ spec }) => spec.host === place.host.toLowerCase() && (spec.path ?? '') === place.path)) return;
  const author = { changedBy: await session.changedBy(), now: new Date() };
  const input = { guid: randomUUID(), namespace: session.space.guid, ...place, host: place.host.toLowerCase() };
  await session.cluster.create(kinds.route, buildRoute(input, author));
}

/**
 * Moves a route without apps to another space. If the new space cannot get it, the old one keeps it.
 * @param onMove called with the URL when everything is checked
 * @returns false when the route is in that space already
 * @throws KfError `conflict` when apps are mapped to the route, or when the space has other paths of its host
 */
export async function moveRoute(session: SpaceSession, options: MoveOptions, onMove: (url: string) => void): Promise<boolean> {
  const { cluster, space, signal } = session;
  const move = await plan(session, options);
  onMove(move.url);
  if (move.to.guid === space.guid) return false;
  await session.changedBy();
  // As it was checked: without apps. The controller may have written its status meanwhile, for a route that was made a moment ago.
  const leave = async ({ route: { metadata } }: Move): Promise<void> => {
    const { name, uid, resourceVersion } = metadata;
    await cluster.delete(kinds.route, space.guid, name, { uid, resourceVersion, signal });
  };
  await retryOnConflict(move, leave, () => plan(session, options), signal);
  try {
    await claimThere(session, move);
  } catch (error) {
    await putBack(session, move);
    throw error;
  }
  return true;
}
