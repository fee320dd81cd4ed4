// The spaces that a route is shared with, as a relationship of the route.

import { kinds } from '../../api/group.ts';
import type { Stored } from '../../api/object.ts';
import type { CFRoute } from '../../api/types.generated.ts';
import { KfError } from '../../errors.ts';
import type { SpaceSession } from '../../session/session.ts';
import type { NameAndGuid } from '../../session/state.ts';
import { V3Error } from '../../v3/errors.ts';
import { presentSharedSpaces } from '../../v3/routes.ts';
import { isRefused, type RoutePlace } from '../routes/holders.ts';
import { assertOwned } from '../routes/route-and-space.ts';
import { urlOf } from '../routes/routes.ts';
import { assertMayShare, shareKnownRoute, unshareKnownRoute } from '../routes/share.ts';
import { fieldsOf } from './body.ts';
import { get, post, remove, V3Answer, type Asked, type V3Route } from './request.ts';

const path = '/v3/routes/:guid/relationships/shared_spaces';

const routeOf = ({ reader, part }: Asked): Promise<Stored<CFRoute>> => reader.find(kinds.route, 'Route', part('guid'));

/** For a half: the spaces of the owner's route. A caller who may not read that one knows of the half's own space. */
async function spacesOf({ reader }: Asked, route: Stored<CFRoute>): Promise<readonly string[]> {
  const { sharedFrom, sharedWith = [] } = route.spec;
  if (sharedFrom === undefined) return sharedWith;
  if (isRefused(route)) return [];
  const owner = await reader.findIfAny(kinds.route, sharedFrom.route);
  return owner?.metadata.uid === sharedFrom.uid ? (owner.spec.sharedWith ?? []) : [route.metadata.namespace];
}

async function sharedSpaces(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const route = await routeOf(asked);
  return presentSharedSpaces(route.metadata.name, await spacesOf(asked, route), asked.link);
}

interface OwnRoute {
  session: SpaceSession;
  route: Stored<CFRoute>;
  place: RoutePlace;
  url: string;
}

/** The route with what its change needs. @throws KfError `conflict` for a route of another space */
async function ownRoute(asked: Asked): Promise<OwnRoute> {
  const route = await routeOf(asked);
  const { host = '', path: below = '', domainRef } = route.spec;
  const { cluster, root, signal } = asked.reader.session;
  const [session, domain] = await Promise.all([asked.reader.at(route), cluster.get(kinds.domain, root, domainRef.name ?? '', signal)]);
  if (domain === undefined) throw new V3Error('not-found', 'Domain not found');
  const url = urlOf({ host, path: below, domain: domain.spec.name });
  assertOwned(session, { route, url });
  return { session, route, place: { host, path: below, domain }, url };
}

/** @throws V3Error 422 */
function guidsIn(body: Record<string, unknown>): string[] {
  const { data } = fieldsOf(body, ['data']);
  if (!Array.isArray(data)) throw new V3Error('unprocessable', 'Data must be an array');
  return data.map((one) => {
    const { guid } = fieldsOf(one, ['guid']);
    if (typeof guid === 'string' && guid !== '') return guid;
    throw new V3Error('unprocessable', 'Data must have the guid of a space');
  });
}

/** Checks all spaces before the first is written. */
async function share(asked: Asked): Promise<unknown> {
  const guids = guidsIn(asked.body());
  const { session, route, place, url } = await ownRoute(asked);
  const found = await Promise.all(guids.map((guid) => asked.reader.spaceIfAny(guid)));
  const missing = guids.filter((_, at) => found[at] === undefined).map((guid) => `'${guid}'`);
  if (missing.length > 0) {
    const text = `Unable to share route ${url} with spaces [${missing.join(', ')}].`;
    throw new V3Error('unprocessable', `${text} Ensure the spaces exist and that you have access to them.`);
  }
  const shares = found
    .filter((space) => space !== undefined)
    .map(({ metadata, spec }) => ({ route, place, url, to: { guid: metadata.name, name: spec.displayName } }));
  for (const one of shares) await assertMayShare(session, one);
  const done: NameAndGuid[] = [];
  for (const one of shares) {
    try {
      await shareKnownRoute(session, one);
    } catch (error) {
      if (!(error instanceof KfError) || done.length === 0) throw error;
      const names = done.map(({ name }) => `'${name}'`).join(', ');
      const { code, hints, details } = error;
      throw new KfError(code, `${error.message} The route is shared with ${names} now.`, { hints, details, cause: error });
    }
    done.push(one.to);
  }
  return sharedSpaces(asked);
}

async function unshare(asked: Asked): Promise<unknown> {
  const guid = asked.part('space');
  const { session, route, url } = await ownRoute(asked);
  const refusal = `Unable to unshare route '${url}' from space '${guid}'.`;
  if (guid === session.space.guid) throw new V3Error('unprocessable', `${refusal} Routes cannot be removed from the space that owns them.`);
  const isShared = (route.spec.sharedWith ?? []).includes(guid);
  if (!isShared && (await asked.reader.spaceIfAny(guid)) === undefined)
    throw new V3Error('unprocessable', `${refusal} Ensure the space exists and that you have access to it.`);
  await unshareKnownRoute(session, { route, url, to: { guid, name: guid } });
  return new V3Answer(204);
}

export const routeShareRoutes: readonly V3Route[] = [get(path, sharedSpaces), post(path, share), remove(`${path}/:space`, unshare)];
