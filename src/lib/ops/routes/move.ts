// Moves a route to another space. A host belongs to one space with all its paths (docs/decisions/0020), and a route leads only to apps of its own
// space: so a route moves without apps, and only alone.

import { randomUUID } from 'node:crypto';
import { findCondition } from '../../api/conditions.ts';
import { annotations, conditionTypes, kinds, labels } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import { assertAccess } from '../../kube/access.ts';
import { retryOnConflict } from '../../kube/retry-on-conflict.ts';
import type { SpaceSession } from '../../session/session.ts';
import { appNames } from '../rows.ts';
import { isLive } from './holders.ts';
import { assertOwned, findRouteAndSpace, type NamedRouteAndSpace, type RouteAndSpace } from './route-and-space.ts';
import { createClaimed, urlOf } from './routes.ts';

async function assertUnmapped(session: SpaceSession, { route, place, url }: RouteAndSpace): Promise<void> {
  const [destination] = route.spec.destinations ?? [];
  if (destination === undefined) return;
  const app = (await appNames(session)).get(destination.appRef.name) ?? destination.appRef.name;
  const flags = `-n ${place.host}${place.path === '' ? '' : ` --path ${place.path}`}`;
  throw new KfError('conflict', `Route '${url}' is mapped to app '${app}': a route leads only to apps of its own space.`, {
    hints: [`${session.bin} unmap-route ${app} ${place.domain.spec.name} ${flags}`],
  });
}

/** @throws KfError `conflict` when the space has other paths of the host: they would keep the host here */
async function assertAlone({ cluster, space, signal, bin }: SpaceSession, { route, place, url }: RouteAndSpace): Promise<void> {
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
async function plan(session: SpaceSession, named: NamedRouteAndSpace): Promise<RouteAndSpace> {
  const found = await findRouteAndSpace(session, named);
  if (found.to.guid === session.space.guid) return found;
  assertOwned(session, found);
  await assertUnmapped(session, found);
  await assertAlone(session, found);
  const { group, plural } = kinds.route;
  await assertAccess(session.cluster, [{ verb: 'create', group, resource: plural, ns: found.to.guid }], session.signal);
  return found;
}

/** The route at the same address in the new space, if the new space has the address already: an earlier move was interrupted after that. */
async function arrived({ cluster, signal }: SpaceSession, { place, to }: RouteAndSpace): Promise<Stored<CFRoute> | undefined> {
  const labelSelector = `${labels.domainGuid}=${place.domain.metadata.name}`;
  const { items } = await cluster.list(kinds.route, { ns: to.guid, labelSelector, signal });
  return items.find(
    (one) =>
      isLive(one) &&
      findCondition(one, conditionTypes.claimed)?.status === 'True' &&
      one.spec.host?.toLowerCase() === place.host.toLowerCase() &&
      (one.spec.path ?? '').toLowerCase() === place.path.toLowerCase(),
  );
}

/**
 * Ends a move that failed: withdraws the permission, then deletes the new route, unless it has the address by now. An interruption does not
 * prevent this.
 */
async function giveUp(session: SpaceSession, { route, to }: RouteAndSpace, guid: string): Promise<void> {
  const { cluster, space } = session;
  const { name, uid } = route.metadata;
  await cluster.mergePatch(kinds.route, space.guid, name, { metadata: { uid, annotations: { [annotations.movesTo]: null } } });
  const made = await cluster.get(kinds.route, to.guid, guid);
  const hasMoved = made !== undefined && findCondition(made, conditionTypes.claimed)?.status === 'True';
  if (hasMoved) await cluster.delete(kinds.route, space.guid, name, { uid });
  else if (made !== undefined) await cluster.delete(kinds.route, to.guid, guid, { uid: made.metadata.uid });
}

/**
 * Moves a route without apps to another space. The host belongs to one of the two spaces at every moment: the route says which new route may
 * take its host, the controller hands it over, and only then the route is deleted (docs/decisions/0072). If the new space cannot get it, the old
 * one keeps it.
 * @param onMove called with the URL when everything is checked
 * @returns false when the route was in that space already
 * @throws KfError `conflict` when apps are mapped to the route, or when the space has other paths of its host
 */
export async function moveRoute(session: SpaceSession, options: NamedRouteAndSpace, onMove: (url: string) => void): Promise<boolean> {
  const { cluster, space, signal } = session;
  const move = await plan(session, options);
  onMove(move.url);
  if (move.to.guid === space.guid) return false;
  const changedBy = await session.changedBy();
  if ((await arrived(session, move)) === undefined) {
    const guid = randomUUID();
    const notes = { [annotations.movesTo]: `${move.to.guid}/${guid}`, [annotations.changedBy]: changedBy };
    // As it was checked: without apps. The controller may have written its status meanwhile, for a route that was made a moment ago.
    const permit = async ({ route }: RouteAndSpace): Promise<void> => {
      const { name, uid, resourceVersion } = route.metadata;
      await cluster.mergePatch(kinds.route, space.guid, name, { metadata: { uid, resourceVersion, annotations: notes } }, { signal });
    };
    await retryOnConflict(move, permit, () => plan(session, options), signal);
    try {
      await createClaimed(session, move.place, [], { namespace: move.to.guid, guid });
    } catch (error) {
      await giveUp(session, move, guid);
      throw error;
    }
  }
  const { name, uid } = move.route.metadata;
  await cluster.delete(kinds.route, space.guid, name, { uid, signal });
  return true;
}
