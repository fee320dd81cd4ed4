// Users, as far as kf knows them: those who have a role, and the caller.

import type { RoleBinding, Subject } from '../../api/core.ts';
import { cfRoles } from '../../api/roles.ts';
import { V3Error } from '../../v3/errors.ts';
import { pageOf } from '../../v3/pages.ts';
import { presentUser, userOf } from '../../v3/places.ts';
import type { V3Resource } from '../../v3/resource.ts';
import { get, type Asked, type V3Route } from './request.ts';

const ofKf = new Set(Object.values(cfRoles).map(({ clusterRole }) => clusterRole));

const isUser = ({ kind }: Subject): boolean => kind !== 'Group';

/** In the order of their names. */
async function users(asked: Asked): Promise<V3Resource[]> {
  const { reader } = asked;
  const [bindings, caller] = await Promise.all([reader.allRoleBindings(), reader.session.cluster.whoAmI(reader.session.signal)]);
  const names = bindings
    .filter(({ roleRef }: RoleBinding) => ofKf.has(roleRef.name))
    .flatMap(({ subjects = [] }) => subjects.filter(isUser).map(userOf));
  return [...new Set([...names, caller])]
    .filter((name) => name !== '')
    .toSorted()
    .map(presentUser);
}

async function listUsers(asked: Asked): Promise<unknown> {
  const { query, link } = asked;
  query.allow(['guids', 'usernames', 'partial_usernames', 'origins']);
  const parts = query.words('partial_usernames');
  const found = (await users(asked)).filter(
    ({ guid, origin }) =>
      query.matches('guids', guid) &&
      query.matches('usernames', guid) &&
      query.matches('origins', String(origin)) &&
      (parts === undefined || parts.some((part) => guid.toLowerCase().includes(part.toLowerCase()))),
  );
  return pageOf(found, query, link, true);
}

async function oneUser(asked: Asked): Promise<unknown> {
  asked.query.allow([], { isList: false });
  const found = (await users(asked)).find(({ guid }) => guid === asked.part('guid'));
  if (found === undefined) throw new V3Error('not-found', 'User not found');
  return found;
}

export const userRoutes: readonly V3Route[] = [get('/v3/users', listUsers), get('/v3/users/:guid', oneUser)];
